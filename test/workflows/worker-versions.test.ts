/** Workers of two versions side by side. */
import { randomUUID } from 'node:crypto'
import type { WorkflowHandle } from '@temporalio/client'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Lifecycle } from '../../platform/lifecycle.ts'
import * as messages from '../../workflows/messages.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { eventually, operator } from '../support/relays.ts'
import { startWithShortHistory } from '../support/short-history.ts'
import {
  hourMillis,
  isPastDue,
  longRelayTimeouts,
  newPaidSubscriber,
  type Subscriber,
  subscriptionHandle,
} from '../support/subscribers.ts'

const deploymentName = `test-${randomUUID()}`
let service: FakeRelayService
let oldWorker: Lifecycle
let subscriber: Subscriber
/** Sessions that start before there is a version, and while v1 is the current one. */
let sessions: { unversioned: string; ending: string; continuing: string }

beforeAll(async () => {
  service = await startFakeRelayService({ variables: longRelayTimeouts, worker: false })
  const unversionedWorker = await service.startWorker()
  const unversioned = (await service.startActiveRelay(await service.user())).session_id
  oldWorker = await service.startWorker({ deploymentName, buildId: 'v1' })
  await setCurrentVersion('v1')
  await unversionedWorker.stop()
  subscriber = await newPaidSubscriber(service, { addons: 3 })
  const ending = (await service.startActiveRelay(subscriber)).session_id
  const continuing = await startWithShortHistory(service.api, await service.user())
  await service.sendReport(continuing)
  await untilState(continuing, 'active')
  sessions = { unversioned, ending, continuing }
  await service.startWorker({ deploymentName, buildId: 'v2' })
  await setCurrentVersion('v2')
})

const workflowOf = (sessionId: string): WorkflowHandle =>
  service.api.services.temporal.workflow.getHandle(messages.relaySessionWorkflowId(sessionId))
const untilState = (sessionId: string, state: string) =>
  eventually(
    () => service.history(sessionId),
    ({ session }) => session?.state === state,
  )

/**
 * Directs new workflows, and those that are not pinned, to a version. Temporal learns of a version by its worker's
 * first poll.
 */
const setCurrentVersion = (buildId: string) =>
  eventually(
    () =>
      service.api.services.temporal.workflowService
        .setWorkerDeploymentCurrentVersion({ namespace: 'default', deploymentName, buildId, identity: 'test' })
        .then(
          () => true,
          () => false,
        ),
    Boolean,
  )

/** The build ids that completed the workflow's tasks, in order, without repetitions. */
async function buildIdsOf(handle: WorkflowHandle): Promise<string[]> {
  const { events } = await handle.fetchHistory()
  const ids = (events ?? []).flatMap(
    ({ workflowTaskCompletedEventAttributes: completed }) => completed?.deploymentVersion?.buildId ?? [],
  )
  return ids.filter((id, index) => id !== ids[index - 1])
}

const untilCompleted = (handle: WorkflowHandle) =>
  eventually(
    () => handle.describe(),
    ({ status }) => status.name === 'COMPLETED',
  )

describe('with two versions of the worker side by side', () => {
  test('a session that an unversioned worker started ends on one of them', async () => {
    await service.api.post(
      `/admin/sessions/${sessions.unversioned}/disconnect`,
      { reason: 'maintenance' },
      { headers: operator },
    )
    await untilState(sessions.unversioned, 'stopped')
    await untilCompleted(workflowOf(sessions.unversioned))
    expect(await buildIdsOf(workflowOf(sessions.unversioned))).toHaveLength(1)
  })

  test('a session that started on the first one ends on it', async () => {
    await subscriber.stop({ session_id: sessions.ending, immediate: true })
    await untilState(sessions.ending, 'stopped')
    await untilCompleted(workflowOf(sessions.ending))
    expect(await buildIdsOf(workflowOf(sessions.ending))).toEqual(['v1'])
  })

  test('a session that continues as new stays on its version', async () => {
    const before = await workflowOf(sessions.continuing).describe()
    for (let index = 0; index < 20; index += 1) await workflowOf(sessions.continuing).signal(messages.healthRestored)
    const after = await eventually(
      () => workflowOf(sessions.continuing).describe(),
      ({ runId }) => runId !== before.runId,
    )
    expect(after.status.name).toBe('RUNNING')
    await workflowOf(sessions.continuing).signal(messages.wake)
    const buildIds = await eventually(
      () => buildIdsOf(workflowOf(sessions.continuing)),
      (ids) => ids.length > 0,
    )
    expect(buildIds).toEqual(['v1'])
  })

  test('a new session starts and ends on the second one', async () => {
    const { session_id: sessionId } = await service.startActiveRelay(subscriber, { connection_id: 'new' })
    await subscriber.stop({ session_id: sessionId, immediate: true })
    await untilCompleted(workflowOf(sessionId))
    expect(await buildIdsOf(workflowOf(sessionId))).toEqual(['v2'])
  })

  test('a subscription moves to the second one with its next event, and keeps its deadline', async () => {
    const failedAt = Date.now() - hourMillis
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
    const { paymentGraceEndsAt } = await subscriber.waitForPlan(isPastDue)
    const handle = subscriptionHandle(service, subscriber)
    const buildIds = await eventually(
      () => buildIdsOf(handle),
      (ids) => ids.includes('v2'),
    )
    expect(buildIds).toEqual(['v1', 'v2'])
    const snapshot = await handle.query(messages.subscriptionSnapshot)
    expect(snapshot?.wakesAt).toBe(paymentGraceEndsAt?.getTime())
  })

  test('the sessions that keep a version in use are listed by it', async () => {
    const { temporal } = service.api.services
    const query = `TemporalWorkerDeploymentVersion = '${deploymentName}:v1' AND ExecutionStatus = 'Running'`
    const listed = await eventually(
      async () => {
        const ids: string[] = []
        for await (const { workflowId } of temporal.workflow.list({ query })) ids.push(workflowId)
        return ids
      },
      (ids) => ids.length === 1,
    )
    expect(listed).toEqual([messages.relaySessionWorkflowId(sessions.continuing)])
  })

  test('a session whose version has no worker any more is executed by the current one after it was moved', async () => {
    await oldWorker.stop()
    const handle = workflowOf(sessions.continuing)
    const { temporal } = service.api.services
    await temporal.workflowService.updateWorkflowExecutionOptions({
      namespace: 'default',
      workflowExecution: { workflowId: handle.workflowId },
      workflowExecutionOptions: { versioningOverride: { autoUpgrade: true } },
      updateMask: { paths: ['versioning_override'] },
    })
    await handle.signal(messages.wake)
    const buildIds = await eventually(
      () => buildIdsOf(handle),
      (ids) => ids.includes('v2'),
    )
    expect(buildIds.at(-1)).toBe('v2')
    expect((await service.history(sessions.continuing)).session.state).toBe('active')
  })
})
