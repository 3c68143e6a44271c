/** The relay time of a session: when it begins, and when it ends. */
import { beforeEach, describe, expect, test } from 'vitest'
import { writeTransitions } from '../../../db/transactions/write-transitions.ts'
import { startTransitions, stopGrace, stopNow, transitionsRequest } from '../../support/relay-transitions.ts'

const { sql, insertSession, ageUsage, insertActiveSession, writeReport, writePresence, writeAbsence, listUsage } =
  await startTransitions()

let startedAt = 0
/** Seconds of the test until now, which a busy machine adds to what it measures. */
const elapsed = () => (performance.now() - startedAt) / 1000
beforeEach(async () => {
  startedAt = performance.now()
  await writePresence('api', 7200)
  await writePresence('worker', 7200)
})

describe('the usage of a relay', () => {
  test('continues in grace and ends with the session', async () => {
    const id = await insertActiveSession()
    await writeReport(id, 0)
    await writeTransitions(sql, transitionsRequest(id, { version: 1, transitions: [stopGrace], graceSeconds: 0 }))
    const resumed = { to: 'active', reason: 'start_requested', initiator: 'user' } as const
    await writeTransitions(sql, transitionsRequest(id, { version: 2, transitions: [resumed] }))
    expect(await listUsage(id)).toEqual([{ seconds: null, endedSecondsAgo: null }])
    await writeTransitions(sql, transitionsRequest(id, { version: 3, transitions: [stopGrace, stopNow] }))
    const intervals = await listUsage(id)
    expect(intervals).toHaveLength(1)
    expect(intervals[0]?.seconds).toBeGreaterThanOrEqual(60)
    expect(intervals[0]?.seconds).toBeLessThan(63 + elapsed())
  })

  test('of a relay that died ends one report interval after its last report', async () => {
    const id = await insertActiveSession()
    await ageUsage(id, 440)
    await writeReport(id, 200)
    await writeTransitions(sql, transitionsRequest(id, { version: 1, transitions: [stopGrace, stopNow] }))
    const [interval] = await listUsage(id)
    expect(interval?.seconds).toBeGreaterThanOrEqual(310)
    expect(interval?.seconds).toBeLessThan(313 + elapsed())
    expect(interval?.endedSecondsAgo).toBeLessThan(192 + elapsed())
  })

  test('continues to the end of a session whose reports could not be received', async () => {
    const [withoutApi, withReturnedApi] = [await insertActiveSession(), await insertActiveSession()]
    for (const id of [withoutApi, withReturnedApi]) {
      await ageUsage(id, 440)
      await writeReport(id, 200)
    }
    await writePresence('api', 2)
    await writeTransitions(sql, transitionsRequest(withReturnedApi, { version: 1, transitions: [stopGrace, stopNow] }))
    expect((await listUsage(withReturnedApi))[0]?.endedSecondsAgo).toBeLessThan(2 + elapsed())
    await writeAbsence('api')
    await writeTransitions(sql, transitionsRequest(withoutApi, { version: 1, transitions: [stopGrace, stopNow] }))
    expect((await listUsage(withoutApi))[0]?.endedSecondsAgo).toBeLessThan(2 + elapsed())
  })

  test('of a relay that reports every two minutes ends one interval after its last report', async () => {
    const id = await insertActiveSession()
    await ageUsage(id, 440)
    await writeReport(id, 200)
    const settings = { ...transitionsRequest(id, {}).settings, healthTimeoutSeconds: 150 }
    const transitionRequest = transitionsRequest(id, {
      version: 1,
      transitions: [stopGrace, stopNow],
      settings,
      healthIntervalSeconds: 120,
    })
    await writeTransitions(sql, transitionRequest)
    const [interval] = await listUsage(id)
    expect(interval?.endedSecondsAgo).toBeGreaterThanOrEqual(79)
    expect(interval?.endedSecondsAgo).toBeLessThan(82 + elapsed())
  })

  test('ends neither before it began nor later than now', async () => {
    const [early, late] = [await insertActiveSession(), await insertActiveSession()]
    await writeReport(early, 3600)
    await writeReport(late, 10)
    for (const id of [early, late])
      await writeTransitions(sql, transitionsRequest(id, { version: 1, transitions: [stopGrace, stopNow] }))
    expect((await listUsage(early))[0]?.seconds).toBe(0)
    expect((await listUsage(late))[0]?.endedSecondsAgo).toBeLessThan(2 + elapsed())
  })

  test('of a session that never became active is not recorded', async () => {
    const id = await insertSession()
    await writeTransitions(sql, transitionsRequest(id, { transitions: [stopNow] }))
    expect(await listUsage(id)).toEqual([])
  })
})
