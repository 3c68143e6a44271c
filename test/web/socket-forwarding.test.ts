/** WebSockets of the site's pages, which the site connects to the API. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type GivenUser, givePlan, startApi, type TestApi } from '../support/api.ts'
import { startApiDouble } from '../support/api-double.ts'
import { readMetrics } from '../support/metrics.ts'
import { rawRequest } from '../support/raw-http.ts'
import { writeActive } from '../support/relay-rows.ts'
import { connectSocket, refusalOf } from '../support/relay-sockets.ts'
import { eventually, type OneSession, startService } from '../support/relays.ts'
import { freeSiteUrl, startSite } from '../support/site.ts'

const siteUrl = await freeSiteUrl()
const api = await startApi({ SVC_SITE_URL: siteUrl }, { sockets: { pingSeconds: 0.5 } })
const site = await startSite(api, { SVC_SITE_URL: siteUrl })

const cookieOf = ({ bearer }: { bearer: string }) => ({ Cookie: `svc_session=${bearer}` })
const clientCount = async (at: TestApi = api) => (await readMetrics(at))('svc_relay_ws_clients')

/** Opens a WebSocket as a script of the site's pages does. */
const openSocket = (cookie: object, headers: object = {}, subprotocols = ['svc.relay.v1'], at = site) =>
  connectSocket(at.url, { subprotocols, headers: { Origin: siteUrl, ...cookie, ...headers } })

async function streamer(): Promise<{ user: GivenUser; session: OneSession['session'] }> {
  const user = await api.given.user()
  await givePlan(api.sql, user.userId)
  const headers = { 'Idempotency-Key': randomUUID() }
  const { body } = await api.post<OneSession>('/relay/start', {}, { bearer: user.bearer, headers })
  return { user, session: body.session }
}

test('a page of the site gets the sessions of the signed-in user, and their changes', async () => {
  const { user, session } = await streamer()
  const client = await openSocket(cookieOf(user), { 'Sec-Fetch-Site': 'same-origin' })
  expect(client.socket.protocol).toBe('svc.relay.v1')
  await client.message(
    (message) => message.session.session_id === session.session_id && message.session.state === 'provisioning',
  )
  await writeActive(api.sql, session.session_id)
  const { session: active } = await client.message((message) => message.session.state === 'active')
  expect(active).not.toHaveProperty('relay_ws_token')
})

test('neither the handshake nor a message contains a token', async () => {
  const { user, session } = await streamer()
  const client = await openSocket(cookieOf(user))
  await client.message(() => true)
  const answer = await rawRequest(
    site.url,
    'GET /api/v1/relay/ws HTTP/1.1',
    'Upgrade: websocket',
    'Connection: Upgrade, close',
    `Origin: ${siteUrl}`,
    `Cookie: svc_session=${user.bearer}`,
  )
  const seen = JSON.stringify([client.messages, answer])
  for (const token of [user.bearer, user.refreshToken, session.relay_ws_token, session.pair_token])
    expect(seen).not.toContain(token)
  expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([400, 'invalid_request'])
})

describe('a handshake is refused', () => {
  test.each([
    ['another origin', { Origin: 'https://evil.example' }],
    ['an opaque origin', { Origin: 'null' }],
    ['the API’s origin', { Origin: api.url }],
    ['no origin', { Origin: '' }],
    ['a sibling site, by Fetch Metadata', { 'Sec-Fetch-Site': 'same-site' }],
  ])('from %s', async (_, headers) => {
    const { user } = await streamer()
    expect(await refusalOf(openSocket(cookieOf(user), headers))).toEqual([403, 'forbidden'])
  })

  test('without a sign-in, whatever other credentials the page sends', async () => {
    const { user, session } = await streamer()
    const headers = { Authorization: `Bearer ${user.bearer}` }
    const subprotocols = ['svc.relay.v1', session.relay_ws_token ?? '']
    expect(await refusalOf(openSocket({}, headers, subprotocols))).toEqual([401, 'unauthorized'])
  })

  test('with a token that the API rejects, and the browser is not asked for a password', async () => {
    const refused = openSocket(cookieOf({ bearer: 'a.b.c' }))
    await expect(refused).rejects.toMatchObject({ status: 401, body: { error: { code: 'unauthorized' } } })
    const { headers } = (await refused.catch((error: unknown) => error)) as { headers: object }
    expect(headers).not.toHaveProperty('www-authenticate')
    expect(headers).toHaveProperty('x-request-id')
  })

  test('while the API is unavailable', async () => {
    const double = await startApiDouble()
    const alone = await startSite(double, { SVC_SITE_URL: await freeSiteUrl() })
    await double.close()
    const refused = openSocket(cookieOf({ bearer: 'a.b.c' }), { Origin: alone.url }, undefined, alone)
    await expect(refused).rejects.toMatchObject({ status: 503, headers: { 'retry-after': '2' } })
  })

  test('when the API answers with anything but a WebSocket', async () => {
    const double = await startApiDouble()
    const alone = await startSite(double, { SVC_SITE_URL: await freeSiteUrl() })
    const connect = () => openSocket(cookieOf({ bearer: 'a.b.c' }), { Origin: alone.url }, undefined, alone)
    double.respondWith(() => ({
      status: 429,
      headers: { 'Retry-After': '7' },
      body: { error: { code: 'rate_limited' } },
    }))
    await expect(connect()).rejects.toMatchObject({ status: 429, headers: { 'retry-after': '7' } })
    double.respondWith(() => ({ body: 'x'.repeat(100_000) }))
    await expect(connect()).rejects.toMatchObject({ status: 503 })
  })
})

test('the token of a session that a page offers is not forwarded: the cookie decides what it gets', async () => {
  const [own, other] = [await streamer(), await streamer()]
  const client = await openSocket(cookieOf(own.user), {}, ['svc.relay.v1', other.session.relay_ws_token ?? ''])
  const { session } = await client.message(() => true)
  expect(session.session_id).toBe(own.session.session_id)
})

describe('both sides close together', () => {
  test('the API’s close code reaches the page', async () => {
    const { user } = await streamer()
    const client = await openSocket(cookieOf(user))
    await api.post('/auth/logout', {}, { bearer: user.bearer })
    expect(await client.closed).toEqual({ code: 4401, reason: 'sign in again' })
  })

  test('when the page goes away, gracefully or not', async () => {
    const { user } = await streamer()
    const before = await clientCount()
    const [left, lost] = [await openSocket(cookieOf(user)), await openSocket(cookieOf(user))]
    expect(await clientCount()).toBe((before ?? 0) + 2)
    left.socket.close()
    lost.socket.terminate()
    await eventually(clientCount, (count) => count === before)
    expect((await left.closed).code).toBe(1005)
  })

  test('when the site stops', async () => {
    const { user } = await streamer()
    const stopping = await startSite(api, { SVC_SITE_URL: await freeSiteUrl() })
    const client = await openSocket(cookieOf(user), { Origin: stopping.url }, undefined, stopping)
    await stopping.stop()
    expect((await client.closed).code).toBe(1006)
  })

  test('when the page does not read: the API drops it through the site', async () => {
    const url = await freeSiteUrl()
    const patient = await startService({ worker: false, variables: { SVC_SITE_URL: url } })
    const slowSite = await startSite(patient.api, { SVC_SITE_URL: url })
    const user = await patient.user()
    const { session_id } = (await user.start()).body.session
    const client = await openSocket(cookieOf(user), { Origin: url }, undefined, slowSite)
    client.socket.pause()
    const { sql } = patient.api
    await writeActive(sql, session_id)
    await sql`update relay_sessions set region = repeat('x', 200000) where id = ${session_id}`
    const countAfterChanges = async () => {
      for (let changes = 0; changes < 10; changes += 1)
        await sql`update relay_sessions set active_at = clock_timestamp() where id = ${session_id}`
      return clientCount(patient.api)
    }
    expect(await eventually(countAfterChanges, (count) => count === 0)).toBe(0)
  })
})

test('other requests with an Upgrade header are answered as if they had none', async () => {
  const page = await rawRequest(site.url, 'GET /login HTTP/1.1', 'Upgrade: h2c', 'Connection: Upgrade')
  expect(page.status).toBe(200)
})
