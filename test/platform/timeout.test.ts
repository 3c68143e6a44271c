/** Signals with a limit of time, which hold while garbage is collected. */
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isTimeout, withSignal } from '../../platform/timeout.ts'

/** Never replies. */
const server = createServer((incoming) => void incoming.resume())
let url = ''

beforeAll(async () => {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  setFlagsFromString('--expose-gc')
  const collecting = setInterval(runInNewContext('gc') as () => void, 5)
  return () => clearInterval(collecting)
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const kinds = [
  ['a fetch', (signal: AbortSignal) => fetch(url, { method: 'POST', body: 'x', signal }).then((reply) => reply.text())],
  [
    'a request of node:http',
    (signal: AbortSignal) =>
      new Promise((resolve, reject) => {
        request(url, { method: 'POST', signal }, resolve).on('error', reject).end('x')
      }),
  ],
] as const

test.each(kinds)('%s ends after the time', { timeout: 30_000 }, async (_, send) => {
  const { signal: stopping } = new AbortController()
  const signals: AbortSignal[] = []
  const ends = await Promise.allSettled(
    Array.from({ length: 10 }, () =>
      withSignal(200, stopping, (signal) => {
        signals.push(signal)
        return send(signal)
      }),
    ),
  )
  expect(ends.map(({ status }) => status)).toEqual(Array(10).fill('rejected'))
  expect(signals.map(isTimeout)).toEqual(Array(10).fill(true))
})

test.each(kinds)('%s ends with its program, for the reason of that', { timeout: 30_000 }, async (_, send) => {
  const stopping = new AbortController()
  const ends = Promise.allSettled(Array.from({ length: 10 }, () => withSignal(60_000, stopping.signal, send)))
  setTimeout(() => stopping.abort(new Error('the program stops')), 100)
  expect((await ends).map(({ status }) => status)).toEqual(Array(10).fill('rejected'))
  const late = withSignal(60_000, stopping.signal, async (signal) => signal.throwIfAborted())
  await expect(late).rejects.toThrow('the program stops')
})
