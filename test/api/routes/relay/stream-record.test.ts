/** The stream record of a session, as its owner and apps read it. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { packPoint } from '../../../../domain/relay/stream-record.ts'
import { type ErrorBody, type GivenUser, statusAndCode } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { operator } from '../../../support/relays.ts'
import { longRelayTimeouts } from '../../../support/subscribers.ts'

const service = await startFakeRelayService({
  variables: { ...longRelayTimeouts, SVC_RATE_LIMITS: highLimits({ relay_history: 600 }) },
})
const { sql } = service.api

interface Point {
  readonly at: string
  readonly bitrate_kbps: number
}
interface StreamRecord extends Partial<ErrorBody> {
  readonly session_id: string
  readonly from: string
  readonly to: string
  readonly points: readonly Point[]
  readonly events: readonly { readonly kind: string; readonly at: string }[]
}

const show = (user: Pick<GivenUser, 'bearer'>, id: string, query: Record<string, string> = {}) =>
  service.api.get<StreamRecord>(`/relay/sessions/${id}/record?${new URLSearchParams(query)}`, { bearer: user.bearer })

const stats = { publishing: true, bitrate_kbps: 5200, links: 3, loss_pct: 0.24, rtt_ms: 41.5, players: 1 }

async function startStreaming() {
  const user = await service.user()
  const { session_id: id } = await service.startActiveRelay(user)
  const events = [{ seq: 1, kind: 'stream_started', age_ms: 0, bitrate_kbps: 5000 }]
  expect((await service.sendReport(id, { stats: { ...stats, started_at_ms: 1 }, events })).status).toBe(200)
  return { user, id }
}

/** A session that began so long ago, with a point for each 10 s of it, and has not ended. */
async function addEvening(userId: string, hours: number): Promise<string> {
  const point = packPoint({ bitrateKbps: 4000, links: 3, lossTenths: 5, rttMs: 60, players: 1 })
  return sql.begin(async (tx) => {
    // Without the trigger, which requires that a session begins in its first state.
    await tx`set local session_replication_role = replica`
    const [row] = await tx<{ id: string }[]>`
      insert into relay_sessions (user_id, connection_id, region, state, reason, command, command_initiator, created_at)
      values (${userId}, ${randomUUID()}, 'here', 'active', 'relay_ready', 'run', 'user',
        to_timestamp(floor(extract(epoch from now()) / 600) * 600 - ${hours * 3600}::int)) returning id`
    const id = row?.id ?? ''
    await tx`insert into relay_health (session_id, instance_id) values (${id}, 'i-1')`
    await tx`
      insert into stream_records (session_id, began_at, points)
      select id, created_at + make_interval(mins => 10 * part), pack_stream_points(array_fill(${point}::bigint, array[60]))
      from relay_sessions, generate_series(0, ${hours * 6 - 1}::int) part where id = ${id}`
    return id
  }) as Promise<string>
}

describe('the record of a session', () => {
  test('has the points and the events of a live session, and the same points after its end', async () => {
    const { user, id } = await startStreaming()
    const { status, body } = await show(user, id)
    expect(status).toBe(200)
    const [session] = await sql<{ createdAt: Date }[]>`select created_at from relay_sessions where id = ${id}`
    expect(body).toMatchObject({ session_id: id, from: session?.createdAt.toISOString() })
    const { at } = body.points[0] ?? { at: '' }
    expect(body.points).toEqual([{ at, bitrate_kbps: 5200, links: 3, loss_pct: 0.2, rtt_ms: 42, players: 1 }])
    expect(Date.parse(at) % 10_000).toBe(0)
    expect(Date.parse(at)).toBeGreaterThan(Date.parse(body.from) - 10_000)
    expect(Date.parse(at)).toBeLessThan(Date.parse(body.to))
    expect(body.events).toEqual([
      { kind: 'command', at: body.from, command: 'run', initiator: 'user', client: null },
      { kind: 'transition', at: expect.any(String), state: 'active', reason: 'relay_ready', initiator: 'relay' },
      { kind: 'stream_started', at: expect.any(String), bitrate_kbps: 5000 },
    ])
    await user.stop({ session_id: id, immediate: true })
    const ended = (await show(user, id)).body
    expect(ended.points).toEqual(body.points)
    const [last] = await sql<{ stoppedAt: Date }[]>`select stopped_at from relay_sessions where id = ${id}`
    expect(ended.to).toBe(last?.stoppedAt.toISOString())
    expect(ended.events).toMatchObject([
      ...body.events,
      { kind: 'command', command: 'stop_now', initiator: 'user' },
      { kind: 'transition', state: 'grace', reason: 'stop_requested', initiator: 'user' },
      { kind: 'transition', state: 'stopped', at: ended.to },
      { kind: 'stream_ended', at: ended.to },
    ])
  })

  test('has replaced relays, and the detail of the last transition', async () => {
    const { user, id } = await startStreaming()
    await sql`
      insert into relay_replacements (session_id, binding, instance_id, replaced_by, cause, failed_at, last_report_at, restored_at)
      select id, 2, 'i-1', 'i-2', 'relay_gone', created_at + interval '1 millisecond', created_at, created_at + interval '8.25 seconds'
      from relay_sessions where id = ${id}`
    await sql`update relay_sessions set detail = 'relay_replaced' where id = ${id}`
    expect((await show(user, id)).body.events).toMatchObject([
      { kind: 'command' },
      { kind: 'relay_replaced', away_seconds: 8.2, cause: 'relay_gone' },
      { kind: 'transition', state: 'active', detail: 'relay_replaced' },
      { kind: 'stream_started' },
    ])
  })

  test('has what happened on the signal path, and the commands with who gave them', async () => {
    const { user, id } = await startStreaming()
    const plugin = await service.api.given.signIn(user, 'Deck of Ada')
    const path_events = [
      { seq: 1, kind: 'links_changed', age_ms: 0, from: 3, to: 2 },
      { seq: 2, kind: 'player_joined', age_ms: 0, players: 2 },
      { seq: 3, kind: 'caller_refused', age_ms: 0, reason: 'conflict', role: 'publisher', count: 7 },
    ]
    await service.sendReport(id, { stats: { ...stats, started_at_ms: 1 }, path_events })
    await service.api.post('/relay/stop', { session_id: id }, { bearer: plugin.bearer })
    const ending = { reason: 'a secret', public_reason: 'Music that was reported.' }
    await service.api.post(`/admin/sessions/${id}/disconnect`, ending, { headers: operator })
    const { events } = (await show(user, id)).body
    const at = expect.any(String)
    expect(events.slice(3)).toEqual([
      { kind: 'links_changed', at, from: 3, to: 2 },
      { kind: 'player_joined', at, players: 2 },
      { kind: 'caller_refused', at, reason: 'conflict', role: 'publisher', count: 7 },
      { kind: 'command', at, command: 'stop', initiator: 'user', client: 'Deck of Ada' },
      { kind: 'transition', at, state: 'grace', reason: 'stop_requested', initiator: 'user' },
      {
        kind: 'command',
        at,
        command: 'disconnect',
        initiator: 'operator',
        client: null,
        public_reason: ending.public_reason,
      },
      {
        kind: 'transition',
        at,
        state: 'stopped',
        reason: 'force_disconnected',
        initiator: 'operator',
        public_reason: ending.public_reason,
      },
      { kind: 'stream_ended', at, bitrate_kbps: 0 },
    ])
  })

  test('has a point for each 10 s of 16 hours, and is shown within half a second', async () => {
    const user = await service.user()
    const id = await addEvening(user.userId, 16)
    await show(user, id)
    const begunAt = performance.now()
    const { body } = await show(user, id)
    expect(performance.now() - begunAt).toBeLessThan(500)
    expect(body.points).toHaveLength(5760)
    const begin = Date.parse(body.from)
    expect(body.points.map(({ at }) => (Date.parse(at) - begin) / 10_000)).toEqual(body.points.map((_, index) => index))
  })

  test('is shown for the range that is asked for', async () => {
    const { user, id } = await startStreaming()
    const whole = (await show(user, id)).body
    const [started, last] = whole.events.slice(-2)
    const later = new Date(Date.parse(last?.at ?? '') + 60_000).toISOString()
    const upToStart = (await show(user, id, { to: started?.at ?? '' })).body
    expect(upToStart).toMatchObject({ from: whole.from, to: started?.at, events: whole.events.slice(0, -1) })
    const ahead = (await show(user, id, { from: later, to: '2100-01-01T01:00:00+01:00' })).body
    expect(ahead).toMatchObject({ from: later, to: '2100-01-01T00:00:00.000Z', points: [], events: [] })
    const since = (await show(user, id, { from: last?.at ?? '' })).body
    expect(since.points).toEqual(whole.points)
    expect(since.events.at(-1)).toEqual(last)
    const evening = await addEvening(user.userId, 2)
    const { from } = (await show(user, evening)).body
    const at = (seconds: number) => new Date(Date.parse(from) + seconds * 1000).toISOString()
    const { points } = (await show(user, evening, { from: at(615), to: at(630) })).body
    expect(points.map((point) => point.at)).toEqual([at(610), at(620)])
  })

  test.each([
    ['from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z'],
    ['from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z'],
    ['from=2999-01-01T00:00:00Z'],
    ['to=2000-01-01T00:00:00Z'],
    ['from=yesterday'],
    ['from='],
    ['to=1769900000'],
    ['from=2026-02-30T00:00:00Z'],
    ['to=9999-12-31T23:59:59-01:00'],
    ['from=2026-01-01T00:00:00'],
  ])('is refused for %s, which is no range', async (query) => {
    const { user, id } = await startStreaming()
    const answer = await service.api.get<ErrorBody>(`/relay/sessions/${id}/record?${query}`, { bearer: user.bearer })
    expect(statusAndCode(answer)).toEqual([400, 'invalid_request'])
  })

  test('is not found for another user, for an unknown session and without a sign-in', async () => {
    const { id } = await startStreaming()
    const other = await service.user()
    expect(statusAndCode(await show(other, id))).toEqual([404, 'not_found'])
    expect(statusAndCode(await show(other, randomUUID()))).toEqual([404, 'not_found'])
    expect(statusAndCode(await service.api.get(`/relay/sessions/${id}/record`))).toEqual([401, 'unauthorized'])
  })

  test('of years in which there was no session is empty', async () => {
    const { user, id } = await startStreaming()
    const query = { from: '0000-01-01T00:00:00Z', to: '0000-01-02T00:00:00Z' }
    expect((await show(user, id, query)).body).toMatchObject({ points: [], events: [] })
  })
})
