/** The probe that asks for the API as relays do, to know whether they can report. */
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { probeApi } from '../../../activities/fleet/api-probe.ts'
import { startApi } from '../../support/api.ts'
import { localhostCertificate, localhostKey } from '../../support/localhost-certificate.ts'
import { findFreePort } from '../../support/ports.ts'

const answerOfApi: RequestListener = (_, response) =>
  response.writeHead(405, { 'content-type': 'application/json' }).end('{"error":{"code":"method_not_allowed"}}')

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

const probeServer = async (listener: RequestListener, millisMax = 5000) =>
  probeApi(`http://127.0.0.1:${await listen(createServer(listener))}`, millisMax)

test('an API that runs is reached', async () => {
  const api = await startApi()
  expect(await probeApi(api.url, 5000)).toBeUndefined()
})

test.each<[string, RequestListener, string]>([
  ['an error page of a proxy', (_, response) => response.writeHead(502).end('<h1>Bad gateway</h1>'), '502'],
  ['a method that another server refuses', (_, response) => response.writeHead(405).end('<h1>No</h1>'), '405'],
  ['a page without an end', (_, response) => void response.writeHead(405).write('x'.repeat(5000)), '405'],
  ['a redirect', (_, response) => response.writeHead(308, { location: '/' }).end(), '308'],
  ['a connection that closes', (request) => void request.socket.destroy(), 'socket hang up'],
])('%s is no answer of the API', async (_, listener, problem) => {
  expect(await probeServer(listener)).toContain(problem)
})

test('no answer in time is none', async () => {
  expect(await probeServer(() => {}, 50)).toBe('no answer within 0.05 s')
})

test('each probe uses a connection of its own', async () => {
  const ports = new Set<number>()
  const port = await listen(
    createServer((request, response) => {
      ports.add(request.socket.remotePort ?? 0)
      answerOfApi(request, response)
    }),
  )
  for (let probe = 0; probe < 3; probe += 1) expect(await probeApi(`http://127.0.0.1:${port}`, 5000)).toBeUndefined()
  expect(ports.size).toBe(3)
})

test('a certificate that relays refuse, a port without a server and a name without an address are reported', async () => {
  const tls = createTlsServer({ key: localhostKey, cert: localhostCertificate }, answerOfApi)
  expect(await probeApi(`https://localhost:${await listen(tls)}`, 5000)).toContain('self-signed certificate')
  expect(await probeApi(`http://127.0.0.1:${await findFreePort()}`, 5000)).toContain('ECONNREFUSED')
  expect(await probeApi('http://nowhere.invalid', 5000)).toMatch(/nowhere\.invalid|no answer/)
})
