/** The stream events that relays report: each is stored once, in order, over the relays of a session. */
import { describe, expect, test } from 'vitest'
import type { StreamEventKind } from '../../../../domain/relay/stream-events.ts'
import { fakeInstanceId } from '../../../support/fake-relay-provider.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { readMetrics } from '../../../support/metrics.ts'
import { eventually, operator, type RelayUser } from '../../../support/relays.ts'
import { longRelayTimeouts } from '../../../support/subscribers.ts'

const service = await startFakeRelayService({
  variables: { ...longRelayTimeouts, SVC_RELAY_REPLACEMENT_SECONDS: '60', SVC_RELAY_GRACE_SECONDS: '60' },
})
const { api } = service
const { sql } = api

interface ShownEvent {
  readonly kind: StreamEventKind
  readonly at: string
  readonly bitrate_kbps: number
}

async function startActive() {
  const user = await service.user()
  const { session_id: id } = await service.startActiveRelay(user)
  return { user, id }
}

const eventOf = (seq: unknown, kind: string, age_ms: unknown = 0, bitrate_kbps: unknown = 4_000) => ({
  seq,
  kind,
  age_ms,
  bitrate_kbps,
})

/** Sends a report with events. @param startedAt of the process. */
const report = (id: string, events: unknown, { startedAt = 1_000, ...fields }: Record<string, unknown> = {}) =>
  service.sendReport(id, { events, stats: { bitrate_kbps: 5_000, started_at_ms: startedAt }, ...fields })

async function eventsOf(user: RelayUser, id: string): Promise<readonly ShownEvent[]> {
  const { body } = await api.get<{ stream_events: readonly ShownEvent[] }>(`/relay/sessions/${id}`, {
    bearer: user.bearer,
  })
  return body.stream_events
}

const kindsOf = async (user: RelayUser, id: string) => (await eventsOf(user, id)).map(({ kind }) => kind)

const stateOf = async (id: string) => (await service.history(id)).session.state

describe('the events of a report', () => {
  test('are stored in the order of their numbers, with their times and bitrates, for the owner and for operators', async () => {
    const { user, id } = await startActive()
    expect(await eventsOf(user, id)).toEqual([])
    const events = [eventOf(2, 'stream_weak', 3_000, 512.4), eventOf(1, 'stream_started', 9_000)]
    expect((await report(id, events)).status).toBe(200)
    const stored = await eventsOf(user, id)
    expect(stored).toEqual([
      { kind: 'stream_started', at: expect.any(String), bitrate_kbps: 4_000 },
      { kind: 'stream_weak', at: expect.any(String), bitrate_kbps: 512 },
    ])
    const [started, weak] = stored.map(({ at }) => Date.parse(at))
    // The session is younger than the first event claims.
    expect((weak ?? 0) - (started ?? 0)).toBeLessThanOrEqual(6_000)
    expect((weak ?? 0) - (started ?? 0)).toBeGreaterThanOrEqual(0)
    const { body } = await api.get<{ stream_events: unknown }>(`/admin/sessions/${id}`, { headers: operator })
    expect(body.stream_events).toEqual(stored)
  })

  test('are stored once, also by concurrent reports in any order', async () => {
    const { user, id } = await startActive()
    const first = [eventOf(1, 'stream_started')]
    const second = [...first, eventOf(2, 'stream_lost')]
    const third = [...second, eventOf(3, 'stream_recovered')]
    const reports = Array.from({ length: 8 }, () => [first, second, third]).flat()
    await Promise.all(reports.map((events) => report(id, events)))
    expect(await kindsOf(user, id)).toEqual(['stream_started', 'stream_lost', 'stream_recovered'])
    // The extra report with the third one was faster than this.
    await report(id, first)
    expect(await kindsOf(user, id)).toHaveLength(3)
  })

  test('that are not valid are dropped, and the others and the report count', async () => {
    const { user, id } = await startActive()
    const events = [
      eventOf(0, 'stream_lost'),
      eventOf(1, 'stream_started'),
      eventOf(2, 'stream_vanished'),
      eventOf('3', 'stream_lost'),
      eventOf(4, 'stream_lost', -1),
      eventOf(5, 'stream_lost', 0, Number.MAX_VALUE.toString()),
      null,
      'stream_lost',
      eventOf(6, 'stream_weak', 1e300, 1e300),
    ]
    expect((await report(id, events)).status).toBe(200)
    expect(await eventsOf(user, id)).toMatchObject([
      { kind: 'stream_started', bitrate_kbps: 4_000 },
      { kind: 'stream_weak', bitrate_kbps: 1_000_000 },
    ])
    for (const broken of ['none', 7, { seq: 7 }, null]) expect((await report(id, broken)).status).toBe(200)
    await service.sendReport(id, { events: [eventOf(7, 'stream_lost')] })
    expect(await kindsOf(user, id)).toHaveLength(2)
  })

  test('are at most a hundred of a report, and a session keeps its last thousand', async () => {
    const { user, id } = await startActive()
    const kindAt = (seq: number) => (seq === 1 ? 'stream_started' : seq % 2 === 0 ? 'stream_lost' : 'stream_recovered')
    for (let from = 1; from <= 1_100; from += 100)
      await report(
        id,
        Array.from({ length: 100 }, (_, index) => eventOf(from + index, kindAt(from + index))),
      )
    const kinds = await kindsOf(user, id)
    expect(kinds).toHaveLength(1_000)
    expect([kinds[0], kinds.at(-1)]).toEqual(['stream_recovered', 'stream_lost'])
    await report(
      id,
      Array.from({ length: 150 }, (_, index) => eventOf(1_101 + index, kindAt(1_101 + index))),
    )
    const [row] = await sql`select min(seq) as first, max(number) as last from stream_events where session_id = ${id}`
    expect(row?.last).toBe(1_200)
  })

  test('are counted by kind', async () => {
    const { id } = await startActive()
    const weak = async () => (await readMetrics(api))('svc_stream_events_total{kind="stream_weak"}')
    const before = (await weak()) ?? Number.NaN
    const events = [eventOf(1, 'stream_started'), eventOf(2, 'stream_weak')]
    await report(id, events)
    await report(id, events)
    expect(await weak()).toBe(before + 1)
  })

  test('of an instance that is not that of the session are not stored', async () => {
    const { user, id } = await startActive()
    await report(id, [eventOf(1, 'stream_started')], { instance_id: 'another' })
    expect(await eventsOf(user, id)).toEqual([])
  })
})

describe('an extra report', () => {
  test('leaves the usual one that is held open, and its relay is not suspect', async () => {
    const { user, id } = await startActive()
    const held = report(id, [], { wait_seconds: 2 })
    await eventually(
      () => service.api.services.heldReports.countHeld(),
      (count) => count === 1,
    )
    await report(id, [eventOf(1, 'stream_started')], { is_extra: true })
    expect(await kindsOf(user, id)).toEqual(['stream_started'])
    expect(service.api.services.heldReports.countHeld()).toBe(1)
    const [row] = await sql`select is_held, suspect_since from relay_health where session_id = ${id}`
    expect(row).toEqual({ isHeld: true, suspectSince: null })
    expect((await held).status).toBe(200)
  })
})

/** Resolves with the instance that is to take over. */
async function loseRelay(id: string): Promise<string> {
  await sql`update relay_health set gone_at = now() where session_id = ${id}`
  await api.services.relaySessions.relayGone(id, fakeInstanceId(id))
  const find = () => sql<{ instanceId: string }[]>`
    select instance_id from instances where session_id = ${id} and binding = 2 and launched_at is not null`
  const [row] = await eventually(find, (rows) => rows.length === 1)
  return row?.instanceId ?? ''
}

describe('a session whose relay is lost', () => {
  test('loses its stream in that transition, and gets it back with the stream of another relay', async () => {
    const { user, id } = await startActive()
    await report(id, [eventOf(1, 'stream_started')])
    const replacement = await loseRelay(id)
    expect(await kindsOf(user, id)).toEqual(['stream_started', 'stream_lost'])
    const [row] = await sql`
      select e.at = t.at as is_same from stream_events e join relay_transitions t using (session_id)
      where session_id = ${id} and kind = 'stream_lost' and reason = 'health_lost'`
    expect(row?.isSame).toBe(true)

    const fields = { instance_id: replacement, binding: 2, startedAt: 500 }
    await report(id, [], fields)
    await eventually(
      () => stateOf(id),
      (state) => state === 'active',
    )
    expect(await kindsOf(user, id)).toHaveLength(2)
    await report(id, [eventOf(1, 'stream_started')], fields)
    await report(id, [eventOf(1, 'stream_started')], fields)
    expect(await kindsOf(user, id)).toEqual(['stream_started', 'stream_lost', 'stream_recovered'])
  })

  test('gets its stream back with the next report of its relay, if the stream went on', async () => {
    const { user, id } = await startActive()
    await report(id, [eventOf(1, 'stream_started')])
    await loseRelay(id)
    await report(id, [eventOf(1, 'stream_started')])
    await report(id, [eventOf(1, 'stream_started')])
    await eventually(
      () => stateOf(id),
      (state) => state === 'active',
    )
    expect(await eventsOf(user, id)).toMatchObject([
      { kind: 'stream_started' },
      { kind: 'stream_lost', bitrate_kbps: 0 },
      { kind: 'stream_recovered', bitrate_kbps: 5_000 },
    ])
  })

  test('has no event if no stream had started', async () => {
    const { user, id } = await startActive()
    await report(id, [])
    await loseRelay(id)
    expect(await eventsOf(user, id)).toEqual([])
  })
})

describe('a session that stops', () => {
  test.each([
    [[eventOf(1, 'stream_started')], ['stream_started', 'stream_ended']],
    [
      [eventOf(1, 'stream_started'), eventOf(2, 'stream_lost')],
      ['stream_started', 'stream_lost', 'stream_ended'],
    ],
    [
      [eventOf(1, 'stream_started'), eventOf(2, 'stream_ended')],
      ['stream_started', 'stream_ended'],
    ],
    [[], []],
  ])('after the events %j has %j, and later ones are ignored', async (events, expected) => {
    const { user, id } = await startActive()
    await report(id, events)
    await user.stop({ session_id: id, immediate: true })
    await eventually(
      () => stateOf(id),
      (state) => state === 'stopped',
    )
    expect((await report(id, [...events, eventOf(9, 'stream_weak')])).status).toBe(409)
    expect(await kindsOf(user, id)).toEqual(expected)
  })
})
