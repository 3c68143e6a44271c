/** The views of a session: which of them contain addresses and secrets. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../../api/views/relay-session.ts'
import { isLinksTicket } from '../../../platform/links-tickets.ts'
import { instanceSecret } from '../../../providers/relay/instance-secrets.ts'
import { statusAndCode, streamTokenOf } from '../../support/api.ts'
import { writeActive } from '../../support/relay-rows.ts'
import { startService, type TestService } from '../../support/relays.ts'

interface OneSession {
  readonly session: SessionView
}
interface ActiveSessions extends OneSession {
  readonly sessions: readonly SessionView[]
}

/** Without a worker, so that sessions keep the state in which they were accepted. */
let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})

describe('the dock view of a session', () => {
  const hiddenFields = ['relay_host', 'pair_token', 'relay_ws_token', 'connect', 'instance_id']

  test('contains neither the address nor the secrets of the relay, in every response with a session', async () => {
    const { api } = service
    const { bearer } = await service.user()
    const start = async (key: string) =>
      (await api.post<OneSession>('/relay/start?view=dock', {}, { bearer, headers: { 'Idempotency-Key': key } })).body
        .session
    const key = randomUUID()
    const reserved = await start(key)
    for (const field of hiddenFields) expect(reserved).not.toHaveProperty(field)
    const { session_id } = reserved
    await writeActive(api.sql, session_id)

    const active = (await api.get<ActiveSessions>('/relay/active?view=dock', { bearer })).body
    const summary = (await api.get<{ active_relay: SessionView }>('/auth/session?view=dock', { bearer })).body
    const started = await start(randomUUID())
    const replayed = await start(key)
    const stopped = (await api.post<OneSession>('/relay/stop?view=dock', { session_id }, { bearer })).body.session
    for (const session of [active.session, active.sessions[0], summary.active_relay, started, replayed, stopped]) {
      expect(session).toMatchObject({ session_id, relay_host_masked: '198.51.x.x' })
      for (const field of hiddenFields) expect(session).not.toHaveProperty(field)
      expect(JSON.stringify(session)).not.toMatch(/198\.51\.100\.7/)
    }
  })

  test.each(['owner', 'DOCK', '', 'dock&view=dock'])('cannot be requested as %j', async (view) => {
    const { bearer } = await service.user()
    const response = await service.api.get(`/relay/active?view=${view}`, { bearer })
    expect(statusAndCode(response)).toEqual([400, 'invalid_request'])
  })
})

test('the owner’s view of a session contains the addresses and secrets that are needed to stream', async () => {
  const user = await service.user()
  await writeActive(service.api.sql, (await user.start()).body.session.session_id)
  const streamToken = await streamTokenOf(service.api, user.userId)
  expect((await user.active()).session).toMatchObject({
    state: 'active',
    instance_id: 'i-1',
    relay_host: '198.51.100.7',
    relay_host_masked: '198.51.x.x',
    pair_token: expect.any(String),
    relay_ws_token: expect.any(String),
    connect: {
      srtla_url: `srtla://198.51.100.7:5000?streamid=publish/live/${streamToken}`,
      srt_url: `srt://198.51.100.7:4001?streamid=publish/live/${streamToken}`,
      player_url: expect.stringMatching(/^srt:\/\/198\.51\.100\.7:4000\?streamid=play\/live\/[\w-]{22}$/),
      stats_url: 'http://198.51.100.7:5080/stats',
    },
  })
})

test('the owner gets a ticket for the page of the relay about links, and the dock view none', async () => {
  const { api } = service
  const user = await service.user()
  const { session_id } = (await user.start()).body.session
  await writeActive(api.sql, session_id)
  const { connect } = (await user.active()).session ?? {}
  const url = new URL(connect?.links_url ?? '')
  expect(url.origin + url.pathname).toBe('http://198.51.100.7:5080/links')
  const [master = ''] = api.services.config.relayAuthSecrets
  const isValid = (instanceId: string, sessionId: string) =>
    isLinksTicket(url.searchParams.get('ticket') ?? '', instanceSecret(master, instanceId), sessionId, Date.now())
  expect(isValid('i-1', session_id)).toBe(true)
  expect(isValid('i-2', session_id)).toBe(false)
  expect(isValid('i-1', randomUUID())).toBe(false)

  const dock = await api.get('/relay/active?view=dock', { bearer: user.bearer })
  expect(JSON.stringify(dock.body)).not.toContain('ticket')
})

test('an instance with an IPv6 address has addresses to publish to over IPv6, which only its owner sees', async () => {
  const user = await service.user()
  const { session_id } = (await user.start()).body.session
  await writeActive(service.api.sql, session_id)
  expect((await user.active()).session?.connect).not.toHaveProperty('srtla_url_v6')

  await service.api.sql`update relay_sessions set relay_host_v6 = '2001:db8:7::17' where id = ${session_id}`
  const streamToken = await streamTokenOf(service.api, user.userId)
  expect((await user.active()).session).toMatchObject({
    relay_host_masked: '198.51.x.x',
    connect: {
      srtla_url: `srtla://198.51.100.7:5000?streamid=publish/live/${streamToken}`,
      srtla_url_v6: `srtla://[2001:db8:7::17]:5000?streamid=publish/live/${streamToken}`,
      srt_url_v6: `srt://[2001:db8:7::17]:4001?streamid=publish/live/${streamToken}`,
    },
  })
  const dock = await service.api.get('/relay/active?view=dock', { bearer: user.bearer })
  expect(JSON.stringify(dock.body)).not.toContain('2001:db8')
})

test('the addresses of relays that require encryption contain the passphrase, for the owner and for pairing', async () => {
  const SVC_RELAY_SRT_PASSPHRASE = 'Bridge-over_river.42'
  const { api, user } = await startService({ worker: false, variables: { SVC_RELAY_SRT_PASSPHRASE } })
  const streamer = await user()
  const { session_id, pair_token } = (await streamer.start()).body.session
  await writeActive(api.sql, session_id)
  const encrypted = (protocol: string) =>
    expect.stringMatching(
      new RegExp(`^${protocol}://.*[?]streamid=\\w+/live/[\\w-]+&passphrase=Bridge-over_river\\.42$`),
    )
  const publish = { srtla_url: encrypted('srtla'), srt_url: encrypted('srt') }
  const summary = await api.get<{ active_relay: SessionView }>('/auth/session', { bearer: streamer.bearer })
  for (const session of [(await streamer.active()).session, summary.body.active_relay])
    expect(session).toMatchObject({ connect: { ...publish, player_url: encrypted('srt') } })
  const headers = { 'X-Pair-Token': pair_token ?? '' }
  expect((await api.get('/relay/pair', { headers })).body).toEqual(publish)
  const dock = await api.get('/relay/active?view=dock', { bearer: streamer.bearer })
  expect(JSON.stringify(dock.body)).not.toContain(SVC_RELAY_SRT_PASSPHRASE)
})
