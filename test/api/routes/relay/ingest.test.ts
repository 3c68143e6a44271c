/** What a relay reports about its stream, and what its owner and operators see of it. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../../../api/views/relay-session.ts'
import { statusAndCode } from '../../../support/api.ts'
import { type FakeRelayService, startFakeRelayService } from '../../../support/fake-relays.ts'
import { operator } from '../../../support/relays.ts'

const healthIntervalSeconds = 10
let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({
    variables: {
      SVC_RELAY_HEALTH_INTERVAL_SECONDS: String(healthIntervalSeconds),
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300',
      SVC_RELAY_MAX_SESSION_SECONDS: '3600',
    },
  })
})

/** Two links with 5.2 Mbps. */
const stream = {
  publishing: true,
  bitrate_kbps: 5200,
  rtt_ms: 41.5,
  loss_pct: 0.25,
  repeat_pct: 12.5,
  links: 2,
  players: 1,
  bytes_total: 1_000_000,
  engine: 'srt-live-transmit',
  refused: { unauthorized: 3, bad_request: 1 },
}
const noStream = { publishing: false, bitrate_kbps: 0, links: 0, players: 0, bytes_total: 0, engine: 'sls' }

async function startRelay() {
  const user = await service.user()
  const { session_id } = await service.startActiveRelay(user)
  const report = async (stats: unknown) => {
    const { status, body } = await service.sendReport(session_id, { stats })
    expect([status, body]).toEqual([
      200,
      { state: 'active', desired: 'run', report_in_seconds: expect.any(Number), epoch: expect.any(String) },
    ])
  }
  const readSession = async () => (await user.active()).session as SessionView
  return { user, session_id, report, readSession }
}

/** Moves the reports of the session into the past. */
const ageReports = (sessionId: string, seconds: number) => service.api.sql`
  update relay_health set ingest_at = ingest_at - make_interval(secs => ${seconds}),
    publishing_since = publishing_since - make_interval(secs => ${seconds}),
    last_report_at = last_report_at - make_interval(secs => ${seconds})
  where session_id = ${sessionId}`

const secondsSince = (at: string | undefined) => (Date.now() - Date.parse(at ?? '')) / 1000

test('a report that arrives after a newer one does not count its bytes twice', async () => {
  const { report, session_id } = await startRelay()
  for (const bytes_total of [10_010_000_000, 10_020_000_000, 10_010_000_000, 10_020_000_000])
    await report({ ...stream, bytes_total })
  const [row] = await service.api.sql<{ bytesReceived: number }[]>`
    select bytes_received::float8 from relay_health where session_id = ${session_id}`
  expect(row?.bytesReceived).toBe(10_020_000_000)
})

describe('the totals of a session', () => {
  interface Totals {
    readonly seconds_publishing: number
    readonly bytes_received: number
    readonly average_bitrate_kbps: number | null
    readonly peak_bitrate_kbps: number
  }
  /** Makes the session active for so many seconds. */
  const activeFor = (sessionId: string, seconds: number) => service.api.sql`
    update relay_sessions set active_at = now() - make_interval(secs => ${seconds}) where id = ${sessionId}`
  async function readTotals(bearer: string, sessionId: string): Promise<Totals> {
    const own = await service.api.get<{ session: Totals }>(`/relay/sessions/${sessionId}`, { bearer })
    const admin = await service.api.get<{ session: { ingest_summary: Totals } }>(`/admin/sessions/${sessionId}`, {
      headers: operator,
    })
    expect(admin.body.session.ingest_summary).toMatchObject(totalsOf(own.body.session))
    return totalsOf(own.body.session)
  }
  const totalsOf = (totals: Totals): Totals => ({
    seconds_publishing: totals.seconds_publishing,
    bytes_received: totals.bytes_received,
    average_bitrate_kbps: totals.average_bitrate_kbps,
    peak_bitrate_kbps: totals.peak_bitrate_kbps,
  })

  test('are those that its relay has measured, whenever it reports', async () => {
    const { user, report, session_id } = await startRelay()
    await activeFor(session_id, 60)
    const measured = { bytes_total: 3_125_000, publishing_ms_total: 10_400, peak_bitrate_kbps: 2900, started_at_ms: 1 }
    await report({ ...stream, bitrate_kbps: 2500, ...measured })
    await report({ ...noStream, ...measured })
    expect(await readTotals(user.bearer, session_id)).toEqual({
      seconds_publishing: 10,
      bytes_received: 3_125_000,
      average_bitrate_kbps: 2404,
      peak_bitrate_kbps: 2900,
    })
  })

  test('add up those of the processes of its relays', async () => {
    const { user, report, session_id } = await startRelay()
    await activeFor(session_id, 60)
    const first = { ...stream, bytes_total: 1_000_000, publishing_ms_total: 4_000, peak_bitrate_kbps: 7000 }
    const second = { ...stream, bytes_total: 2_000_000, publishing_ms_total: 4_000, peak_bitrate_kbps: 6000 }
    await report({ ...first, started_at_ms: 1 })
    await report({ ...second, started_at_ms: 2 })
    await report({ ...first, started_at_ms: 1, publishing_ms_total: 4_500 })
    expect(await readTotals(user.bearer, session_id)).toEqual({
      seconds_publishing: 8,
      bytes_received: 3_000_000,
      average_bitrate_kbps: 3000,
      peak_bitrate_kbps: 7000,
    })
  })

  test('of a former relay have an average of at most the peak, and no more time than the session was active', async () => {
    const { user, report, session_id } = await startRelay()
    await report({ ...stream, bytes_total: 1_000_000 })
    await ageReports(session_id, 2)
    await report({ ...stream, bytes_total: 9_000_000 })
    await activeFor(session_id, 60)
    expect(await readTotals(user.bearer, session_id)).toEqual({
      seconds_publishing: 2,
      bytes_received: 9_000_000,
      average_bitrate_kbps: 5200,
      peak_bitrate_kbps: 5200,
    })
    await activeFor(session_id, 0.5)
    expect((await readTotals(user.bearer, session_id)).seconds_publishing).toBeLessThan(2)
  })

  test('include the last report of a relay whose session has stopped', async () => {
    const { user, report, session_id } = await startRelay()
    await activeFor(session_id, 120)
    const measured = { bytes_total: 1_000_000, publishing_ms_total: 4_000, peak_bitrate_kbps: 6000, started_at_ms: 1 }
    await report({ ...stream, ...measured })
    await user.stop({ session_id, immediate: true })
    const last = { ...noStream, ...measured, bytes_total: 3_000_000, publishing_ms_total: 9_000 }
    const refused = await service.sendReport(session_id, { stats: last })
    expect(statusAndCode(refused)).toEqual([409, 'invalid_transition'])
    const totals = {
      seconds_publishing: 9,
      bytes_received: 3_000_000,
      average_bitrate_kbps: 2667,
      peak_bitrate_kbps: 6000,
    }
    expect(await readTotals(user.bearer, session_id)).toEqual(totals)
    const [row] = await service.api.sql`
      select is_publishing, players from relay_health where session_id = ${session_id}`
    expect(row).toEqual({ isPublishing: true, players: 1 })

    await service.sendReport(session_id, {
      instance_id: 'another',
      stats: { ...last, bytes_total: 9e9, started_at_ms: 2 },
    })
    await service.api.sql`update relay_sessions set stopped_at = now() - interval '61 seconds' where id = ${session_id}`
    await service.sendReport(session_id, { stats: { ...last, bytes_total: 9e9 } })
    expect(await readTotals(user.bearer, session_id)).toEqual(totals)
  })
})

describe('the ingest of a live session', () => {
  test('is null before the relay has reported its stream', async () => {
    const user = await service.user()
    const started = (await user.start()).body.session
    expect(started).toMatchObject({ ingest: null, ends_at: expect.stringMatching(/Z$/) })
    expect(started).not.toHaveProperty('engine')
  })

  test('is what the relay reported last', async () => {
    const { report, readSession } = await startRelay()
    await report(noStream)
    expect((await readSession()).ingest).toMatchObject({ publishing: false, bitrate_kbps: 0, links: 0 })
    await report(stream)
    const { ingest } = await readSession()
    const always = { loss_pct: 0.25, rtt_ms: 41.5, players: 1, since: expect.stringMatching(/Z$/) }
    expect(ingest).toEqual({ publishing: true, bitrate_kbps: 5200, links: 2, repeat_pct: 12.5, ...always })
    // A relay of an earlier build.
    await report({ ...stream, repeat_pct: undefined })
    expect((await readSession()).ingest).toEqual({ publishing: true, bitrate_kbps: 5200, links: 2, ...always })
    const { created_at } = await readSession()
    expect(Date.parse(ingest?.since ?? '')).toBeGreaterThan(Date.parse(created_at))
  })

  test('has the time since which the stream comes in', async () => {
    const { report, readSession, session_id } = await startRelay()
    await report(stream)
    await ageReports(session_id, 20)
    await report({ ...stream, bitrate_kbps: 100 })
    const { ingest } = await readSession()
    expect(ingest).toMatchObject({ publishing: true, bitrate_kbps: 100 })
    expect(secondsSince(ingest?.since)).toBeGreaterThanOrEqual(20)
    await report(noStream)
    expect(Date.parse((await readSession()).ingest?.since ?? '')).toBeGreaterThan(
      Date.parse(ingest?.since ?? '') + 20_000,
    )
  })

  test('has no stream when the relay has not reported for three intervals', async () => {
    const { report, readSession, session_id } = await startRelay()
    await report(stream)
    await ageReports(session_id, 2 * healthIntervalSeconds)
    expect((await readSession()).ingest).toMatchObject({ publishing: true, bitrate_kbps: 5200 })
    await ageReports(session_id, 1.1 * healthIntervalSeconds)
    const { ingest } = await readSession()
    expect(ingest).toMatchObject({ publishing: false, bitrate_kbps: 0, links: 0 })
    expect(secondsSince(ingest?.since)).toBeGreaterThan(30)
  })

  test('is in every reply with the session, also in the dock view', async () => {
    const { user, report, session_id } = await startRelay()
    await report(stream)
    const { bearer } = user
    const get = <Body>(path: string) => service.api.get<Body>(path, { bearer })
    const asOperator = <Body>(path: string) => service.api.get<Body>(`/admin${path}`, { headers: operator })
    const sessions = [
      (await get<{ session: SessionView }>('/relay/active?view=dock')).body.session,
      (await get<{ sessions: SessionView[] }>('/relay/active')).body.sessions[0],
      (await get<{ active_relay: SessionView }>('/auth/session?view=dock')).body.active_relay,
      (await user.start()).body.session,
      (await asOperator<{ session: SessionView }>(`/sessions/${session_id}`)).body.session,
      (await asOperator<{ sessions: SessionView[] }>(`/sessions?user_id=${user.userId}`)).body.sessions[0],
      (await asOperator<{ sessions: SessionView[] }>(`/users/${user.userId}`)).body.sessions[0],
      (await user.stop({ session_id })).body.session,
    ]
    for (const session of sessions)
      expect(session).toMatchObject({ ingest: { publishing: true, bitrate_kbps: 5200 }, ends_at: expect.any(String) })
    const stopped = (await user.stop({ session_id, immediate: true })).body.session
    expect(stopped.state).toBe('stopped')
    for (const field of ['ingest', 'ends_at', 'engine']) expect(stopped).not.toHaveProperty(field)
  })

  test('ends at the latest one and a half times the maximum duration after it was created', async () => {
    const { readSession } = await startRelay()
    const { created_at, ends_at } = await readSession()
    expect(Date.parse(ends_at ?? '') - Date.parse(created_at)).toBe(1.5 * 3600 * 1000)
  })

  test('names the engine only when the relay has none', async () => {
    const { report, readSession } = await startRelay()
    await report({ ...noStream, engine: 'none' })
    expect((await readSession()).engine).toBe('none')
    await report(stream)
    expect(await readSession()).not.toHaveProperty('engine')
  })
})

test('operators see the whole summary and the totals of a session', async () => {
  const { report, session_id } = await startRelay()
  const read = async () =>
    (
      await service.api.get<{ session: { ingest_summary: object | null } }>(`/admin/sessions/${session_id}`, {
        headers: operator,
      })
    ).body.session.ingest_summary
  expect(await read()).toBeNull()
  await report(stream)
  await ageReports(session_id, 12)
  await service.api.sql`update relay_sessions set active_at = active_at - interval '1 minute' where id = ${session_id}`
  await report({ ...stream, bitrate_kbps: 300, bytes_total: 1_500_000 })
  expect(await read()).toEqual({
    publishing: true,
    bitrate_kbps: 300,
    rtt_ms: 41.5,
    loss_pct: 0.25,
    repeat_pct: 12.5,
    links: 2,
    players: 1,
    engine: 'srt-live-transmit',
    publishing_since: expect.stringMatching(/Z$/),
    reported_at: expect.stringMatching(/Z$/),
    bytes_received: 1_500_000,
    peak_bitrate_kbps: 5200,
    seconds_publishing: 12,
    average_bitrate_kbps: expect.closeTo(1000, -2),
  })
})

describe('a report with garbage in its statistics', () => {
  const html = '<script>alert(1)</script>'
  const garbage = [
    ['text', { publishing: html, bitrate_kbps: html, links: html, engine: html, bytes_total: html, [html]: html }],
    ['null', { publishing: null, bitrate_kbps: null, rtt_ms: null, loss_pct: null, links: null, bytes_total: null }],
    ['arrays', { publishing: [true], bitrate_kbps: [1], links: [[]], groups: [[], 7, { connections: html }] }],
    ['refusals', { refused: { unauthorized: html, conflict: -1, down: 0.5, [html]: 1 } }],
    ['a list of refusals', { refused: [html] }],
    ['objects', { publishing: {}, bitrate_kbps: { valueOf: 1 }, groups: {}, engine: { toString: 'sls' } }],
    ['the names of prototypes', JSON.parse('{"__proto__":{"publishing":true},"constructor":1,"toString":2}')],
  ] as const

  test.each(garbage)('such as %s leaves the ingest and the state as they were', async (_, stats) => {
    const { report, readSession } = await startRelay()
    await report(stream)
    const before = await readSession()
    await report(stats)
    expect(await readSession()).toEqual(before)
    expect(JSON.stringify(before)).not.toContain('script')
  })

  test('in one member uses the others', async () => {
    const { report, readSession } = await startRelay()
    await report({ ...stream, bitrate_kbps: html, links: -3, rtt_ms: '41' })
    expect((await readSession()).ingest).toMatchObject({ publishing: true, bitrate_kbps: 0, links: 0 })
  })

  test('such as numbers that are too large uses the largest credible ones', async () => {
    const { report, readSession, session_id } = await startRelay()
    await report({ ...stream, bitrate_kbps: 1e300, links: 1e300, players: 1e300, rtt_ms: 1e300, loss_pct: 1e300 })
    expect((await readSession()).ingest).toMatchObject({ bitrate_kbps: 1_000_000, links: 64 })
    // JSON.parse reads 1e999 as Infinity.
    const [secret = ''] = service.api.services.config.relayAuthSecrets
    const body = `{"session_id":"${session_id}","instance_id":"fake-${session_id}","stats":{"publishing":true,"bitrate_kbps":1e999,"bytes_total":-1e999}}`
    const reply = await service.api.post('/relay/health', body, { headers: { 'X-Relay-Auth': secret } })
    expect(reply.status).toBe(200)
    expect((await readSession()).ingest).toMatchObject({ publishing: true, bitrate_kbps: 0 })
  })

  test('of 10 MB is refused, and the session stays active', async () => {
    const { readSession, session_id } = await startRelay()
    const refused = await service.sendReport(session_id, { stats: { ...stream, padding: 'x'.repeat(10_000_000) } })
    expect(statusAndCode(refused)).toEqual([413, 'payload_too_large'])
    expect(await readSession()).toMatchObject({ state: 'active', ingest: null })
  })
})

describe('a relay is idle', () => {
  const isIdle = async (sessionId: string) => {
    const [row] = await service.api.sql<{ isIdle: boolean }[]>`
      select idle_since is not null as is_idle from relay_health where session_id = ${sessionId}`
    return row?.isIdle
  }

  test.each([
    [{ publishing: false }, true],
    [{ publishing: true }, false],
    [{ publishing: 'no' }, false],
    [{ publishing: false, groups: [{ connections: [{}] }] }, true],
    [{ publishing: 'no', groups: [] }, true],
    [{ groups: [{ connections: [{}] }] }, false],
    [{ groups: 'none' }, false],
    [{}, false],
  ])('with the statistics %j: %s', async (stats, expected) => {
    const { report, session_id } = await startRelay()
    await report(stats)
    expect(await isIdle(session_id)).toBe(expected)
  })
})
