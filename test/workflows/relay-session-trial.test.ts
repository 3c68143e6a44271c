/** The end of a trial: its relay ends with its time, by the Time Bank and not by the clock of the workflow alone. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as messages from '../../workflows/messages.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { eventually, type RelayUser } from '../support/relays.ts'
import { longRelayTimeouts } from '../support/subscribers.ts'
import { ageTrial, entitlementOf, givenNewcomer } from '../support/trials.ts'

const trialSeconds = 3600
let service: FakeRelayService

beforeAll(async () => {
  service = await startFakeRelayService({
    variables: { ...longRelayTimeouts, SVC_TRIAL_SECONDS: `${trialSeconds}` },
  })
})
// All starts of this file come from one network.
beforeEach(async () => {
  await service.api.sql`delete from trial_networks`
})

const handleOf = (sessionId: string) =>
  service.api.services.temporal.workflow.getHandle(messages.relaySessionWorkflowId(sessionId))

const untilStopped = (sessionId: string) =>
  eventually(
    () => service.history(sessionId),
    ({ session }) => session.state === 'stopped',
  )

const consumedSeconds = async ({ userId }: RelayUser): Promise<number> => {
  const [row] = await service.api.sql<{ seconds: number }[]>`
    select extract(epoch from sum(coalesce(ended_at, clock_timestamp()) - started_at))::float8 as seconds
    from usage_intervals where user_id = ${userId}`
  return row?.seconds ?? 0
}

/** A new account with a running relay. */
async function givenTrial() {
  const user = await givenNewcomer(service)
  return { user, sessionId: (await service.startActiveRelay(user)).session_id }
}

/** Lets the trial have so much left, and the workflow wait for that. */
async function leave(seconds: number, user: RelayUser, sessionId: string): Promise<void> {
  await ageTrial(service.api, user, trialSeconds - seconds - (await consumedSeconds(user)))
  await service.api.services.relaySessions.wake(sessionId)
}

/** Ends the execution of the session's workflow, and lets the job start another one. */
async function restartWorkflow(sessionId: string): Promise<void> {
  await handleOf(sessionId).terminate('the test restarts it')
  await eventually(
    async () => {
      await service.runJob('restart_workflows')
      return handleOf(sessionId).describe()
    },
    ({ status }) => status.name === 'RUNNING',
  )
}

const endedByTimer = [
  { from: 'active', to: 'grace', reason: 'force_disconnected', initiator: 'timer' },
  { from: 'grace', to: 'stopped', reason: 'force_disconnected', initiator: 'timer' },
]

describe('the relay of a trial', () => {
  test('ends when its time is used, says so, and cannot be started again', async () => {
    const { user, sessionId } = await givenTrial()
    await leave(1, user, sessionId)
    const { session, transitions } = await untilStopped(sessionId)
    expect(transitions.slice(-2)).toMatchObject(endedByTimer)
    expect(session).toMatchObject({ detail: 'trial_ended' })
    expect(await consumedSeconds(user)).toBeGreaterThanOrEqual(trialSeconds)
    expect((await user.start()).body).toMatchObject({ error: { code: 'trial_ended' } })
    expect(await entitlementOf(service.api, user)).toMatchObject({ trial: { state: 'ended', remaining_seconds: 0 } })
  })

  test('uses in a second session what the first one left, and ends with the sum', async () => {
    const { user, sessionId } = await givenTrial()
    await leave(2000, user, sessionId)
    await user.stop({ session_id: sessionId, immediate: true })
    await untilStopped(sessionId)
    const second = await service.startActiveRelay(user)
    await leave(1, user, second.session_id)
    expect((await untilStopped(second.session_id)).session).toMatchObject({ detail: 'trial_ended' })
    expect(await consumedSeconds(user)).toBeGreaterThanOrEqual(trialSeconds)
  })
})

describe('the workflow of a trial', () => {
  test('waits for the end again when it is restarted, with the time that was used before', async () => {
    const { user, sessionId } = await givenTrial()
    await ageTrial(service.api, user, trialSeconds - 2)
    await restartWorkflow(sessionId)
    expect((await untilStopped(sessionId)).session).toMatchObject({ detail: 'trial_ended' })
  })

  test('keeps the relay while an entitlement without a plan is written', async () => {
    const { user, sessionId } = await givenTrial()
    await service.api.services.subscriptions.wake(user.userId)
    await eventually(
      () => service.api.sql`select from users where id = ${user.userId} and entitlement_version > 0`,
      ({ length }) => length === 1,
    )
    expect((await service.history(sessionId)).session).toMatchObject({ state: 'active' })
  })
})
