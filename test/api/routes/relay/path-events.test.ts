/** The path events that relays report: each is stored once, and a flood of callers in few rows. */
import { describe, expect, test } from 'vitest'
import { listPathEvents } from '../../../../db/relay/path-events.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { connectSocket } from '../../../support/relay-sockets.ts'
import { eventually } from '../../../support/relays.ts'
import { longRelayTimeouts } from '../../../support/subscribers.ts'

const service = await startFakeRelayService({ variables: longRelayTimeouts })
const { api } = service
const { sql } = api

async function startActive() {
  const user = await service.user()
  const { session_id: id } = await service.startActiveRelay(user)
  return { user, id }
}

const linksChanged = (seq: number, from = 3, to = 2, age_ms: unknown = 0) => ({
  seq,
  kind: 'links_changed',
  age_ms,
  from,
  to,
})
const joined = (seq: number, players: unknown = 1) => ({ seq, kind: 'player_joined', age_ms: 0, players })
const refused = (seq: number, count = 1, reason = 'unauthorized', role = 'publisher') => ({
  seq,
  kind: 'caller_refused',
  age_ms: 0,
  reason,
  role,
  count,
})

/** Sends a report with path events. @param startedAt of the process. */
const report = (id: string, events: unknown, startedAt = 1_000) =>
  service.sendReport(id, { path_events: events, stats: { started_at_ms: startedAt } })

const kindsOf = async (id: string) => (await listPathEvents(sql, id)).map(({ kind }) => kind)

describe('the path events of a report', () => {
  test('are stored in the order of their numbers, with their times', async () => {
    const { id } = await startActive()
    // A session is younger than an hour here, and no event is older than its session.
    await sql`update relay_sessions set created_at = created_at - interval '1 hour' where id = ${id}`
    const events = [refused(3, 7, 'passphrase', 'player'), joined(2), linksChanged(1, 3, 2, 5_000)]
    expect((await report(id, events)).status).toBe(200)
    const stored = await listPathEvents(sql, id)
    expect(stored).toEqual([
      { kind: 'links_changed', at: expect.any(Date), from: 3, to: 2 },
      { kind: 'player_joined', at: expect.any(Date), players: 1 },
      { kind: 'caller_refused', at: expect.any(Date), reason: 'passphrase', role: 'player', count: 7 },
    ])
    expect(+(stored[1]?.at ?? 0) - +(stored[0]?.at ?? 0)).toBeGreaterThanOrEqual(4_999)
  })

  test('are stored once, also by concurrent and repeated reports in any order', async () => {
    const { id } = await startActive()
    const first = [linksChanged(1)]
    const second = [...first, joined(2)]
    const third = [...second, refused(3, 5)]
    await Promise.all(
      Array.from({ length: 8 }, () => [first, second, third])
        .flat()
        .map((events) => report(id, events)),
    )
    await report(id, third)
    expect(await listPathEvents(sql, id)).toMatchObject([
      { kind: 'links_changed' },
      { kind: 'player_joined' },
      { kind: 'caller_refused', count: 5 },
    ])
  })

  test('count from 1 again in another process of the relay', async () => {
    const { id } = await startActive()
    await report(id, [joined(1), joined(2, 2)])
    await report(id, [joined(1)], 2_000)
    await report(id, [joined(1)], 2_000)
    expect(await kindsOf(id)).toHaveLength(3)
  })

  test('that are not valid are dropped, and the others and the report count', async () => {
    const { id } = await startActive()
    const events = [
      joined(0),
      joined(1),
      joined(2, -1),
      joined(3, 'many'),
      linksChanged(4, 3, 1.5),
      linksChanged(5, 3, 2, -1),
      refused(6, 1, 'an address: 192.0.2.1'),
      refused(7, 1, 'unauthorized', 'operator'),
      refused(8, 0),
      { seq: 9, kind: 'link_changed', age_ms: 0 },
      null,
      linksChanged(10, 2, 3, 1e300),
    ]
    expect((await report(id, events)).status).toBe(200)
    for (const broken of ['none', 7, { seq: 11 }, null]) expect((await report(id, broken)).status).toBe(200)
    // Without the time of the process a number says nothing.
    await service.sendReport(id, { path_events: [joined(12)] })
    expect(await listPathEvents(sql, id)).toMatchObject([
      // The session is younger than the event claims.
      { kind: 'links_changed', from: 2, to: 3 },
      { kind: 'player_joined', players: 1 },
    ])
  })

  test('of an instance that is not that of the session are not stored', async () => {
    const { id } = await startActive()
    const fields = { instance_id: 'i-another', path_events: [joined(1)], stats: { started_at_ms: 1 } }
    expect((await service.sendReport(id, fields)).status).toBe(409)
    expect(await kindsOf(id)).toEqual([])
  })

  test('are at most twenty of a report', async () => {
    const { id } = await startActive()
    await report(
      id,
      Array.from({ length: 30 }, (_, index) => joined(index + 1)),
    )
    expect(await kindsOf(id)).toHaveLength(20)
  })

  test('are not among the messages of stream events', async () => {
    const { user, id } = await startActive()
    const client = await connectSocket(api.url, { bearer: user.bearer, query: '?events=1' })
    const kinds: string[] = []
    client.socket.on('message', (data) => {
      const { type, kind } = JSON.parse(String(data)) as { type: string; kind?: string }
      if (type.includes('event')) kinds.push(kind ?? type)
    })
    await report(id, [joined(1)])
    const events = [{ seq: 1, kind: 'stream_started', age_ms: 0, bitrate_kbps: 4_000 }]
    await service.sendReport(id, { events, stats: { started_at_ms: 1_000 } })
    await eventually(
      () => kinds.length,
      (count) => count > 0,
    )
    expect(kinds).toEqual(['stream_started'])
  })
})

describe('a session', () => {
  test('keeps its last thousand events of links and players', async () => {
    const { id } = await startActive()
    await sql`
      insert into path_events (session_id, number, kind, at, players, instance_id, process_started_at_ms, seq)
      select ${id}, number, 'player_joined', now(), 1, 'i-1', 1, number from generate_series(1, 1000) number`
    await report(id, [refused(1), linksChanged(2), joined(3)])
    const [row] = await sql`
      select count(*)::int as events, min(number) as first, max(number) as last from path_events where session_id = ${id}`
    expect(row).toEqual({ events: 1_001, first: 3, last: 1_003 })
  })

  test('counts the callers of a flood in the latest event of their reason and role, once', async () => {
    const { id } = await startActive()
    await sql`
      insert into path_events (session_id, number, kind, at, reason, role, count, instance_id, process_started_at_ms, seq)
      select ${id}, number, 'caller_refused', now(), 'unauthorized', 'publisher', 1, 'i-1', 1, number
      from generate_series(1, 1000) number`
    const flood = [refused(1, 100), refused(2, 50), refused(3, 7, 'bad_mode', 'player')]
    await report(id, flood)
    await report(id, flood)
    await report(id, [refused(4, 1_000_000_000)])
    const stored = await listPathEvents(sql, id)
    expect(stored).toHaveLength(1_001)
    expect(stored.slice(-2)).toMatchObject([
      { reason: 'unauthorized', role: 'publisher', count: 1_000_000_000 },
      { reason: 'bad_mode', role: 'player', count: 7 },
    ])
  })
})
