/** The way through the edge to the api and the site: TLS, what is closed, and the address of the client. */
import { once } from 'node:events'
import { get } from 'node:http'
import { connect } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { createDatabase, startApi } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { highLimits, testEnvironment } from '../support/environment.ts'
import { findFreePort } from '../support/ports.ts'
import { startProgram } from '../support/programs.ts'
import { eventually, operator, operatorPassword } from '../support/relays.ts'
import { startSite } from '../support/site.ts'
import { apiHost, type EdgeReply, siteHost, startEdge } from './edge.ts'

/** The clients that are operators. */
const operatorAddress = '127.7.0.1'

const [httpsPort, secondPort, database] = [await findFreePort(), await findFreePort(), await createDatabase()]
atEnd(() => database.drop())
const siteUrl = `https://${siteHost}:${httpsPort}`
const variables = testEnvironment({
  DATABASE_URL: database.url,
  SVC_API_URL: `https://${apiHost}:${httpsPort}`,
  SVC_SITE_URL: siteUrl,
  SVC_TRUSTED_PROXY_HOPS: '1',
  SVC_OPERATOR_PASSWORD: operatorPassword,
  SVC_RATE_LIMITS: highLimits({ capacity: 2 }),
})
const api = await startApi(variables)
// A process of its own, so that it can be killed.
const second = startProgram('api', { ...variables, PORT: String(secondPort) })
const site = await startSite(api, { SVC_SITE_URL: siteUrl, SVC_SITE_PORT: '0', SVC_TRUSTED_PROXY_HOPS: '1' })
const edge = await startEdge({
  httpsPort,
  apiUpstreams: `${new URL(api.url).host} 127.0.0.1:${secondPort}`,
  siteUpstreams: `127.0.0.1:${new URL(site.url).port}`,
  operatorNetworks: '127.7.0.0/16 2001:db8::/32',
})

const statusOf = async (host: string, path: string, from?: string) =>
  (await edge.send(host, path, { headers: operator, ...(from ? { from } : {}) })).status

describe('TLS', () => {
  test('both hosts are served, without the name of the server', async () => {
    const [ofApi, ofSite] = [await edge.send(apiHost, '/openapi.json'), await edge.send(siteHost, '/login')]
    expect([ofApi.status, ofSite.status]).toEqual([200, 200])
    expect(ofApi.headers['content-type']).toMatch(/json/)
    expect(ofSite.headers['content-type']).toMatch(/html/)
    for (const { headers } of [ofApi, ofSite]) {
      expect(headers['strict-transport-security']).toBeDefined()
      expect(headers.server).toBeUndefined()
    }
  })

  const protocolOf = (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3') =>
    new Promise<string | null>((resolve, reject) => {
      const socket = connect({
        host: '127.0.0.1',
        port: httpsPort,
        servername: apiHost,
        ca: edge.authority,
        minVersion: version,
        maxVersion: version,
        ciphers: 'DEFAULT@SECLEVEL=0',
      })
      socket.once('error', reject)
      socket.once('secureConnect', () => {
        resolve(socket.getProtocol())
        socket.destroy()
      })
    })

  test('TLS 1.1 is refused, 1.2 and 1.3 are accepted', async () => {
    await expect(protocolOf('TLSv1.1')).rejects.toThrow(/protocol version/)
    expect(await protocolOf('TLSv1.2')).toBe('TLSv1.2')
    expect(await protocolOf('TLSv1.3')).toBe('TLSv1.3')
  })

  test('plain HTTP is redirected to HTTPS', async () => {
    const [response] = await once(
      get({ host: '127.0.0.1', port: edge.httpPort, path: '/login', headers: { Host: siteHost }, agent: false }),
      'response',
    )
    response.resume()
    expect([response.statusCode, response.headers.location]).toEqual([308, `https://${siteHost}/login`])
  })
})

describe('what is for operators', () => {
  const apiPaths = ['/metrics', '/health', '/livez', '/readyz', '/api/v1/admin/overview']
  const sitePaths = ['/operator', '/operator/accounts', '/livez', '/readyz']

  test.each([
    ...apiPaths.map((path) => [apiHost, path] as const),
    ...['/METRICS', '/%6detrics', '//metrics', '/x/../metrics'].map((path) => [apiHost, path] as const),
    ...['/api/v1/admin', '/API/v1/Admin/overview', '/api/v1/%61dmin/overview'].map((path) => [apiHost, path] as const),
    ...sitePaths.map((path) => [siteHost, path] as const),
    ...['/OPERATOR', '/%6fperator'].map((path) => [siteHost, path] as const),
  ])('https://%s%s does not exist for other networks', async (host, path) => {
    expect(await statusOf(host, path)).toBe(404)
  })

  test('a forged X-Forwarded-For does not open it', async () => {
    const headers = { ...operator, 'X-Forwarded-For': operatorAddress }
    expect((await edge.send(apiHost, '/metrics', { headers })).status).toBe(404)
  })

  test('it is open for the networks of the allow list', async () => {
    const found = await Promise.all(apiPaths.map((path) => statusOf(apiHost, path, operatorAddress)))
    expect(found.map((status) => status === 404)).toEqual(apiPaths.map(() => false))
    expect(await statusOf(apiHost, '/metrics', operatorAddress)).toBe(200)
    expect(await statusOf(siteHost, '/readyz', operatorAddress)).toBe(200)
    expect([200, 303]).toContain(await statusOf(siteHost, '/operator', operatorAddress))
  })
})

describe('the address of the client', () => {
  const capacity = (host: string, from: string, forged?: string) =>
    edge.send(host, '/api/v1/capacity/status', { from, headers: forged ? { 'X-Forwarded-For': forged } : {} })

  test('is what the rate limits of the api count, on both hosts together, whatever X-Forwarded-For says', async () => {
    const replies = [
      await capacity(siteHost, '127.20.0.1'),
      await capacity(apiHost, '127.20.0.1', '192.0.2.1'),
      await capacity(siteHost, '127.20.0.1', '192.0.2.2'),
      await capacity(apiHost, '127.20.0.1', '192.0.2.3, 192.0.2.4'),
      await capacity(siteHost, '127.21.0.1'),
      await capacity(apiHost, '127.22.0.1', '127.20.0.1'),
    ]
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 429, 429, 200, 200])
  })
})

const untilSecondIsReady = () =>
  eventually(
    () => fetch(`http://127.0.0.1:${secondPort}/readyz`).catch(() => undefined),
    (reply) => reply?.status === 200,
  )

describe('requests', () => {
  const codeOf = ({ status, body }: EdgeReply) => [status, JSON.parse(body).error.code]

  test('a body above 1 MB is refused with the error of the API', async () => {
    const headers = { 'Content-Type': 'application/json' }
    const request = { method: 'POST', headers, body: JSON.stringify({ email: 'x'.repeat(1_000_000) }) }
    const replies = [
      await edge.send(apiHost, '/api/v1/auth/login', request),
      await edge.send(siteHost, '/api/v1/auth/login', { ...request, headers: { ...headers, Origin: siteUrl } }),
    ]
    expect(replies.map(codeOf)).toEqual([
      [413, 'payload_too_large'],
      [413, 'payload_too_large'],
    ])
  })

  test.each([
    [apiHost, (bearer: string) => ({ Authorization: `Bearer ${bearer}` })],
    [siteHost, (bearer: string) => ({ Cookie: `svc_session=${bearer}`, Origin: siteUrl })],
  ] as const)('a WebSocket passes on %s', async (host, headersOf) => {
    const { bearer } = await api.given.user()
    const headers = { Host: `${host}:${httpsPort}`, ...headersOf(bearer) }
    const options = { ca: edge.authority, servername: host, headers }
    const socket = new WebSocket(`wss://127.0.0.1:${httpsPort}/api/v1/relay/ws`, ['svc.relay.v1'], options)
    onTestFinished(() => socket.terminate())
    await once(socket, 'open')
    expect(socket.protocol).toBe('svc.relay.v1')
    const answered = once(socket, 'pong')
    socket.ping()
    await answered
  })

  test('none fails while one process of the api is killed, and both serve again after its restart', async () => {
    await untilSecondIsReady()
    const documents = async (count: number) => {
      const statuses: number[] = []
      for (let sent = 0; sent < count; sent++) statuses.push((await edge.send(apiHost, '/openapi.json')).status)
      return new Set(statuses)
    }
    expect(await documents(10)).toEqual(new Set([200]))
    const [killed, seen] = [second.kill(), await documents(40)]
    await killed
    expect(seen).toEqual(new Set([200]))
    second.start()
    await untilSecondIsReady()
    expect(await documents(10)).toEqual(new Set([200]))
  })
})

describe('while no process serves', () => {
  test('a request gets 503 with Retry-After and the error of the API', async () => {
    const port = await findFreePort()
    const alone = await startEdge({
      httpsPort: await findFreePort(),
      apiUpstreams: `127.0.0.1:${port}`,
      siteUpstreams: `127.0.0.1:${port}`,
      operatorNetworks: '255.255.255.255',
    })
    const reply = await alone.send(apiHost, '/openapi.json')
    expect([reply.status, reply.headers['retry-after']]).toEqual([503, '2'])
    expect(JSON.parse(reply.body).error.code).toBe('temporarily_unavailable')
  })
})
