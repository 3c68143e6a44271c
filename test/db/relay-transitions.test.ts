import { randomBytes, randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Sql } from '../../db/connection.ts'
import { isOperatorRequestDone, recordOperatorRequest, withdrawOperatorRequest } from '../../db/operator-requests.ts'
import { recordCommand } from '../../db/relay-commands.ts'
import { bindInstance, findRelaySession, listTransitions } from '../../db/relay-sessions.ts'
import { type TransitionsOutcome, type TransitionsRequest, writeTransitions } from '../../db/relay-transitions.ts'
import {
  legalTransitions,
  type RelayReason,
  type RelayState,
  relayReasons,
  relayStates,
} from '../../domain/relay-session.ts'
import { startApi } from '../support/api.ts'

const api = await startApi()
const { sql } = api
const { userId } = await api.given.user()

const table = Object.entries(legalTransitions).flatMap(([from, ends]) =>
  Object.entries(ends).flatMap(([to, why]) => (why as readonly string[]).map((reason) => `${from} → ${to}: ${reason}`)),
)

async function insertSession(tx: Sql = sql): Promise<string> {
  const [row] = await tx<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, pair_token_sealed, pair_token_hash,
      relay_ws_token_sealed, relay_ws_token_hash)
    values (${userId}, ${randomUUID()}, 'here', 'user', 'sealed', ${randomBytes(32)}, 'sealed', ${randomBytes(32)}) returning id`
  return row?.id ?? ''
}

/** Writes a transition directly, with the columns that the new state requires. */
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
  test('holds the same legal transitions as the workflow', async () => {
    const rows = await sql`select from_state, to_state, reason from relay_legal_transitions`
    expect(rows.map((row) => `${row.fromState} → ${row.toState}: ${row.reason}`).sort()).toEqual([...table].sort())
  })

  test.each(relayStates)('accepts the legal transitions from %s and refuses all others', async (from) => {
    const wrong: string[] = []
    await sql.begin(async (tx) => {
      const id = await insertSession(tx)
      for (const [to, reason] of ways[from]) await write(tx, id, to, reason)
      const [{ reason: present } = {}] = await tx`select reason from relay_sessions where id = ${id}`
      for (const to of relayStates) {
        for (const reason of relayReasons) {
          const name = `${from} → ${to}: ${reason}`
          const isUnchanged = to === from && reason === present
          const allowed = await tx
            .savepoint(async (inner) => {
              await write(inner, id, to, reason)
              throw new Error('rolled back')
            })
            .catch((error: Error) => error.message === 'rolled back')
          if (allowed !== (table.includes(name) || isUnchanged)) wrong.push(name)
        }
      }
    })
    expect(wrong).toEqual([])
  })

  test('accepts a new session only in provisioning', async () => {
    for (const state of relayStates.filter((one) => one !== 'provisioning')) {
      const inserted = sql`
        insert into relay_sessions (user_id, connection_id, region, command_initiator, state, reason, stopped_at, grace_ends_at)
        values (${userId}, ${randomUUID()}, 'here', 'user', ${state}, 'relay_ready',
          ${state === 'stopped' ? new Date() : null}, ${state === 'grace' ? new Date() : null})`
      await expect(inserted).rejects.toMatchObject({ code: '23514' })
    }
  })

  test('refuses a stopped session with secrets and an illegal transition in the history', async () => {
    const id = await insertSession()
    await expect(
      sql`update relay_sessions set state = 'stopped', reason = 'stop_requested', stopped_at = now() where id = ${id}`,
    ).rejects.toMatchObject({ code: '23514' })
    await expect(
      sql`insert into relay_transitions (session_id, version, from_state, to_state, reason, initiator)
        values (${id}, 1, 'active', 'stopped', 'stop_requested', 'user')`,
    ).rejects.toMatchObject({ code: '23503' })
  })

  test('refuses a second live session of a connection', async () => {
    const id = await insertSession()
    const again = sql`
      insert into relay_sessions (user_id, connection_id, region, command_initiator)
      select user_id, connection_id, region, 'user' from relay_sessions where id = ${id}`
    await expect(again).rejects.toMatchObject({ code: '23505' })
  })
})

const request = (sessionId: string, more: Partial<TransitionsRequest>): TransitionsRequest => ({
  sessionId,
  version: 0,
  commandSeq: 1,
  cause: 'command',
  transitions: [],
  graceSeconds: null,
  operatorRequestId: null,
  settings,
  healthIntervalSeconds: 1,
  ...more,
})
const settings = { provisionTimeoutSeconds: 20, healthTimeoutSeconds: 3, graceSeconds: 20, maxSessionSeconds: 3600 }
const ready = { to: 'active', reason: 'relay_ready', initiator: 'relay' } as const
const lost = { to: 'grace', reason: 'health_lost', initiator: 'system' } as const
const elapsed = { to: 'stopped', reason: 'grace_elapsed', initiator: 'timer' } as const
const timeout = { to: 'stopped', reason: 'provision_timeout', initiator: 'timer' } as const
const graceForStop = { to: 'grace', reason: 'stop_requested', initiator: 'user' } as const
const stopNow = { to: 'stopped', reason: 'stop_requested', initiator: 'user' } as const

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
  (await listTransitions(sql, sessionId)).map((row) => `${row.fromState} → ${row.toState}: ${row.reason}`)
const presentSince = (role: 'api' | 'worker', secondsAgo: number) => sql`
  update presence set since = now() - make_interval(secs => ${secondsAgo}), seen_at = now() where role = ${role}`

beforeEach(async () => {
  await presentSince('api', 7200)
  await presentSince('worker', 7200)
})

const postponedSeconds = (outcome: TransitionsOutcome): number =>
  outcome.type === 'postponed' ? outcome.forMillis / 1000 : Number.NaN

/** A session whose relay has been active for a minute, with its version. */
async function activeSession(): Promise<string> {
  const id = await insertSession()
  await bind(id)
  await writeTransitions(sql, request(id, { transitions: [ready] }))
  await age(id, 60)
  await ageUsage(id, 60)
  return id
}

describe('a transition', () => {
  test('writes the row, the history and the usage, and a repeated request returns the stored state', async () => {
    const id = await insertSession()
    const transitionRequest = request(id, { transitions: [ready] })
    const session = {
      ...{ state: 'active', reason: 'relay_ready', version: 1, instanceId: null },
      ...{ commandSeq: 1, endsInMillis: null },
    }
    expect(await writeTransitions(sql, transitionRequest)).toEqual({ type: 'stored', isWritten: true, session })
    expect(await writeTransitions(sql, transitionRequest)).toEqual({ type: 'stored', isWritten: false, session })
    expect(await history(id)).toEqual(['provisioning → active: relay_ready'])
    expect(await usage(id)).toEqual([{ seconds: null, endedAgo: null }])
    expect(await findRelaySession(sql, id)).toMatchObject({ state: 'active', activeAt: expect.any(Date) })
  })

  test('is written once by concurrent requests', async () => {
    const id = await insertSession()
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, () => writeTransitions(sql, request(id, { transitions: [ready] }))),
    )
    expect(outcomes.filter((one) => one.type === 'stored' && one.isWritten)).toHaveLength(1)
    expect(await history(id)).toHaveLength(1)
  })

  test('to grace, when repeated, returns the remaining grace', async () => {
    const id = await activeSession()
    const transitionRequest = request(id, { version: 1, transitions: [graceForStop], graceSeconds: 30 })
    const first = await writeTransitions(sql, transitionRequest)
    expect(first).toMatchObject({ isWritten: true, session: { state: 'grace', endsInMillis: 30_000 } })
    await sql`update relay_sessions set grace_ends_at = grace_ends_at - interval '10 seconds' where id = ${id}`
    const again = await writeTransitions(sql, transitionRequest)
    expect(again).toMatchObject({ isWritten: false, session: { state: 'grace' } })
    const left = again.type === 'stored' ? (again.session.endsInMillis ?? 0) : 0
    expect(left).toBeGreaterThan(18_000)
    expect(left).toBeLessThanOrEqual(20_000)
  })

  test('requested by a reset execution returns the last command that the row reflects', async () => {
    const id = await activeSession()
    await recordCommand(sql, id, 'stop', 'user')
    const transitionRequest = request(id, { version: 1, commandSeq: 2, transitions: [graceForStop], graceSeconds: 30 })
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({ isWritten: true })
    const reset = request(id, { version: 0, commandSeq: 1, transitions: [ready] })
    expect(await writeTransitions(sql, reset)).toMatchObject({
      isWritten: false,
      session: { state: 'grace', commandSeq: 2 },
    })
  })

  test('request without transitions returns the stored state', async () => {
    const id = await activeSession()
    expect(await writeTransitions(sql, request(id, { version: 1, cause: 'wake' }))).toMatchObject({
      isWritten: false,
      session: { state: 'active', version: 1, instanceId: 'i-1' },
    })
  })

  test('to stopped marks all commands as delivered', async () => {
    const id = await activeSession()
    await recordCommand(sql, id, 'stop_now', 'user')
    await writeTransitions(sql, request(id, { version: 1, commandSeq: 2, transitions: [graceForStop, stopNow] }))
    expect(await findRelaySession(sql, id)).toMatchObject({ commandSeq: 2, commandDeliveredSeq: 2 })
  })

  test('pair is written as a whole or not at all', async () => {
    const id = await activeSession()
    const illegal = writeTransitions(sql, request(id, { version: 1, transitions: [graceForStop, ready] }))
    await expect(illegal).rejects.toMatchObject({ code: '23514' })
    expect(await findRelaySession(sql, id)).toMatchObject({ state: 'active', version: 1 })
    expect(await history(id)).toHaveLength(1)
    expect(await usage(id)).toEqual([{ seconds: null, endedAgo: null }])

    const outcome = await writeTransitions(sql, request(id, { version: 1, transitions: [graceForStop, stopNow] }))
    expect(outcome).toMatchObject({ isWritten: true, session: { state: 'stopped', version: 3 } })
    const row = await findRelaySession(sql, id)
    expect(row).toMatchObject({ pairTokenSealed: null, relayWsTokenSealed: null, graceEndsAt: null })
    const hashes = await sql`select pair_token_hash, relay_ws_token_hash from relay_sessions where id = ${id}`
    expect(hashes).toEqual([{ pairTokenHash: null, relayWsTokenHash: null }])
    expect((await history(id)).slice(1)).toEqual(['active → grace: stop_requested', 'grace → stopped: stop_requested'])
  })

  test('is not written when a newer command was accepted', async () => {
    const id = await activeSession()
    await recordCommand(sql, id, 'stop', 'user')
    const transitionRequest = request(id, { version: 1, transitions: [lost] })
    expect(await writeTransitions(sql, transitionRequest)).toEqual({
      type: 'newer_command',
      command: { seq: 2, command: 'stop', initiator: 'user' },
    })
    expect(await findRelaySession(sql, id)).toMatchObject({ state: 'active', version: 1 })
    expect(
      await writeTransitions(sql, { ...transitionRequest, commandSeq: 2, transitions: [graceForStop] }),
    ).toMatchObject({
      isWritten: true,
    })
  })

  test('of a session that was deleted with its account returns stopped', async () => {
    const outcome = await writeTransitions(sql, request(randomUUID(), { version: 4, transitions: [ready] }))
    expect(outcome).toMatchObject({ type: 'stored', isWritten: false, session: { state: 'stopped', version: 5 } })
  })
})

describe('a transition that an operator requests', () => {
  const byOperator = { to: 'active', reason: 'start_requested', initiator: 'operator' } as const
  const auditOf = async (requestId: string) =>
    sql`select ip, detail from audit_entries where action = 'session_transitioned' and detail ->> 'request_id' = ${requestId}`

  test('is written together with its audit entry and the command run', async () => {
    const id = await activeSession()
    await recordCommand(sql, id, 'stop', 'user')
    await writeTransitions(
      sql,
      request(id, { version: 1, commandSeq: 2, transitions: [graceForStop], graceSeconds: 30 }),
    )
    const requestId = randomUUID()
    await recordOperatorRequest(sql, id, { id: requestId, ip: '192.0.2.7' })
    const transitionRequest = { cause: 'transition' as const, transitions: [byOperator], operatorRequestId: requestId }
    const outcome = await writeTransitions(sql, request(id, { version: 2, commandSeq: 2, ...transitionRequest }))
    expect(outcome).toMatchObject({ isWritten: true, session: { state: 'active', commandSeq: 3 } })
    expect(await findRelaySession(sql, id)).toMatchObject({
      ...{ command: 'run', commandInitiator: 'operator', commandSeq: 3, commandDeliveredSeq: 3 },
    })
    expect(await auditOf(requestId)).toMatchObject([{ ip: '192.0.2.7', detail: { session_id: id, to: 'active' } }])
    expect(await isOperatorRequestDone(sql, { userId }, requestId)).toBe(true)
  })

  test('is not written after its request was withdrawn or replaced', async () => {
    const id = await activeSession()
    const [first, second] = [randomUUID(), randomUUID()]
    for (const requestId of [first, second]) await recordOperatorRequest(sql, id, { id: requestId, ip: '192.0.2.7' })
    const transitionRequest = request(id, {
      version: 1,
      cause: 'transition',
      transitions: [graceForStop],
      operatorRequestId: first,
    })
    expect(await writeTransitions(sql, transitionRequest)).toEqual({ type: 'withdrawn' })
    expect(await withdrawOperatorRequest(sql, id, first)).toBe(false)
    expect(await withdrawOperatorRequest(sql, id, second)).toBe(true)
    expect(await writeTransitions(sql, { ...transitionRequest, operatorRequestId: second })).toEqual({
      type: 'withdrawn',
    })
    expect(await findRelaySession(sql, id)).toMatchObject({ state: 'active', version: 1 })
  })
})

describe('a silent relay', () => {
  test('does not lose its health while it reports', async () => {
    const id = await activeSession()
    await report(id, 1)
    const transitionRequest = request(id, { version: 1, cause: 'health_lost', transitions: [lost], graceSeconds: 20 })
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      type: 'stored',
      isWritten: false,
      session: { state: 'active' },
    })
    await report(id, 4)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      type: 'stored',
      isWritten: true,
      session: { state: 'grace' },
    })
  })

  test('becomes active when it reported before its grace ended', async () => {
    const id = await activeSession()
    await report(id, 30)
    await writeTransitions(sql, request(id, { version: 1, cause: 'health_lost', transitions: [lost], graceSeconds: 0 }))
    await age(id, 20)
    const transitionRequest = request(id, { version: 2, cause: 'deadline', transitions: [elapsed] })
    await report(id, 10)
    expect(await writeTransitions(sql, transitionRequest)).toEqual({ type: 'reporting' })
    await report(id, 25)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: true,
      session: { state: 'stopped' },
    })
  })

  test('becomes active when it reported before its provisioning timeout', async () => {
    const id = await insertSession()
    await bind(id)
    await age(id, 20)
    await report(id, 1)
    const transitionRequest = request(id, { cause: 'deadline', transitions: [timeout] })
    expect(await writeTransitions(sql, transitionRequest)).toEqual({ type: 'reporting' })
    await sql`delete from relay_health where session_id = ${id}`
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({ session: { state: 'stopped' } })
  })

  test('has a later provisioning timeout after an outage of the API', async () => {
    const id = await insertSession()
    await bind(id)
    await age(id, 60)
    await presentSince('api', 5)
    const transitionRequest = request(id, { cause: 'deadline', transitions: [timeout] })
    expect(postponedSeconds(await writeTransitions(sql, transitionRequest))).toBeCloseTo(15, 0)
    await presentSince('api', 21)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: true,
      session: { state: 'stopped' },
    })
  })

  test('has a later provisioning timeout after an outage of the workers', async () => {
    const id = await insertSession()
    await age(id, 60)
    await presentSince('api', 1)
    await presentSince('worker', 5)
    const transitionRequest = request(id, { cause: 'deadline', transitions: [timeout] })
    expect(postponedSeconds(await writeTransitions(sql, transitionRequest))).toBeCloseTo(15, 0)
    await presentSince('worker', 7200)
    await sql`update presence set seen_at = now() - interval '1 minute' where role = 'worker'`
    expect(postponedSeconds(await writeTransitions(sql, transitionRequest))).toBeCloseTo(20, 0)
    await presentSince('worker', 21)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: true,
      session: { state: 'stopped' },
    })
  })

  test('is stopped at its deadline by the clock of Postgres, not by the clock of the workflow', async () => {
    const id = await insertSession()
    const early = request(id, { cause: 'deadline', transitions: [timeout] })
    expect(postponedSeconds(await writeTransitions(sql, early))).toBeCloseTo(20, 0)
    const stopping = await activeSession()
    await writeTransitions(sql, request(stopping, { version: 1, transitions: [graceForStop], graceSeconds: 8 }))
    const elapsing = request(stopping, { version: 2, cause: 'deadline', transitions: [elapsed] })
    expect(postponedSeconds(await writeTransitions(sql, elapsing))).toBeCloseTo(8, 0)
  })

  test('has a longer grace after an outage of the API, and clients see the later end', async () => {
    const id = await activeSession()
    await report(id, 100)
    await writeTransitions(
      sql,
      request(id, { version: 1, cause: 'health_lost', transitions: [lost], graceSeconds: 20 }),
    )
    await age(id, 60)
    await sql`update relay_sessions set grace_ends_at = now() - interval '40 seconds' where id = ${id}`
    await presentSince('api', 5)
    const transitionRequest = request(id, { version: 2, cause: 'deadline', transitions: [elapsed] })
    expect(postponedSeconds(await writeTransitions(sql, transitionRequest))).toBeCloseTo(15, 0)
    const shown = (await findRelaySession(sql, id))?.graceEndsAt?.getTime() ?? 0
    expect((shown - Date.now()) / 1000).toBeCloseTo(15, 0)
  })

  test('is stopped for a lost instance only while it does not report', async () => {
    const id = await activeSession()
    await report(id, 1)
    const gone = { to: 'stopped', reason: 'force_disconnected', initiator: 'system' } as const
    const transitionRequest = request(id, { version: 1, cause: 'instance_gone', transitions: [lost, gone] })
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: false,
      session: { state: 'active' },
    })
    await report(id, 10)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: true,
      session: { state: 'stopped' },
    })
  })

  test('is stopped as idle only while it reports that no stream comes in', async () => {
    const id = await activeSession()
    const graceByTimer = { to: 'grace', reason: 'force_disconnected', initiator: 'timer' } as const
    const stoppedByTimer = { to: 'stopped', reason: 'force_disconnected', initiator: 'timer' } as const
    const transitionRequest = request(id, { version: 1, cause: 'idle', transitions: [graceByTimer, stoppedByTimer] })
    await report(id, 1)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: false,
      session: { state: 'active' },
    })
    await sql`update relay_health set idle_since = now() where session_id = ${id}`
    await report(id, 10)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: false,
      session: { state: 'active' },
    })
    await report(id, 1)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: true,
      session: { state: 'stopped' },
    })
  })

  test('leaves its stop grace on time even if it reports', async () => {
    const id = await activeSession()
    await writeTransitions(sql, request(id, { version: 1, transitions: [graceForStop], graceSeconds: 0 }))
    await report(id, 0)
    expect(
      await writeTransitions(sql, request(id, { version: 2, cause: 'deadline', transitions: [elapsed] })),
    ).toMatchObject({
      isWritten: true,
      session: { state: 'stopped' },
    })
  })
})

describe('the usage of a relay', () => {
  test('continues in grace and ends with the session', async () => {
    const id = await activeSession()
    await report(id, 0)
    await writeTransitions(sql, request(id, { version: 1, transitions: [graceForStop], graceSeconds: 0 }))
    const resumed = { to: 'active', reason: 'start_requested', initiator: 'user' } as const
    await writeTransitions(sql, request(id, { version: 2, transitions: [resumed] }))
    expect(await usage(id)).toEqual([{ seconds: null, endedAgo: null }])
    await writeTransitions(sql, request(id, { version: 3, transitions: [graceForStop, stopNow] }))
    const intervals = await usage(id)
    expect(intervals).toHaveLength(1)
    expect(intervals[0]?.seconds).toBeGreaterThanOrEqual(60)
    expect(intervals[0]?.seconds).toBeLessThan(63)
  })

  test('of a relay that died ends half a minute after its last report', async () => {
    const id = await activeSession()
    await ageUsage(id, 440)
    await report(id, 200)
    await writeTransitions(sql, request(id, { version: 1, transitions: [graceForStop, stopNow] }))
    const [interval] = await usage(id)
    expect(interval?.seconds).toBeGreaterThanOrEqual(330)
    expect(interval?.seconds).toBeLessThan(333)
    expect(interval?.endedAgo).toBeLessThan(172)
  })

  test('continues to the end of a session whose reports could not be received', async () => {
    const [away, returned] = [await activeSession(), await activeSession()]
    for (const id of [away, returned]) {
      await ageUsage(id, 440)
      await report(id, 200)
    }
    await presentSince('api', 2)
    await writeTransitions(sql, request(returned, { version: 1, transitions: [graceForStop, stopNow] }))
    expect((await usage(returned))[0]?.endedAgo).toBeLessThan(2)
    await sql`update presence set seen_at = now() - interval '1 minute' where role = 'api'`
    await writeTransitions(sql, request(away, { version: 1, transitions: [graceForStop, stopNow] }))
    expect((await usage(away))[0]?.endedAgo).toBeLessThan(2)
  })

  test('of a relay that reports every two minutes ends one interval after its last report', async () => {
    const id = await activeSession()
    await ageUsage(id, 440)
    await report(id, 200)
    const settings = { ...request(id, {}).settings, healthTimeoutSeconds: 150 }
    const transitionRequest = request(id, {
      version: 1,
      transitions: [graceForStop, stopNow],
      settings,
      healthIntervalSeconds: 120,
    })
    await writeTransitions(sql, transitionRequest)
    const [interval] = await usage(id)
    expect(interval?.endedAgo).toBeGreaterThanOrEqual(79)
    expect(interval?.endedAgo).toBeLessThan(82)
  })

  test('ends neither before it began nor later than now', async () => {
    const [early, late] = [await activeSession(), await activeSession()]
    await report(early, 3600)
    await report(late, 10)
    for (const id of [early, late])
      await writeTransitions(sql, request(id, { version: 1, transitions: [graceForStop, stopNow] }))
    expect((await usage(early))[0]?.seconds).toBe(0)
    expect((await usage(late))[0]?.endedAgo).toBeLessThan(2)
  })

  test('that never became ready is none', async () => {
    const id = await insertSession()
    await writeTransitions(sql, request(id, { transitions: [stopNow] }))
    expect(await usage(id)).toEqual([])
  })
})
