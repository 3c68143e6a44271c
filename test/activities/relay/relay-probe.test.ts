/** The question whether a relay runs, and the answers that are none. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { probeRelay } from '../../../activities/relay/relay-probe.ts'

const instanceId = 'i-1'
const answer = (body: unknown) => JSON.stringify(body)

async function probe(listener: RequestListener, arePrivateAllowed = true) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port: statsPort } = server.address() as AddressInfo
  return probeRelay({ instanceId, host: '127.0.0.1', statsPort }, { arePrivateAllowed })
}

test('a relay answers with its instance id', async () => {
  let path: string | undefined
  const found = await probe((request, response) => {
    path = request.url
    response.end(answer({ status: 'ok', instance_id: instanceId }))
  })
  expect([found, path]).toEqual(['answered', '/healthz'])
})

test.each<[string, RequestListener]>([
  ['another instance id', (_, response) => response.end(answer({ instance_id: 'i-2' }))],
  ['an error', (_, response) => response.writeHead(503).end(answer({ instance_id: instanceId }))],
  ['a redirect', (_, response) => response.writeHead(302, { location: '/stats' }).end()],
  ['no JSON', (_, response) => response.end('ok')],
  ['more than 1 KB', (_, response) => response.end(answer({ instance_id: instanceId, more: 'x'.repeat(2_000) }))],
  ['nothing for more than a second', () => {}],
  ['a broken connection', (request) => request.socket.destroy()],
])('%s is no answer', async (_, listener) => {
  expect(await probe(listener)).toBe('nothing')
})

test('a port on which nothing listens refuses', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port: statsPort } = server.address() as AddressInfo
  await new Promise<void>((done) => server.close(() => done()))
  const target = { instanceId, host: '127.0.0.1', statsPort }
  expect(await probeRelay(target, { arePrivateAllowed: true })).toBe('refused')
})

test.each(['127.0.0.1', '10.1.2.3', '169.254.169.254', '192.168.1.1', '::1', 'fe80::1', 'fd00::1', 'localhost'])(
  'the private address %s is not asked, unless its region allows it',
  async (host) => {
    const target = { instanceId, host, statsPort: 1 }
    expect(await probeRelay(target, { arePrivateAllowed: false })).toBe('nothing')
  },
)
