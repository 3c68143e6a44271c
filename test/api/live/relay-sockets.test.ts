/** Which clients `GET /relay/ws` accepts, and which ones it disconnects. */
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { highLimits } from '../../support/environment.ts'
import { readMetrics } from '../../support/metrics.ts'
import { sendRaw } from '../../support/raw-http.ts'
import { writeActive, writeStopped } from '../../support/relay-rows.ts'
import { connectSocket, refusalOf } from '../../support/relay-sockets.ts'
import { eventually, operator, startService, type TestService } from '../../support/relays.ts'

const siteUrl = 'http://site.example:8081'
const service = await startService({
  worker: false,
  variables: { SVC_SITE_URL: siteUrl },
  socketLimits: { pingSeconds: 0.5, perUserMax: 3 },
})
const { api } = service

async function startedSession(at: TestService = service) {
  const user = await at.user()
  const { session } = (await user.start()).body
  return { user, id: session.session_id, token: session.relay_ws_token ?? '' }
}

const metric = async (series: string, at = api) => (await readMetrics(at))(series)

describe('a handshake', () => {
  test('is refused with 401 without a valid session token or access token', async () => {
    const { user, id, token } = await startedSession()
    const { pair_token } = (await user.active()).session ?? {}
    const tokens = [null, 'x', randomBytes(24).toString('base64url'), pair_token]
    for (const wrong of tokens)
      expect(await refusalOf(connectSocket(api.url, { token: wrong }))).toEqual([401, 'unauthorized'])
    for (const bearer of ['x', 'a.b.c'])
      expect(await refusalOf(connectSocket(api.url, { bearer, token }))).toEqual([401, 'unauthorized'])
    await writeStopped(api.sql, id)
    expect(await refusalOf(connectSocket(api.url, { token }))).toEqual([401, 'unauthorized'])
  })

  test('is refused with 400 without the subprotocol svc.relay.v1', async () => {
    const { user, token } = await startedSession()
    expect(await refusalOf(connectSocket(api.url, { subprotocols: [token] }))).toEqual([400, 'invalid_request'])
    expect(await refusalOf(connectSocket(api.url, { subprotocols: [], bearer: user.bearer }))).toEqual([
      400,
      'invalid_request',
    ])
  })

  test('must be an upgrade request; other methods are not allowed', async () => {
    const { user } = await startedSession()
    const plain = await api.get('/relay/ws', { bearer: user.bearer })
    expect([plain.status, plain.body.error?.code, plain.headers.get('upgrade')]).toEqual([
      400,
      'invalid_request',
      'websocket',
    ])
    expect((await api.get('/relay/ws')).status).toBe(401)
    const posted = await api.post('/relay/ws', {})
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })

  test('has a request id in its response, accepted or refused', async () => {
    const { token } = await startedSession()
    const head = (offered: string) =>
      [
        'GET /api/v1/relay/ws HTTP/1.1',
        'Host: x',
        'Connection: keep-alive, Upgrade',
        'Upgrade: WebSocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
        `Sec-WebSocket-Protocol: ${offered}`,
      ].join('\r\n')
    // A close frame, so that the server closes the connection.
    const closeFrame = Buffer.from([0x88, 0x80, 0, 0, 0, 0])
    const accepted = await sendRaw(api.url, `${head(`svc.relay.v1, ${token}`)}\r\n\r\n`, closeFrame)
    expect(accepted.head).toMatch(/^HTTP\/1\.1 101 .*sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/is)
    expect(accepted.head).toMatch(/sec-websocket-protocol: svc\.relay\.v1\r\n/i)
    expect(accepted.head).toMatch(/x-request-id: [0-9a-f-]{36}/i)
    const refused = await sendRaw(api.url, `${head('svc.relay.v1')}\r\n\r\n`)
    expect(refused.head).toMatch(/^HTTP\/1\.1 401 .*x-request-id: [0-9a-f-]{36}/is)
    expect(JSON.parse(refused.body)).toEqual({ error: { code: 'unauthorized', message: expect.any(String) } })
  })

  test('with an access token is refused from a page of another origin, and accepted from the site or without an origin', async () => {
    const { user } = await startedSession()
    const { bearer } = user
    const from = (headers: Record<string, string>) => connectSocket(api.url, { bearer, headers })
    expect(await refusalOf(from({ Origin: 'https://evil.example' }))).toEqual([403, 'forbidden'])
    expect(await refusalOf(from({ Origin: 'null' }))).toEqual([403, 'forbidden'])
    expect(await refusalOf(from({ 'Sec-Fetch-Site': 'cross-site' }))).toEqual([403, 'forbidden'])
    await from({ Origin: siteUrl })
    await from({})
  })

  test('with a session token is accepted from any origin, since a dock may be anywhere', async () => {
    const { token } = await startedSession()
    await connectSocket(api.url, { token, headers: { Origin: 'https://dock.example' } })
  })

  test('is limited per account, in rate and in number', async () => {
    const { user, token } = await startedSession()
    const clients = await Promise.all(
      [{ token }, { token }, { bearer: user.bearer }].map((it) => connectSocket(api.url, it)),
    )
    expect(await refusalOf(connectSocket(api.url, { token }))).toEqual([429, 'rate_limited'])
    clients[0]?.socket.close()
    await clients[0]?.closed
    await connectSocket(api.url, { token })
    expect((await startedSession()).token).not.toBe(token)

    const limited = await startService({ worker: false, variables: { SVC_RATE_LIMITS: highLimits({ relay_ws: 1 }) } })
    const other = await startedSession(limited)
    await connectSocket(limited.api.url, other)
    const refused = connectSocket(limited.api.url, { bearer: other.user.bearer })
    await expect(refused).rejects.toMatchObject({
      status: 429,
      headers: { 'retry-after': expect.stringMatching(/^\d+$/) },
    })
  })

  test('is refused with 503 when the process has as many clients as it can serve', async () => {
    const full = await startService({ worker: false, socketLimits: { perProcessMax: 1 } })
    await connectSocket(full.api.url, await startedSession(full))
    const refused = connectSocket(full.api.url, await startedSession(full))
    await expect(refused).rejects.toMatchObject({ status: 503, headers: { 'retry-after': '2' } })
  })

  test('with any headers causes no 5xx and leaves the service running', async () => {
    const { token } = await startedSession()
    const text = fc.oneof(
      fc.constantFrom('', 'websocket', 'svc.relay.v1', token, ',', ', ,', '13', '8', '"'),
      fc.string(),
    )
    const line = fc.tuple(
      fc.constantFrom(
        'Sec-WebSocket-Protocol',
        'Sec-WebSocket-Version',
        'Sec-WebSocket-Key',
        'Sec-WebSocket-Extensions',
        'Authorization',
        'Origin',
      ),
      fc.array(text, { maxLength: 3 }).map((parts) => parts.join(',').replaceAll(/[^ -~]/g, '')),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 6 }), async (lines) => {
        const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
        const start = 'GET /api/v1/relay/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
        const answer = await sendRaw(api.url, `${start}${head}\r\n`)
        expect(answer.status).toBeGreaterThanOrEqual(400)
        expect(answer.status).toBeLessThan(500)
        expect(Object.keys(JSON.parse(answer.body))).toEqual(['error'])
      }),
      { numRuns: 150 },
    )
  })
})

describe('a request with an Upgrade header that is not for this endpoint', () => {
  const h2c = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'
  const body = JSON.stringify({ refresh_token: 'x' })

  test('is answered as if it had none, its body included', async () => {
    const answer = await sendRaw(
      api.url,
      `POST /api/v1/auth/refresh HTTP/1.1\r\nHost: x\r\n${h2c}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
      body.slice(0, 5),
      `${body.slice(5)}GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    )
    expect(answer.head).toMatch(/^HTTP\/1\.1 401 /)
    expect(answer.body).toContain('invalid_refresh_token')
  })

  test('keeps its connection for further requests', async () => {
    const answer = await sendRaw(
      api.url,
      `GET /livez HTTP/1.1\r\nHost: x\r\n${h2c}\r\n`,
      'GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    )
    expect(answer.head).toMatch(/^HTTP\/1\.1 200 /)
    const websocket = await sendRaw(
      api.url,
      'GET /api/v1/auth/session HTTP/1.1\r\nHost: x\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n',
    )
    expect(websocket.status).toBe(401)
  })

  test('after a pipelined request closes the connection at most', async () => {
    await sendRaw(
      api.url,
      `GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /api/v1/relay/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    )
    expect((await fetch(`${api.url}/livez`)).status).toBe(200)
  })
})

describe('a client is disconnected', () => {
  test('when it does not answer a ping', async () => {
    const before = (await metric('svc_relay_ws_drops_total{reason="no_pong"}')) ?? 0
    const { token } = await startedSession()
    const [dead, alive] = [
      await connectSocket(api.url, { token, autoPong: false }),
      await connectSocket(api.url, { token }),
    ]
    expect((await dead.closed).code).toBe(1006)
    expect(alive.socket.readyState).toBe(alive.socket.OPEN)
    expect(await metric('svc_relay_ws_drops_total{reason="no_pong"}')).toBe(before + 1)
  })

  test('when it does not read, while others get every change', async () => {
    const patient = await startService({ worker: false, socketLimits: { pingSeconds: 300 } })
    const { id, token } = await startedSession(patient)
    const [slow, fast] = [
      await connectSocket(patient.api.url, { token }),
      await connectSocket(patient.api.url, { token }),
    ]
    slow.socket.pause()
    await writeActive(patient.api.sql, id)
    // Long messages, which fill the buffers of the operating system soon.
    await patient.api.sql`update relay_sessions set region = repeat('x', 100000) where id = ${id}`
    const drops = () => metric('svc_relay_ws_drops_total{reason="slow"}', patient.api)
    const dropped = async () => {
      await patient.api.sql`update relay_sessions set active_at = clock_timestamp() where id = ${id}`
      return drops()
    }
    expect(await eventually(dropped, (count) => count === 1)).toBe(1)
    expect(fast.socket.readyState).toBe(fast.socket.OPEN)
    expect(await metric('svc_relay_ws_clients', patient.api)).toBe(1)
  })

  test('when it sends a message', async () => {
    const { token } = await startedSession()
    const client = await connectSocket(api.url, { token })
    client.socket.send('hello')
    expect((await client.closed).code).toBe(1008)
    const long = await connectSocket(api.url, { token })
    long.socket.send('x'.repeat(2000))
    expect((await long.closed).code).toBe(1009)
  })

  test('when its user signs out, while holders of the session token stay', async () => {
    const { user, token } = await startedSession()
    const [client, holder] = [
      await connectSocket(api.url, { bearer: user.bearer }),
      await connectSocket(api.url, { token }),
    ]
    await api.post('/auth/logout', {}, { bearer: user.bearer })
    expect(await client.closed).toEqual({ code: 4401, reason: 'sign in again' })
    expect(holder.socket.readyState).toBe(holder.socket.OPEN)
  })

  test('when the account is disabled', async () => {
    const { user } = await startedSession()
    const client = await connectSocket(api.url, { bearer: user.bearer })
    await api.post(`/admin/users/${user.userId}/disable`, {}, { headers: operator })
    expect((await client.closed).code).toBe(4401)
  })

  test('when its access token expires', async () => {
    const { user } = await startedSession()
    const expiring = await api.services.accessTokens.verify(user.bearer)
    const client = await connectSocket(api.url, { bearer: user.bearer })
    expect(expiring?.tokenExpiresAtSeconds).toBeGreaterThan(Date.now() / 1000)
    // The verified token is shared with the socket.
    Object.assign(expiring ?? {}, { tokenExpiresAtSeconds: Date.now() / 1000 - 1 })
    expect((await client.closed).code).toBe(4401)
  })

  test('when the process stops, with the code after which clients connect elsewhere', async () => {
    const stopping = await startService({ worker: false })
    const client = await connectSocket(stopping.api.url, await startedSession(stopping))
    await stopping.api.services.relaySockets.stop()
    expect((await client.closed).code).toBe(1001)
    const refused = connectSocket(stopping.api.url, await startedSession(stopping))
    expect(await refusalOf(refused)).toEqual([503, 'temporarily_unavailable'])
  })
})

test('the metrics count the connected clients', async () => {
  const counted = await startService({ worker: false })
  const client = await connectSocket(counted.api.url, await startedSession(counted))
  expect(await metric('svc_relay_ws_clients', counted.api)).toBe(1)
  client.socket.close()
  await eventually(
    () => metric('svc_relay_ws_clients', counted.api),
    (count) => count === 0,
  )
})
