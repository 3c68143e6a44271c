/** The write of transitions: once, with history, usage and audit. */
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { recordCommand } from '../../../db/relay/commands.ts'
import {
  isOperatorRequestDone,
  recordOperatorRequest,
  withdrawOperatorRequest,
} from '../../../db/relay/operator-requests.ts'
import { findRelaySession } from '../../../db/relay/sessions.ts'
import { writeTransitions } from '../../../db/transactions/write-transitions.ts'
import {
  healthLost,
  relayReady,
  startTransitions,
  stopGrace,
  stopNow,
  transitionsRequest,
} from '../../support/relay-transitions.ts'

const { sql, userId, insertSession, insertActiveSession, writePresence, listHistory, listUsage } =
  await startTransitions()

beforeEach(async () => {
  await writePresence('api', 7200)
  await writePresence('worker', 7200)
})

describe('a transition', () => {
  test('writes the row, the history and the usage, and a repeated request returns the stored state', async () => {
    const id = await insertSession()
    const transitionRequest = transitionsRequest(id, { transitions: [relayReady] })
    const session = {
      state: 'active',
      reason: 'relay_ready',
      version: 1,
      instanceId: null,
      commandSeq: 1,
      endsInMillis: null,
    }
    expect(await writeTransitions(sql, transitionRequest)).toEqual({ type: 'stored', isWritten: true, session })
    expect(await writeTransitions(sql, transitionRequest)).toEqual({ type: 'stored', isWritten: false, session })
    expect(await listHistory(id)).toEqual(['provisioning → active: relay_ready'])
    expect(await listUsage(id)).toEqual([{ seconds: null, endedSecondsAgo: null }])
    expect(await findRelaySession(sql, id)).toMatchObject({ state: 'active', activeAt: expect.any(Date) })
  })

  test('is written once by concurrent requests', async () => {
    const id = await insertSession()
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, () => writeTransitions(sql, transitionsRequest(id, { transitions: [relayReady] }))),
    )
    expect(outcomes.filter((outcome) => outcome.type === 'stored' && outcome.isWritten)).toHaveLength(1)
    expect(await listHistory(id)).toHaveLength(1)
  })

  test('to grace, when repeated, returns the remaining grace', async () => {
    const id = await insertActiveSession()
    const transitionRequest = transitionsRequest(id, { version: 1, transitions: [stopGrace], graceSeconds: 30 })
    const first = await writeTransitions(sql, transitionRequest)
    expect(first).toMatchObject({ isWritten: true, session: { state: 'grace', endsInMillis: 30_000 } })
    await sql`update relay_sessions set grace_ends_at = grace_ends_at - interval '10 seconds' where id = ${id}`
    const repeated = await writeTransitions(sql, transitionRequest)
    expect(repeated).toMatchObject({ isWritten: false, session: { state: 'grace' } })
    const remainingMillis = repeated.type === 'stored' ? (repeated.session.endsInMillis ?? 0) : 0
    expect(remainingMillis).toBeGreaterThan(18_000)
    expect(remainingMillis).toBeLessThanOrEqual(20_000)
  })

  test('requested by a reset execution returns the last command that the row reflects', async () => {
    const id = await insertActiveSession()
    await recordCommand(sql, id, 'stop', 'user')
    const transitionRequest = transitionsRequest(id, {
      version: 1,
      commandSeq: 2,
      transitions: [stopGrace],
      graceSeconds: 30,
    })
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({ isWritten: true })
    const reset = transitionsRequest(id, { version: 0, commandSeq: 1, transitions: [relayReady] })
    expect(await writeTransitions(sql, reset)).toMatchObject({
      isWritten: false,
      session: { state: 'grace', commandSeq: 2 },
    })
  })

  test('request without transitions returns the stored state', async () => {
    const id = await insertActiveSession()
    expect(await writeTransitions(sql, transitionsRequest(id, { version: 1, cause: 'wake' }))).toMatchObject({
      isWritten: false,
      session: { state: 'active', version: 1, instanceId: 'i-1' },
    })
  })

  test('to stopped marks all commands as delivered', async () => {
    const id = await insertActiveSession()
    await recordCommand(sql, id, 'stop_now', 'user')
    await writeTransitions(
      sql,
      transitionsRequest(id, { version: 1, commandSeq: 2, transitions: [stopGrace, stopNow] }),
    )
    expect(await findRelaySession(sql, id)).toMatchObject({ commandSeq: 2, commandDeliveredSeq: 2 })
  })

  test('pair is written as a whole or not at all', async () => {
    const id = await insertActiveSession()
    const illegalPair = writeTransitions(
      sql,
      transitionsRequest(id, { version: 1, transitions: [stopGrace, relayReady] }),
    )
    await expect(illegalPair).rejects.toMatchObject({ code: '23514' })
    expect(await findRelaySession(sql, id)).toMatchObject({ state: 'active', version: 1 })
    expect(await listHistory(id)).toHaveLength(1)
    expect(await listUsage(id)).toEqual([{ seconds: null, endedSecondsAgo: null }])

    const outcome = await writeTransitions(
      sql,
      transitionsRequest(id, { version: 1, transitions: [stopGrace, stopNow] }),
    )
    expect(outcome).toMatchObject({ isWritten: true, session: { state: 'stopped', version: 3 } })
    const row = await findRelaySession(sql, id)
    expect(row).toMatchObject({ pairTokenSealed: null, relayWsTokenSealed: null, graceEndsAt: null })
    const hashes = await sql`select pair_token_hash, relay_ws_token_hash from relay_sessions where id = ${id}`
    expect(hashes).toEqual([{ pairTokenHash: null, relayWsTokenHash: null }])
    expect((await listHistory(id)).slice(1)).toEqual([
      'active → grace: stop_requested',
      'grace → stopped: stop_requested',
    ])
  })

  test('is not written when a newer command was accepted', async () => {
    const id = await insertActiveSession()
    await recordCommand(sql, id, 'stop', 'user')
    const transitionRequest = transitionsRequest(id, { version: 1, transitions: [healthLost] })
    expect(await writeTransitions(sql, transitionRequest)).toEqual({
      type: 'newer_command',
      command: { seq: 2, command: 'stop', initiator: 'user' },
    })
    expect(await findRelaySession(sql, id)).toMatchObject({ state: 'active', version: 1 })
    expect(
      await writeTransitions(sql, { ...transitionRequest, commandSeq: 2, transitions: [stopGrace] }),
    ).toMatchObject({
      isWritten: true,
    })
  })

  test('of a session that was deleted with its account returns stopped', async () => {
    const outcome = await writeTransitions(
      sql,
      transitionsRequest(randomUUID(), { version: 4, transitions: [relayReady] }),
    )
    expect(outcome).toMatchObject({ type: 'stored', isWritten: false, session: { state: 'stopped', version: 5 } })
  })
})

describe('a transition that an operator requests', () => {
  const resumedByOperator = { to: 'active', reason: 'start_requested', initiator: 'operator' } as const
  const listAuditEntries = async (requestId: string) =>
    sql`select ip, detail from audit_entries where action = 'session_transitioned' and detail ->> 'request_id' = ${requestId}`

  test('is written together with its audit entry and the command run', async () => {
    const id = await insertActiveSession()
    await recordCommand(sql, id, 'stop', 'user')
    await writeTransitions(
      sql,
      transitionsRequest(id, { version: 1, commandSeq: 2, transitions: [stopGrace], graceSeconds: 30 }),
    )
    const requestId = randomUUID()
    await recordOperatorRequest(sql, id, { id: requestId, ip: '192.0.2.7' })
    const transitionRequest = {
      cause: 'transition' as const,
      transitions: [resumedByOperator],
      operatorRequestId: requestId,
    }
    const outcome = await writeTransitions(
      sql,
      transitionsRequest(id, { version: 2, commandSeq: 2, ...transitionRequest }),
    )
    expect(outcome).toMatchObject({ isWritten: true, session: { state: 'active', commandSeq: 3 } })
    expect(await findRelaySession(sql, id)).toMatchObject({
      command: 'run',
      commandInitiator: 'operator',
      commandSeq: 3,
      commandDeliveredSeq: 3,
    })
    expect(await listAuditEntries(requestId)).toMatchObject([
      { ip: '192.0.2.7', detail: { session_id: id, to: 'active' } },
    ])
    expect(await isOperatorRequestDone(sql, { userId }, requestId)).toBe(true)
  })

  test('is not written after its request was withdrawn or replaced', async () => {
    const id = await insertActiveSession()
    const [first, second] = [randomUUID(), randomUUID()]
    for (const requestId of [first, second]) await recordOperatorRequest(sql, id, { id: requestId, ip: '192.0.2.7' })
    const transitionRequest = transitionsRequest(id, {
      version: 1,
      cause: 'transition',
      transitions: [stopGrace],
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
