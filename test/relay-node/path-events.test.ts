/** What a relay reports about its signal path beside the stream, and when. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { report } from '../../relay-node/health-report.ts'
import { PathEvents, type ReportedPathEvent } from '../../relay-node/path-events.ts'
import { handshake, shutdown } from '../support/srt-packets.ts'
import { refusal, run } from './control-plane.ts'
import { admit, createCaller, engineSocketId, givenGate, play } from './gate-callers.ts'
import { eventually, givenControlPlane, noAdmissions, noIngest, secret, startRelay } from './running.ts'
import { givenSocket } from './udp-callers.ts'

const stepMillis = 250

/** Path events in a time of their own. */
function givenPath() {
  const events = new PathEvents()
  let at = 0
  let players: readonly object[] = []
  return {
    events,
    list: () => events.list(at),
    pass(millis: number, { links = 1, refusals = 0 } = {}) {
      for (const until = at + millis; at < until; ) {
        at += stepMillis
        for (let count = 0; count < refusals; count += 1) events.refuse('unauthorized', 'publish')
        events.sample({ links, players }, at)
      }
    },
    hasPlayers(next: readonly object[]) {
      players = next
    },
  }
}

const createPlayers = (count: number): object[] => Array.from({ length: count }, () => ({}))

/** Accepts everything that reports state. @returns it. */
function drain({ events, list }: ReturnType<typeof givenPath>): ReportedPathEvent[] {
  const drained: ReportedPathEvent[] = []
  for (let listed = list(); listed.length > 0; listed = list()) {
    drained.push(...listed)
    events.accept(listed.at(-1)?.seq ?? 0)
  }
  return drained
}

describe('the path events of a relay', () => {
  test('state how many links there were and are, and since when', () => {
    const { pass, list } = givenPath()
    pass(10_000, { links: 3 })
    pass(5_000, { links: 2 })
    expect(list()).toEqual([{ seq: 1, kind: 'links_changed', from: 3, to: 2, age_ms: 4_750 }])
  })

  test('state each player that joins and leaves, with how many play then', async () => {
    const path = givenPath()
    const { gate } = await givenGate()
    const [first, second] = [createCaller('192.0.2.1:5000'), createCaller('192.0.2.2:5000')]
    for (const caller of [first, second]) {
      await admit(gate, caller, play, 'play')
      path.hasPlayers(gate.players)
      path.pass(stepMillis)
    }
    gate.receive('play', shutdown(engineSocketId), first.peer, 2_000)
    path.hasPlayers(gate.players)
    path.pass(stepMillis)
    expect(path.list()).toEqual([
      { seq: 1, kind: 'player_joined', players: 1, age_ms: 500 },
      { seq: 2, kind: 'player_joined', players: 2, age_ms: 250 },
      { seq: 3, kind: 'player_left', players: 1, age_ms: 0 },
    ])
  })

  test('count refused callers, in one event of a reason and a role in ten seconds', () => {
    const path = givenPath()
    path.events.refuse('passphrase', 'play')
    path.pass(stepMillis)
    const first = path.list()
    expect(first).toEqual([
      { seq: 1, kind: 'caller_refused', reason: 'passphrase', role: 'player', count: 1, age_ms: 0 },
    ])
    path.pass(9_500, { refusals: 2 })
    path.events.refuse('passphrase', 'play')
    path.pass(stepMillis)
    expect(drain(path)).toMatchObject([...first.map(({ seq }) => ({ seq })), { reason: 'unauthorized', count: 76 }])
    path.pass(stepMillis)
    expect(drain(path)).toMatchObject([{ reason: 'passphrase', role: 'player', count: 1 }])
  })

  test('count the callers of an outage in the last event that no report has stated', () => {
    const path = givenPath()
    path.pass(3_600_000, { refusals: 1 })
    expect(path.list()).toMatchObject([{ seq: 1, kind: 'caller_refused', count: 14_400 }])
    path.pass(20_000, { refusals: 1 })
    const counts = drain(path).map((event) => (event.kind === 'caller_refused' ? event.count : 0))
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(14_480)
    expect(counts[0]).toBe(14_400)
    expect(counts).toHaveLength(2)
  })

  test('state the callers that were refused last when the relay ends', () => {
    const path = givenPath()
    path.pass(stepMillis, { refusals: 1 })
    drain(path)
    path.pass(stepMillis, { refusals: 1 })
    expect(path.list()).toEqual([])
    path.events.end(500)
    expect(path.list()).toMatchObject([{ kind: 'caller_refused', count: 1 }])
  })

  test('are at most twenty in a report, and a hundred without one, of which the oldest are given up', () => {
    const path = givenPath()
    for (let round = 0; round < 75; round += 1)
      for (const count of [1, 0]) {
        path.hasPlayers(createPlayers(count))
        path.pass(stepMillis)
      }
    expect(path.list().map(({ seq }) => seq)).toEqual(Array.from({ length: 20 }, (_, index) => index + 51))
    expect(drain(path).map(({ seq }) => seq)).toEqual(Array.from({ length: 100 }, (_, index) => index + 51))
  })
})

test('path events wait for the next usual report of a session, and are in no extra one', async () => {
  const plane = await givenControlPlane()
  const path = givenPath()
  path.pass(stepMillis, { refusals: 1 })
  const sent = {
    apiUrl: plane.url,
    authSecret: secret,
    sessionId: randomUUID(),
    instanceId: 'relay-1',
    intervalSeconds: 10,
    summarizeIngest: () => noIngest,
    admissions: noAdmissions,
    pathEvents: path.events,
    signal: new AbortController().signal,
  }
  await report({ ...sent, isExtra: true })
  await report({ ...sent, sessionId: null, isFirst: true })
  await report(sent)
  await report(sent)
  expect(plane.reports.map(({ body }) => body.path_events?.length)).toEqual([undefined, undefined, 1, undefined])
})

test('a refused caller is in each usual report until one with it is accepted, and its address in none', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url })
  const state = await relay.up()
  await eventually(() => plane.reports.length, Boolean)
  plane.answers(refusal(503, 'temporarily_unavailable'))
  const caller = await givenSocket('127.4.5.6')
  caller.send(handshake({ type: 0 }), state.playPort, state.host)
  await once(caller, 'message')
  const stated = () => plane.reports.filter(({ body }) => body.path_events !== undefined)
  const reports = await eventually(stated, ({ length }) => length >= 2)
  for (const { body } of reports)
    expect(body.path_events).toEqual([
      { seq: 1, kind: 'caller_refused', reason: 'bad_mode', role: 'player', count: 1, age_ms: expect.any(Number) },
    ])
  plane.answers(run())
  const from = plane.reports.length
  await eventually(
    () => plane.reports.slice(from).findIndex(({ body }) => body.path_events === undefined),
    (index) => index >= 0,
  )
  expect(JSON.stringify(plane.reports.map(({ body }) => body))).not.toContain('127.4.5.6')
})
