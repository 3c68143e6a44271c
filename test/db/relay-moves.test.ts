import { randomBytes, randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Sql } from '../../db/connection.ts'
import { type MoveOutcome, type MoveRequest, moveSession } from '../../db/relay-moves.ts'
import type { RelayReason, RelayState } from '../../db/relay-sessions.ts'
import {
  bindInstance,
  isRequestMade,
  recordCommand,
  recordOperatorRequest,
  relaySessionById,
  transitionsOf,
  withdrawOperatorRequest,
} from '../../db/relay-sessions.ts'
import { moves, states } from '../../workflows/relay-session-state.ts'
import { startApi } from '../support/api.ts'

const api = await startApi()
const { sql } = api
const { userId } = await api.given.user()

const reasons = [
  'relay_ready',
  'provision_failed',
  'provision_timeout',
  'health_lost',
  'health_restored',
  'start_requested',
  'stop_requested',
  'force_disconnected',
  'grace_elapsed',
] as const satisfies readonly RelayReason[]

const table = Object.entries(moves).flatMap(([from, ends]) =>
  Object.entries(ends).flatMap(([to, why]) => (why as readonly string[]).map((reason) => `${from} → ${to}: ${reason}`)),
)

async function insertSession(tx: Sql = sql): Promise<string> {
  const [row] = await tx<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_actor, pair_token_sealed, pair_token_hash,
      relay_ws_token_sealed, relay_ws_token_hash)
    values (${userId}, ${randomUUID()}, 'here', 'user', 'sealed', ${randomBytes(32)}, 'sealed', ${randomBytes(32)}) returning id`
  return row?.id ?? ''
}

/** Writes a move by hand, with all that the row must have in the state that it leads to. */
const write = (tx: Sql, id: string, to: RelayState, reason: RelayReason) => tx`
  update relay_sessions set state = ${to}, reason = ${reason},
    stopped_at = case when ${to} = 'stopped' then now() end, grace_ends_at = case when ${to} = 'grace' then now() end,
    pair_token_sealed = case when ${to} <> 'stopped' then pair_token_sealed end,
    pair_token_hash = case when ${to} <> 'stopped' then pair_token_hash end,
    relay_ws_token_sealed = case when ${to} <> 'stopped' then relay_ws_token_sealed end,
    relay_ws_token_hash = case when ${to} <> 'stopped' then relay_ws_token_hash end
  where id = ${id}`

const ways: Record<RelayState, readonly (readonly [RelayState, RelayReason])[]> = {
  provisioning: [],
  active: [['active', 'relay_ready']],
  grace: [
    ['active', 'relay_ready'],
    ['grace', 'health_lost'],
  ],
  stopped: [['stopped', 'provision_failed']],
}

describe('Postgres', () => {
  test('holds the same table of moves as the actor', async () => {
    const rows = await sql`select from_state, to_state, reason from relay_moves`
    expect(rows.map((row) => `${row.fromState} → ${row.toState}: ${row.reason}`).sort()).toEqual([...table].sort())
  })

  test.each(states)('lets a session that is %s make the moves of the table and no other', async (from) => {
    const wrong: string[] = []
    await sql.begin(async (tx) => {
      const id = await insertSession(tx)
      for (const [to, reason] of ways[from]) await write(tx, id, to, reason)
      const [{ reason: present } = {}] = await tx`select reason from relay_sessions where id = ${id}`
      for (const to of states) {
        for (const reason of reasons) {
          const name = `${from} → ${to}: ${reason}`
          const isNoMove = to === from && reason === present
          const allowed = await tx
            .savepoint(async (inner) => {
              await write(inner, id, to, reason)
              throw new Error('taken back')
            })
            .catch((error: Error) => error.message === 'taken back')
          if (allowed !== (table.includes(name) || isNoMove)) wrong.push(name)
        }
      }
    })
    expect(wrong).toEqual([])
  })

  test('lets a session begin provisioning only', async () => {
    for (const state of states.filter((one) => one !== 'provisioning')) {
      const inserted = sql`
        insert into relay_sessions (user_id, connection_id, region, command_actor, state, reason, stopped_at, grace_ends_at)
        values (${userId}, ${randomUUID()}, 'here', 'user', ${state}, 'relay_ready',
          ${state === 'stopped' ? new Date() : null}, ${state === 'grace' ? new Date() : null})`
      await expect(inserted).rejects.toMatchObject({ code: '23514' })
    }
  })

  test('keeps no secret of a stopped session, and no move in history that is none', async () => {
    const id = await insertSession()
    await expect(
      sql`update relay_sessions set state = 'stopped', reason = 'stop_requested', stopped_at = now() where id = ${id}`,
    ).rejects.toMatchObject({ code: '23514' })
    await expect(
      sql`insert into relay_transitions (session_id, version, from_state, to_state, reason, actor)
        values (${id}, 1, 'active', 'stopped', 'stop_requested', 'user')`,
    ).rejects.toMatchObject({ code: '23503' })
  })

  test('keeps one live session of a connection', async () => {
    const id = await insertSession()
    const again = sql`
      insert into relay_sessions (user_id, connection_id, region, command_actor)
      select user_id, connection_id, region, 'user' from relay_sessions where id = ${id}`
    await expect(again).rejects.toMatchObject({ code: '23505' })
  })
})

const request = (sessionId: string, more: Partial<MoveRequest>): MoveRequest => ({
  sessionId,
  version: 0,
  commandSeq: 1,
  cause: 'command',
  moves: [],
  lastsSeconds: null,
  operatorRequestId: null,
  settings,
  healthIntervalSeconds: 1,
  ...more,
})
const settings = { provisionTimeoutSeconds: 20, healthTimeoutSeconds: 3, graceSeconds: 20, maxSessionSeconds: 3600 }
const ready = { to: 'active', reason: 'relay_ready', actor: 'relay' } as const
const lost = { to: 'grace', reason: 'health_lost', actor: 'system' } as const
const elapsed = { to: 'stopped', reason: 'grace_elapsed', actor: 'timer' } as const
const timeout = { to: 'stopped', reason: 'provision_timeout', actor: 'timer' } as const
const graceForStop = { to: 'grace', reason: 'stop_requested', actor: 'user' } as const
const stopNow = { to: 'stopped', reason: 'stop_requested', actor: 'user' } as const

const bind = (sessionId: string) =>
  bindInstance(sql, sessionId, {
    instanceId: 'i-1',
    host: '198.51.100.7',
    srtlaPort: 1,
    publishPort: 2,
    playPort: 3,
    statsPort: 4,
  })
const report = (sessionId: string, secondsAgo: number) => sql`
  insert into relay_health (session_id, instance_id, last_report_at)
  values (${sessionId}, 'i-1', now() - make_interval(secs => ${secondsAgo}))
  on conflict (session_id) do update set last_report_at = excluded.last_report_at`
const age = (sessionId: string, seconds: number) => sql`
  update relay_sessions set created_at = created_at - make_interval(secs => ${seconds}),
    active_at = active_at - make_interval(secs => ${seconds}), grace_started_at = grace_started_at - make_interval(secs => ${seconds})
  where id = ${sessionId}`
const ageUsage = (sessionId: string, seconds: number) => sql`
  update usage_intervals set started_at = started_at - make_interval(secs => ${seconds}) where session_id = ${sessionId}`
const usage = async (sessionId: string) =>
  sql<{ seconds: number | null; endedAgo: number | null }[]>`
    select extract(epoch from ended_at - started_at)::float8 as seconds, extract(epoch from now() - ended_at)::float8 as ended_ago
    from usage_intervals where session_id = ${sessionId} order by id`
const history = async (sessionId: string) =>
  (await transitionsOf(sql, sessionId)).map((row) => `${row.fromState} → ${row.toState}: ${row.reason}`)
const presentSince = (role: 'api' | 'worker', secondsAgo: number) => sql`
  update presence set since = now() - make_interval(secs => ${secondsAgo}), seen_at = now() where role = ${role}`

beforeEach(async () => {
  await presentSince('api', 7200)
  await presentSince('worker', 7200)
})

const postponedSeconds = (outcome: MoveOutcome): number =>
  outcome.type === 'postponed' ? outcome.forMillis / 1000 : Number.NaN

/** A session whose relay has been active for a minute, with its version. */
async function activeSession(): Promise<string> {
  const id = await insertSession()
  await bind(id)
  await moveSession(sql, request(id, { moves: [ready] }))
  await age(id, 60)
  await ageUsage(id, 60)
  return id
}

describe('a move', () => {
  test('writes the row, its history and the usage, and a repeated request is answered by the row', async () => {
    const id = await insertSession()
    const asked = request(id, { moves: [ready] })
    const row = {
      ...{ state: 'active', reason: 'relay_ready', version: 1, instanceId: null },
      ...{ commandSeq: 1, endsInMillis: null },
    }
    expect(await moveSession(sql, asked)).toEqual({ type: 'row', moved: true, row })
    expect(await moveSession(sql, asked)).toEqual({ type: 'row', moved: false, row })
    expect(await history(id)).toEqual(['provisioning → active: relay_ready'])
    expect(await usage(id)).toEqual([{ seconds: null, endedAgo: null }])
    expect(await relaySessionById(sql, id)).toMatchObject({ state: 'active', activeAt: expect.any(Date) })
  })

  test('sent many times at once is made once', async () => {
    const id = await insertSession()
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, () => moveSession(sql, request(id, { moves: [ready] }))),
    )
    expect(outcomes.filter((one) => one.type === 'row' && one.moved)).toHaveLength(1)
    expect(await history(id)).toHaveLength(1)
  })

  test('that repeats one into grace is answered with what is left of it', async () => {
    const id = await activeSession()
    const asked = request(id, { version: 1, moves: [graceForStop], lastsSeconds: 30 })
    const first = await moveSession(sql, asked)
    expect(first).toMatchObject({ moved: true, row: { state: 'grace', endsInMillis: 30_000 } })
    await sql`update relay_sessions set grace_ends_at = grace_ends_at - interval '10 seconds' where id = ${id}`
    const again = await moveSession(sql, asked)
    expect(again).toMatchObject({ moved: false, row: { state: 'grace' } })
    const left = again.type === 'row' ? (again.row.endsInMillis ?? 0) : 0
    expect(left).toBeGreaterThan(18_000)
    expect(left).toBeLessThanOrEqual(20_000)
  })

  test('answers an execution that was reset with the last command that its row reflects', async () => {
    const id = await activeSession()
    await recordCommand(sql, id, 'stop', 'user')
    const asked = request(id, { version: 1, commandSeq: 2, moves: [graceForStop], lastsSeconds: 30 })
    expect(await moveSession(sql, asked)).toMatchObject({ moved: true })
    const reset = request(id, { version: 0, commandSeq: 1, moves: [ready] })
    expect(await moveSession(sql, reset)).toMatchObject({ moved: false, row: { state: 'grace', commandSeq: 2 } })
  })

  test('without a transition only answers the row', async () => {
    const id = await activeSession()
    expect(await moveSession(sql, request(id, { version: 1, cause: 'wake' }))).toMatchObject({
      moved: false,
      row: { state: 'active', version: 1, instanceId: 'i-1' },
    })
  })

  test('to stopped leaves no command to be delivered', async () => {
    const id = await activeSession()
    await recordCommand(sql, id, 'stop_now', 'user')
    await moveSession(sql, request(id, { version: 1, commandSeq: 2, moves: [graceForStop, stopNow] }))
    expect(await relaySessionById(sql, id)).toMatchObject({ commandSeq: 2, commandDeliveredSeq: 2 })
  })

  test('of two steps is made whole or not at all', async () => {
    const id = await activeSession()
    const illegal = moveSession(sql, request(id, { version: 1, moves: [graceForStop, ready] }))
    await expect(illegal).rejects.toMatchObject({ code: '23514' })
    expect(await relaySessionById(sql, id)).toMatchObject({ state: 'active', version: 1 })
    expect(await history(id)).toHaveLength(1)
    expect(await usage(id)).toEqual([{ seconds: null, endedAgo: null }])

    const outcome = await moveSession(sql, request(id, { version: 1, moves: [graceForStop, stopNow] }))
    expect(outcome).toMatchObject({ moved: true, row: { state: 'stopped', version: 3 } })
    const row = await relaySessionById(sql, id)
    expect(row).toMatchObject({ pairTokenSealed: null, relayWsTokenSealed: null, graceEndsAt: null })
    const hashes = await sql`select pair_token_hash, relay_ws_token_hash from relay_sessions where id = ${id}`
    expect(hashes).toEqual([{ pairTokenHash: null, relayWsTokenHash: null }])
    expect((await history(id)).slice(1)).toEqual(['active → grace: stop_requested', 'grace → stopped: stop_requested'])
  })

  test('gives way to a command that was accepted meanwhile', async () => {
    const id = await activeSession()
    await recordCommand(sql, id, 'stop', 'user')
    const asked = request(id, { version: 1, moves: [lost] })
    expect(await moveSession(sql, asked)).toEqual({
      type: 'newer_command',
      command: { seq: 2, command: 'stop', actor: 'user' },
    })
    expect(await relaySessionById(sql, id)).toMatchObject({ state: 'active', version: 1 })
    expect(await moveSession(sql, { ...asked, commandSeq: 2, moves: [graceForStop] })).toMatchObject({ moved: true })
  })

  test('of a session that went with its account finds it stopped', async () => {
    const outcome = await moveSession(sql, request(randomUUID(), { version: 4, moves: [ready] }))
    expect(outcome).toMatchObject({ type: 'row', moved: false, row: { state: 'stopped', version: 5 } })
  })
})

describe('a transition that an operator asks for', () => {
  const byOperator = { to: 'active', reason: 'start_requested', actor: 'operator' } as const
  const auditOf = async (requestId: string) =>
    sql`select ip, detail from audit_entries where action = 'session_moved' and detail ->> 'request_id' = ${requestId}`

  test('is made with its audit entry, and the session then runs because it was commanded to', async () => {
    const id = await activeSession()
    await recordCommand(sql, id, 'stop', 'user')
    await moveSession(sql, request(id, { version: 1, commandSeq: 2, moves: [graceForStop], lastsSeconds: 30 }))
    const requestId = randomUUID()
    await recordOperatorRequest(sql, id, { id: requestId, ip: '192.0.2.7' })
    const asked = { cause: 'transition', moves: [byOperator], operatorRequestId: requestId }
    const outcome = await moveSession(sql, request(id, { version: 2, commandSeq: 2, ...asked }))
    expect(outcome).toMatchObject({ moved: true, row: { state: 'active', commandSeq: 3 } })
    expect(await relaySessionById(sql, id)).toMatchObject({
      ...{ command: 'run', commandActor: 'operator', commandSeq: 3, commandDeliveredSeq: 3 },
    })
    expect(await auditOf(requestId)).toMatchObject([{ ip: '192.0.2.7', detail: { session_id: id, to: 'active' } }])
    expect(await isRequestMade(sql, { userId: userId }, requestId)).toBe(true)
  })

  test('is not made once the request was withdrawn or replaced', async () => {
    const id = await activeSession()
    const [first, second] = [randomUUID(), randomUUID()]
    for (const requestId of [first, second]) await recordOperatorRequest(sql, id, { id: requestId, ip: '192.0.2.7' })
    const asked = request(id, { version: 1, cause: 'transition', moves: [graceForStop], operatorRequestId: first })
    expect(await moveSession(sql, asked)).toEqual({ type: 'withdrawn' })
    expect(await withdrawOperatorRequest(sql, id, first)).toBe(false)
    expect(await withdrawOperatorRequest(sql, id, second)).toBe(true)
    expect(await moveSession(sql, { ...asked, operatorRequestId: second })).toEqual({ type: 'withdrawn' })
    expect(await relaySessionById(sql, id)).toMatchObject({ state: 'active', version: 1 })
  })
})

describe('a relay is given up for silence', () => {
  test('not while it reports', async () => {
    const id = await activeSession()
    await report(id, 1)
    const asked = request(id, { version: 1, cause: 'health_lost', moves: [lost], lastsSeconds: 20 })
    expect(await moveSession(sql, asked)).toMatchObject({ type: 'row', moved: false, row: { state: 'active' } })
    await report(id, 4)
    expect(await moveSession(sql, asked)).toMatchObject({ type: 'row', moved: true, row: { state: 'grace' } })
  })

  test('not when it came back before its grace was over', async () => {
    const id = await activeSession()
    await report(id, 30)
    await moveSession(sql, request(id, { version: 1, cause: 'health_lost', moves: [lost], lastsSeconds: 0 }))
    await age(id, 20)
    const asked = request(id, { version: 2, cause: 'deadline', moves: [elapsed] })
    await report(id, 10)
    expect(await moveSession(sql, asked)).toEqual({ type: 'reporting' })
    await report(id, 25)
    expect(await moveSession(sql, asked)).toMatchObject({ moved: true, row: { state: 'stopped' } })
  })

  test('not when it reported before its provisioning took too long', async () => {
    const id = await insertSession()
    await bind(id)
    await age(id, 20)
    await report(id, 1)
    const asked = request(id, { cause: 'deadline', moves: [timeout] })
    expect(await moveSession(sql, asked)).toEqual({ type: 'reporting' })
    await sql`delete from relay_health where session_id = ${id}`
    expect(await moveSession(sql, asked)).toMatchObject({ row: { state: 'stopped' } })
  })

  test('not for the time in which no report could be taken', async () => {
    const id = await insertSession()
    await bind(id)
    await age(id, 60)
    await presentSince('api', 5)
    const asked = request(id, { cause: 'deadline', moves: [timeout] })
    expect(postponedSeconds(await moveSession(sql, asked))).toBeCloseTo(15, 0)
    await presentSince('api', 21)
    expect(await moveSession(sql, asked)).toMatchObject({ moved: true, row: { state: 'stopped' } })
  })

  test('not for the time in which no worker could create its instance', async () => {
    const id = await insertSession()
    await age(id, 60)
    await presentSince('api', 1)
    await presentSince('worker', 5)
    const asked = request(id, { cause: 'deadline', moves: [timeout] })
    expect(postponedSeconds(await moveSession(sql, asked))).toBeCloseTo(15, 0)
    await presentSince('worker', 7200)
    await sql`update presence set seen_at = now() - interval '1 minute' where role = 'worker'`
    expect(postponedSeconds(await moveSession(sql, asked))).toBeCloseTo(20, 0)
    await presentSince('worker', 21)
    expect(await moveSession(sql, asked)).toMatchObject({ moved: true, row: { state: 'stopped' } })
  })

  test('not before the deadline by the clock of Postgres, whatever the clock of the workflow says', async () => {
    const id = await insertSession()
    const early = request(id, { cause: 'deadline', moves: [timeout] })
    expect(postponedSeconds(await moveSession(sql, early))).toBeCloseTo(20, 0)
    const stopping = await activeSession()
    await moveSession(sql, request(stopping, { version: 1, moves: [graceForStop], lastsSeconds: 8 }))
    const elapsing = request(stopping, { version: 2, cause: 'deadline', moves: [elapsed] })
    expect(postponedSeconds(await moveSession(sql, elapsing))).toBeCloseTo(8, 0)
  })

  test('not while its grace is put off by an outage of ours, and clients see the later end', async () => {
    const id = await activeSession()
    await report(id, 100)
    await moveSession(sql, request(id, { version: 1, cause: 'health_lost', moves: [lost], lastsSeconds: 20 }))
    await age(id, 60)
    await sql`update relay_sessions set grace_ends_at = now() - interval '40 seconds' where id = ${id}`
    await presentSince('api', 5)
    const asked = request(id, { version: 2, cause: 'deadline', moves: [elapsed] })
    expect(postponedSeconds(await moveSession(sql, asked))).toBeCloseTo(15, 0)
    const shown = (await relaySessionById(sql, id))?.graceEndsAt?.getTime() ?? 0
    expect((shown - Date.now()) / 1000).toBeCloseTo(15, 0)
  })

  test('and ended as gone only while it does not report', async () => {
    const id = await activeSession()
    await report(id, 1)
    const gone = { to: 'stopped', reason: 'force_disconnected', actor: 'system' } as const
    const asked = request(id, { version: 1, cause: 'instance_gone', moves: [lost, gone] })
    expect(await moveSession(sql, asked)).toMatchObject({ moved: false, row: { state: 'active' } })
    await report(id, 10)
    expect(await moveSession(sql, asked)).toMatchObject({ moved: true, row: { state: 'stopped' } })
  })

  test('and ended as idle only while it reports that no stream comes in', async () => {
    const id = await activeSession()
    const graceByTimer = { to: 'grace', reason: 'force_disconnected', actor: 'timer' } as const
    const stoppedByTimer = { to: 'stopped', reason: 'force_disconnected', actor: 'timer' } as const
    const asked = request(id, { version: 1, cause: 'idle', moves: [graceByTimer, stoppedByTimer] })
    await report(id, 1)
    expect(await moveSession(sql, asked)).toMatchObject({ moved: false, row: { state: 'active' } })
    await sql`update relay_health set idle_since = now() where session_id = ${id}`
    await report(id, 10)
    expect(await moveSession(sql, asked)).toMatchObject({ moved: false, row: { state: 'active' } })
    await report(id, 1)
    expect(await moveSession(sql, asked)).toMatchObject({ moved: true, row: { state: 'stopped' } })
  })

  test('but a stop’s grace ends on time, whether the relay reports or not', async () => {
    const id = await activeSession()
    await moveSession(sql, request(id, { version: 1, moves: [graceForStop], lastsSeconds: 0 }))
    await report(id, 0)
    expect(await moveSession(sql, request(id, { version: 2, cause: 'deadline', moves: [elapsed] }))).toMatchObject({
      moved: true,
      row: { state: 'stopped' },
    })
  })
})

describe('the usage of a relay', () => {
  test('goes on through grace, and ends when the session does', async () => {
    const id = await activeSession()
    await report(id, 0)
    await moveSession(sql, request(id, { version: 1, moves: [graceForStop], lastsSeconds: 0 }))
    const resumed = { to: 'active', reason: 'start_requested', actor: 'user' } as const
    await moveSession(sql, request(id, { version: 2, moves: [resumed] }))
    expect(await usage(id)).toEqual([{ seconds: null, endedAgo: null }])
    await moveSession(sql, request(id, { version: 3, moves: [graceForStop, stopNow] }))
    const intervals = await usage(id)
    expect(intervals).toHaveLength(1)
    expect(intervals[0]?.seconds).toBeGreaterThanOrEqual(60)
    expect(intervals[0]?.seconds).toBeLessThan(63)
  })

  test('that died silently ends half a minute after its last report', async () => {
    const id = await activeSession()
    await ageUsage(id, 440)
    await report(id, 200)
    await moveSession(sql, request(id, { version: 1, moves: [graceForStop, stopNow] }))
    const [interval] = await usage(id)
    expect(interval?.seconds).toBeGreaterThanOrEqual(330)
    expect(interval?.seconds).toBeLessThan(333)
    expect(interval?.endedAgo).toBeLessThan(172)
  })

  test('goes on to the end of a session whose reports could not be taken for a while', async () => {
    const [away, returned] = [await activeSession(), await activeSession()]
    for (const id of [away, returned]) {
      await ageUsage(id, 440)
      await report(id, 200)
    }
    await presentSince('api', 2)
    await moveSession(sql, request(returned, { version: 1, moves: [graceForStop, stopNow] }))
    expect((await usage(returned))[0]?.endedAgo).toBeLessThan(2)
    await sql`update presence set seen_at = now() - interval '1 minute' where role = 'api'`
    await moveSession(sql, request(away, { version: 1, moves: [graceForStop, stopNow] }))
    expect((await usage(away))[0]?.endedAgo).toBeLessThan(2)
  })

  test('of a relay that reports every two minutes goes on for one interval after its last report', async () => {
    const id = await activeSession()
    await ageUsage(id, 440)
    await report(id, 200)
    const settings = { ...request(id, {}).settings, healthTimeoutSeconds: 150 }
    const asked = request(id, { version: 1, moves: [graceForStop, stopNow], settings, healthIntervalSeconds: 120 })
    await moveSession(sql, asked)
    const [interval] = await usage(id)
    expect(interval?.endedAgo).toBeGreaterThanOrEqual(79)
    expect(interval?.endedAgo).toBeLessThan(82)
  })

  test('never ends before it began, nor later than now', async () => {
    const [early, late] = [await activeSession(), await activeSession()]
    await report(early, 3600)
    await report(late, 10)
    for (const id of [early, late]) await moveSession(sql, request(id, { version: 1, moves: [graceForStop, stopNow] }))
    expect((await usage(early))[0]?.seconds).toBe(0)
    expect((await usage(late))[0]?.endedAgo).toBeLessThan(2)
  })

  test('that never became ready is none', async () => {
    const id = await insertSession()
    await moveSession(sql, request(id, { moves: [stopNow] }))
    expect(await usage(id)).toEqual([])
  })
})
