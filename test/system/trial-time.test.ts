/** A trial over its real duration, with skipped time: the timer of the workflow, and the Time Bank that decides. */
import { beforeAll, expect, test } from 'vitest'
import { givePlan } from '../support/api.ts'
import { eventually } from '../support/relays.ts'
import { type SkippingService, startSkippingService } from '../support/time-skipping.ts'
import { ageTrial, givenNewcomer } from '../support/trials.ts'

const second = 1000
const trialSeconds = 3600

let at: SkippingService
beforeAll(async () => {
  at = await startSkippingService({ SVC_TRIAL_SECONDS: `${trialSeconds}` })
}, 300_000)

const stateOf = async (sessionId: string) => (await at.service.history(sessionId)).session.state

test('the relay of a trial runs until its last second, and ends when the Time Bank has counted all of them', async () => {
  const user = await givenNewcomer(at.service)
  const { session_id } = await at.service.startActiveRelay(user)
  await at.pass((trialSeconds - 60) * second)
  expect(await stateOf(session_id)).toBe('active')

  // The database has counted a moment only: the timer is due, and waits once more for what is left there.
  await at.pass(120 * second)
  expect(await stateOf(session_id)).toBe('active')

  await ageTrial(at.service.api, user, trialSeconds)
  await at.pass(trialSeconds * second)
  const { session } = await eventually(
    () => at.service.history(session_id),
    (history) => history.session.state === 'stopped',
  )
  expect(session).toMatchObject({ reason: 'force_disconnected', detail: 'trial_ended' })
})

test('the relay of a trial goes on under a plan that is bought before the timer is due', async () => {
  const user = await givenNewcomer(at.service)
  const { session_id } = await at.service.startActiveRelay(user)
  await ageTrial(at.service.api, user, trialSeconds)
  await givePlan(at.service.api.sql, user.userId)
  await at.pass((trialSeconds + 60) * second)
  expect(await stateOf(session_id)).toBe('active')
})
