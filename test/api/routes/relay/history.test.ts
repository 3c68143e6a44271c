/** The history of relay sessions, as their owner sees it. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../../../api/views/relay-session.ts'
import { type ErrorBody, type GivenUser, statusAndCode } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { type FakeRelayService, startFakeRelayService } from '../../../support/fake-relays.ts'
import { eventually, operator, type RelayUser } from '../../../support/relays.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({
    variables: {
      SVC_RELAY_HEALTH_INTERVAL_SECONDS: '10',
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300',
      SVC_RELAY_STOP_GRACE_SECONDS: '1',
      SVC_RATE_LIMITS: highLimits({ relay_history: 60 }),
    },
  })
})

interface Record {
  readonly session_id: string
  readonly connection_id: string
  readonly seconds_used: number
}
interface Page {
  readonly sessions: readonly Record[]
  readonly next_cursor: string | null
}
interface Detail {
  readonly session: Record & Pick<SessionView, 'ends_at' | 'ingest'>
  readonly transitions: readonly { readonly from: string; readonly to: string; readonly reason: string }[]
  readonly recent_bitrate: readonly { readonly at: string; readonly kbps: number }[]
}

const list = async (user: Pick<GivenUser, 'bearer'>, query = '') => {
  const { status, body } = await service.api.get<Page>(`/relay/sessions${query}`, { bearer: user.bearer })
  expect(status).toBe(200)
  return body
}
const show = (user: Pick<GivenUser, 'bearer'>, id: string) =>
  service.api.get<Detail & Partial<ErrorBody>>(`/relay/sessions/${id}`, { bearer: user.bearer })
const report = async (sessionId: string, stats: object) =>
  expect((await service.sendReport(sessionId, { stats })).status).toBe(200)

/** Runs a relay and ends it at once. */
async function runRelay(user: RelayUser, body: object = {}) {
  const session = await service.startActiveRelay(user, body)
  await user.stop({ session_id: session.session_id, immediate: true })
  return session
}

/** Ended sessions of two hours each, the newest first. */
const insertEnded = async (userId: string, count: number): Promise<string[]> =>
  (
    await service.api.sql.begin(async (tx) => {
      // Without the trigger, which requires that a session begins in its first state.
      await tx`set local session_replication_role = replica`
      return tx<{ id: string }[]>`
        insert into relay_sessions (user_id, connection_id, region, state, reason, command, command_initiator, created_at, stopped_at)
        select ${userId}, 'many', 'here', 'stopped', 'provision_failed', 'run', 'user',
          -- Several sessions end at the same time.
          now() - (n / 3) * interval '1 day' - interval '2 hours', now() - (n / 3) * interval '1 day'
        from generate_series(1, ${count}::int) n returning id`
    })
  ).map(({ id }) => id)

const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)

describe('the list of ended sessions', () => {
  test('has what each session was, used and received, and why it ended', async () => {
    const user = await service.user()
    const { session_id, region } = await service.startActiveRelay(user, { connection_id: 'obs' })
    await report(session_id, { publishing: true, bitrate_kbps: 6000, links: 2, players: 0, bytes_total: 3_000_000 })
    await report(session_id, { publishing: true, bitrate_kbps: 4000, links: 2, players: 0, bytes_total: 4_000_000 })
    expect(await list(user)).toEqual({ sessions: [], next_cursor: null })
    await user.stop({ session_id, immediate: true })
    expect(await list(user)).toEqual({
      sessions: [
        {
          session_id,
          connection_id: 'obs',
          region,
          state: 'stopped',
          reason: 'stop_requested',
          detail: null,
          initiator: 'user',
          cause: { reason: 'stop_requested', initiator: 'user' },
          created_at: timestamp,
          active_at: timestamp,
          stopped_at: timestamp,
          seconds_used: expect.any(Number),
          seconds_publishing: expect.any(Number),
          bytes_received: 4_000_000,
          average_bitrate_kbps: expect.any(Number),
          peak_bitrate_kbps: 6000,
        },
      ],
      next_cursor: null,
    })
  })

  test('names the stop as the cause of a session whose stop grace has elapsed', async () => {
    const user = await service.user()
    const { session_id } = await service.startActiveRelay(user)
    await user.stop({ session_id })
    const { sessions } = await eventually(
      () => list(user),
      (page) => page.sessions.length > 0,
    )
    expect(sessions).toMatchObject([
      { reason: 'grace_elapsed', initiator: 'timer', cause: { reason: 'stop_requested', initiator: 'user' } },
    ])
  })

  test('names the operator who disconnected a session', async () => {
    const user = await service.user()
    const { session_id } = await service.startActiveRelay(user)
    const path = `/admin/sessions/${session_id}/disconnect`
    await service.api.post(path, { reason: 'a suspect' }, { headers: operator })
    const page = await list(user)
    expect(page.sessions).toMatchObject([
      { reason: 'force_disconnected', initiator: 'operator', cause: { reason: 'force_disconnected' } },
    ])
    expect(JSON.stringify(page)).not.toContain('suspect')
  })

  test('counts the seconds of a session as the Time Bank does', async () => {
    const user = await service.user()
    const ids = [(await runRelay(user)).session_id, (await runRelay(user)).session_id]
    for (const [index, id] of ids.entries())
      await service.api.sql`
        update usage_intervals set started_at = ended_at - make_interval(secs => ${index * 100 + 50.25})
        where session_id = ${id}`
    expect((await list(user)).sessions.map(({ seconds_used }) => seconds_used)).toEqual([150, 50])
    const { body } = await service.api.get<{ consumed_seconds: number }>('/usage/current', { bearer: user.bearer })
    expect(body.consumed_seconds).toBe(200)
  })

  test('contains the session that ended last first, of one connection if one is asked for', async () => {
    const user = await service.user()
    const [first, second] = [
      await service.startActiveRelay(user, { connection_id: 'a' }),
      await service.startActiveRelay(user, { connection_id: 'b' }),
    ]
    for (const { session_id } of [second, first]) await user.stop({ session_id, immediate: true })
    const ids = (page: Page) => page.sessions.map(({ session_id }) => session_id)
    expect(ids(await list(user))).toEqual([first.session_id, second.session_id])
    expect(ids(await list(user, '?connection_id=b'))).toEqual([second.session_id])
    expect(ids(await list(user, '?connection_id=c'))).toEqual([])
  })

  test('is paged with each session once, also while sessions end', async () => {
    const user = await service.user()
    const ids = await insertEnded(user.userId, 120)
    const pages: Page[] = []
    for (let cursor: string | null = ''; cursor !== null && pages.length < 9; ) {
      const page: Page = await list(user, cursor ? `?connection_id=many&cursor=${cursor}` : '?connection_id=many')
      pages.push(page)
      cursor = page.next_cursor
      await insertEnded(user.userId, 1)
    }
    expect(pages.map((page) => page.sessions.length)).toEqual([50, 50, 20])
    expect(pages.flatMap((page) => page.sessions.map(({ session_id }) => session_id)).toSorted()).toEqual(
      ids.toSorted(),
    )
  })

  test('has as many sessions as the query asks for', async () => {
    const user = await service.user()
    await insertEnded(user.userId, 3)
    const { sessions, next_cursor } = await list(user, '?limit=2')
    expect([sessions.length, next_cursor]).toEqual([2, sessions[1]?.session_id])
    expect((await list(user, `?limit=2&cursor=${next_cursor}`)).sessions).toHaveLength(1)
  })

  test('contains no sessions of other users, and their cursors lead nowhere', async () => {
    const [user, other] = [await service.user(), await service.user()]
    const [id = ''] = await insertEnded(other.userId, 3)
    await insertEnded(user.userId, 3)
    expect((await list(user)).sessions).toHaveLength(3)
    expect(await list(user, `?cursor=${id}`)).toEqual({ sessions: [], next_cursor: null })
    expect(await list(user, `?cursor=${randomUUID()}`)).toEqual({ sessions: [], next_cursor: null })
    expect(statusAndCode(await service.api.get('/relay/sessions'))).toEqual([401, 'unauthorized'])
  })

  test.each([
    'cursor=x',
    'cursor=',
    'cursor=1',
    'connection_id=',
    'connection_id=%00',
    'limit=0',
    'limit=51',
    'limit=x',
    `connection_id=${'x'.repeat(65)}`,
  ])('refuses the query %s', async (query) => {
    const { bearer } = await service.user()
    const response = await service.api.get(`/relay/sessions?${query}`, { bearer })
    expect(statusAndCode(response)).toEqual([400, 'invalid_request'])
  })
})

describe('one session', () => {
  test('is shown with its transitions and without secrets after its end', async () => {
    const user = await service.user()
    const session = await runRelay(user)
    const { status, body } = await show(user, session.session_id.toUpperCase())
    const unexplained = { at: timestamp, public_reason: null }
    expect(status).toBe(200)
    expect(body).toEqual({
      session: (await list(user)).sessions[0],
      transitions: [
        { from: 'provisioning', to: 'active', reason: 'relay_ready', initiator: 'relay', ...unexplained },
        { from: 'active', to: 'grace', reason: 'stop_requested', initiator: 'user', ...unexplained },
        { from: 'grace', to: 'stopped', reason: 'stop_requested', initiator: 'user', ...unexplained },
      ],
      replacements: [],
      stream_events: [],
      recent_bitrate: [],
      share_link: null,
    })
  })

  test('is shown while it lives, with its ingest and the bitrate of the last ten minutes', async () => {
    const user = await service.user()
    const session = await service.startActiveRelay(user)
    const { session_id } = session
    expect((await show(user, session_id)).body).toMatchObject({ session: { ingest: null }, recent_bitrate: [] })
    await report(session_id, { publishing: true, bitrate_kbps: 1000, links: 1 })
    await service.api.sql`update relay_health set recent_slot = recent_slot - 2 where session_id = ${session_id}`
    await report(session_id, { publishing: true, bitrate_kbps: 3000, links: 1 })
    const { body } = await show(user, session_id)
    expect(body.session).toMatchObject({
      session_id,
      state: 'active',
      reason: 'relay_ready',
      initiator: 'relay',
      stopped_at: null,
      ends_at: timestamp,
      ingest: { publishing: true, bitrate_kbps: 3000, links: 1 },
      peak_bitrate_kbps: 3000,
    })
    expect(body.recent_bitrate.map(({ kbps }) => kbps)).toEqual([1000, 3000])
    const times = body.recent_bitrate.map(({ at }) => Date.parse(at))
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(20_000)
    await user.stop({ session_id, immediate: true })
    await service.api
      .sql`update relay_sessions set stopped_at = stopped_at + interval '1 hour' where id = ${session_id}`
    expect((await show(user, session_id)).body.recent_bitrate).toEqual([])
    await service.api.sql`update relay_health set recent_slot = recent_slot + 360 where session_id = ${session_id}`
    expect((await show(user, session_id)).body.recent_bitrate.map(({ kbps }) => kbps)).toEqual([1000, 3000])
    for (const secret of [session.relay_host, session.pair_token, session.relay_ws_token])
      expect(JSON.stringify(body)).not.toContain(secret)
  })

  test('without a transition was started by its user', async () => {
    const user = await service.user()
    const [id = ''] = await insertEnded(user.userId, 1)
    expect((await show(user, id)).body.session).toMatchObject({ initiator: 'user', seconds_used: 0, bytes_received: 0 })
  })

  test('of another user is not found, like an unknown one', async () => {
    const [user, other] = [await service.user(), await service.user()]
    const { session_id } = await runRelay(other)
    for (const id of [session_id, randomUUID(), 'x', '%00'])
      expect(statusAndCode(await show(user, id))).toEqual([404, 'not_found'])
    expect(statusAndCode(await show({ bearer: '' }, session_id))).toEqual([401, 'unauthorized'])
  })
})

test('the bitrates of the last ten minutes are shown for all live sessions of the caller', async () => {
  const [user, other] = [await service.user(), await service.user()]
  const bitrates = async ({ bearer }: { bearer: string }) => (await service.api.get('/relay/bitrates', { bearer })).body
  const { session_id } = await service.startActiveRelay(user)
  expect(await bitrates(user)).toEqual({ sessions: [{ session_id, recent_bitrate: [] }] })
  await report(session_id, { publishing: true, bitrate_kbps: 1000, links: 1 })
  expect(await bitrates(user)).toEqual({ sessions: [{ session_id, recent_bitrate: [{ at: timestamp, kbps: 1000 }] }] })
  expect(await bitrates(other)).toEqual({ sessions: [] })
  await user.stop({ session_id, immediate: true })
  expect(await bitrates(user)).toEqual({ sessions: [] })
  expect(statusAndCode(await service.api.get('/relay/bitrates'))).toEqual([401, 'unauthorized'])
})

test('the history can be read 60 times a minute', async () => {
  const user = await service.user()
  const statuses = []
  for (let index = 0; index < 61; index += 1) statuses.push((await show(user, randomUUID())).status)
  expect([statuses.filter((status) => status === 404).length, statuses.at(-1)]).toEqual([60, 429])
})
