/** The objections to a transition: reports, outages of our own, deadlines that have not passed. */
import { beforeEach, describe, expect, test } from 'vitest'
import { findRelaySession } from '../../../db/relay/sessions.ts'
import { writeTransitions } from '../../../db/transactions/write-transitions.ts'
import {
  graceElapsed,
  healthLost,
  postponedSeconds,
  provisionTimeout,
  startTransitions,
  stopGrace,
  transitionsRequest,
} from '../../support/relay-transitions.ts'

const { sql, insertSession, bind, ageSession, insertActiveSession, writeReport, writePresence, writeAbsence } =
  await startTransitions()

let startedAt = 0
beforeEach(async () => {
  startedAt = performance.now()
  await writePresence('api', 7200)
  await writePresence('worker', 7200)
})

/** Some of them may have passed since the beginning of the test. */
function expectSecondsLeft(seconds: number | undefined, wanted: number): void {
  const elapsed = (performance.now() - startedAt) / 1000
  expect(seconds).toBeLessThan(wanted + 0.5)
  expect(seconds).toBeGreaterThan(wanted - 0.5 - elapsed)
}

describe('a relay', () => {
  test('does not lose its health while it reports', async () => {
    const id = await insertActiveSession()
    await writeReport(id, 1)
    const transitionRequest = transitionsRequest(id, {
      version: 1,
      cause: 'health_lost',
      transitions: [healthLost],
      graceSeconds: 20,
    })
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      type: 'stored',
      isWritten: false,
      session: { state: 'active' },
    })
    await writeReport(id, 4)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      type: 'stored',
      isWritten: true,
      session: { state: 'grace' },
    })
  })

  test('becomes active when it reported before its grace ended', async () => {
    const id = await insertActiveSession()
    await writeReport(id, 30)
    await writeTransitions(
      sql,
      transitionsRequest(id, { version: 1, cause: 'health_lost', transitions: [healthLost], graceSeconds: 0 }),
    )
    await ageSession(id, 20)
    const transitionRequest = transitionsRequest(id, { version: 2, cause: 'deadline', transitions: [graceElapsed] })
    await writeReport(id, 10)
    expect(await writeTransitions(sql, transitionRequest)).toEqual({ type: 'reporting' })
    await writeReport(id, 25)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: true,
      session: { state: 'stopped' },
    })
  })

  test('becomes active when it reported before its provisioning timeout', async () => {
    const id = await insertSession()
    await bind(id)
    await ageSession(id, 20)
    await writeReport(id, 1)
    const transitionRequest = transitionsRequest(id, { cause: 'deadline', transitions: [provisionTimeout] })
    expect(await writeTransitions(sql, transitionRequest)).toEqual({ type: 'reporting' })
    await sql`delete from relay_health where session_id = ${id}`
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({ session: { state: 'stopped' } })
  })

  test('has a later provisioning timeout after an outage of the API', async () => {
    const id = await insertSession()
    await bind(id)
    await ageSession(id, 60)
    await writePresence('api', 5)
    const transitionRequest = transitionsRequest(id, { cause: 'deadline', transitions: [provisionTimeout] })
    expectSecondsLeft(postponedSeconds(await writeTransitions(sql, transitionRequest)), 15)
    await writePresence('api', 21)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: true,
      session: { state: 'stopped' },
    })
  })

  test('has a later provisioning timeout after an outage of the workers', async () => {
    const id = await insertSession()
    await ageSession(id, 60)
    await writePresence('api', 1)
    await writePresence('worker', 5)
    const transitionRequest = transitionsRequest(id, { cause: 'deadline', transitions: [provisionTimeout] })
    expectSecondsLeft(postponedSeconds(await writeTransitions(sql, transitionRequest)), 15)
    await writePresence('worker', 7200)
    await writeAbsence('worker')
    expectSecondsLeft(postponedSeconds(await writeTransitions(sql, transitionRequest)), 20)
    await writePresence('worker', 21)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: true,
      session: { state: 'stopped' },
    })
  })

  test('is stopped at its deadline by the clock of Postgres, not by the clock of the workflow', async () => {
    const id = await insertSession()
    const early = transitionsRequest(id, { cause: 'deadline', transitions: [provisionTimeout] })
    expectSecondsLeft(postponedSeconds(await writeTransitions(sql, early)), 20)
    const stopping = await insertActiveSession()
    await writeTransitions(sql, transitionsRequest(stopping, { version: 1, transitions: [stopGrace], graceSeconds: 8 }))
    const elapsing = transitionsRequest(stopping, { version: 2, cause: 'deadline', transitions: [graceElapsed] })
    expectSecondsLeft(postponedSeconds(await writeTransitions(sql, elapsing)), 8)
  })

  test('has a longer grace after an outage of the API, and clients see the later end', async () => {
    const id = await insertActiveSession()
    await writeReport(id, 100)
    await writeTransitions(
      sql,
      transitionsRequest(id, { version: 1, cause: 'health_lost', transitions: [healthLost], graceSeconds: 20 }),
    )
    await ageSession(id, 60)
    await sql`update relay_sessions set grace_ends_at = now() - interval '40 seconds' where id = ${id}`
    await writePresence('api', 5)
    const transitionRequest = transitionsRequest(id, { version: 2, cause: 'deadline', transitions: [graceElapsed] })
    expectSecondsLeft(postponedSeconds(await writeTransitions(sql, transitionRequest)), 15)
    const shownEnd = (await findRelaySession(sql, id))?.graceEndsAt?.getTime() ?? 0
    expectSecondsLeft((shownEnd - Date.now()) / 1000, 15)
  })

  test('is stopped for a lost instance only while it does not report', async () => {
    const id = await insertActiveSession()
    await writeReport(id, 1)
    const instanceGone = { to: 'stopped', reason: 'force_disconnected', initiator: 'system' } as const
    const transitionRequest = transitionsRequest(id, {
      version: 1,
      cause: 'instance_gone',
      transitions: [healthLost, instanceGone],
    })
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: false,
      session: { state: 'active' },
    })
    await writeReport(id, 10)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: true,
      session: { state: 'stopped' },
    })
  })

  test('is stopped as idle only while it reports that no stream comes in', async () => {
    const id = await insertActiveSession()
    const graceByTimer = { to: 'grace', reason: 'force_disconnected', initiator: 'timer' } as const
    const stoppedByTimer = { to: 'stopped', reason: 'force_disconnected', initiator: 'timer' } as const
    const transitionRequest = transitionsRequest(id, {
      version: 1,
      cause: 'idle',
      transitions: [graceByTimer, stoppedByTimer],
    })
    await writeReport(id, 1)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: false,
      session: { state: 'active' },
    })
    await sql`update relay_health set idle_since = now() where session_id = ${id}`
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: false,
      session: { state: 'active' },
    })
    await sql`update relay_health set idle_since = now() - interval '10 minutes' where session_id = ${id}`
    await writeReport(id, 10)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: false,
      session: { state: 'active' },
    })
    await writeReport(id, 1)
    expect(await writeTransitions(sql, transitionRequest)).toMatchObject({
      isWritten: true,
      session: { state: 'stopped' },
    })
  })

  test('leaves its stop grace on time even if it reports', async () => {
    const id = await insertActiveSession()
    await writeTransitions(sql, transitionsRequest(id, { version: 1, transitions: [stopGrace], graceSeconds: 0 }))
    await writeReport(id, 0)
    expect(
      await writeTransitions(
        sql,
        transitionsRequest(id, { version: 2, cause: 'deadline', transitions: [graceElapsed] }),
      ),
    ).toMatchObject({
      isWritten: true,
      session: { state: 'stopped' },
    })
  })
})
