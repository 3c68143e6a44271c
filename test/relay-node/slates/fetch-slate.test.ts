/** How a relay gets the image of a slate from the control plane. */
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { fetchSlate } from '../../../relay-node/slates/fetch-slate.ts'

const image = Buffer.from('the bytes of a JPEG')
const digest = hash('sha256', image)

type Answer = (response: ServerResponse) => void

const answersWith =
  (body: Buffer, status = 200): Answer =>
  (response) =>
    void response.writeHead(status).end(body)

/** A server that answers in these ways, one after the other, and then in the last one. */
async function givenServer(answers: readonly Answer[]) {
  const asked: { readonly path: string | undefined; readonly secret: unknown }[] = []
  const server = createServer((request, response) => {
    asked.push({ path: request.url, secret: request.headers['x-relay-auth'] })
    answers[Math.min(asked.length, answers.length) - 1]?.(response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stopping = new AbortController()
  onTestFinished(() => {
    stopping.abort()
    server.closeAllConnections()
    server.close()
  })
  const logged: unknown[] = []
  return {
    asked,
    logged,
    server,
    stop: () => stopping.abort(),
    fetch: (more: { readonly pauseMillisMin?: number; readonly requestMillisMax?: number } = {}) => {
      const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const log = (_level: string, _message: string, fields?: object) => void logged.push(fields)
      const source = { apiUrl, authSecret: 'secret of the relay', log, pauseMillisMin: 1, ...more }
      return fetchSlate(digest, source, stopping.signal)
    },
  }
}

test('a relay fetches the image with its secret', async () => {
  const { fetch, asked } = await givenServer([answersWith(image)])
  expect(await fetch()).toEqual(image)
  expect(asked).toEqual([{ path: `/api/v1/relay/slate/${digest}`, secret: 'secret of the relay' }])
})

test.each<[string, Answer, string]>([
  ['a refusal', answersWith(Buffer.from('{}'), 404), 'status 404'],
  ['an image with another digest', answersWith(Buffer.from('another image')), 'the image has another digest'],
  ['an image of more than 4 MB', answersWith(Buffer.alloc(4_194_305)), 'the image has more than 4194304 bytes'],
  ['a redirect', (response) => void response.writeHead(302, { location: '/other' }).end(), 'fetch failed'],
])('after %s it asks again, and logs that once', async (_, answer, error) => {
  const { fetch, asked, logged } = await givenServer([answer, answer, answersWith(image)])
  expect(await fetch()).toEqual(image)
  expect(asked).toHaveLength(3)
  expect(logged).toEqual([{ digest, error }])
})

test('a server that does not go on is asked again', async () => {
  const stuck: Answer = (response) => void response.writeHead(200).write('the first bytes')
  const { fetch, asked } = await givenServer([stuck, answersWith(image)])
  expect(await fetch({ requestMillisMax: 100 })).toEqual(image)
  expect(asked).toHaveLength(2)
})

test('nothing is fetched once the image is not wanted any more, neither in a request nor in a pause', async () => {
  const silent = await givenServer([() => {}])
  const request = silent.fetch()
  await once(silent.server, 'request')
  silent.stop()
  expect(await request).toBeUndefined()

  const broken = await givenServer([answersWith(Buffer.alloc(0), 500)])
  const pause = broken.fetch({ pauseMillisMin: 60_000 })
  await once(broken.server, 'request')
  broken.stop()
  expect(await pause).toBeUndefined()
  expect(broken.logged.length).toBeLessThanOrEqual(1)
})
