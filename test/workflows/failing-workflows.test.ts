/** Workflows whose tasks fail again and again, as those do whose task ends each worker that takes it. */
import { expect, test } from 'vitest'
import * as messages from '../../workflows/messages.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { eventually } from '../support/relays.ts'
import { longRelayTimeouts, newSubscriber } from '../support/subscribers.ts'

const handleOf = ({ api }: FakeRelayService, workflowId: string) => api.services.temporal.workflow.getHandle(workflowId)

/**
 * Takes the pending task of the workflow three times: the first time it dies with it, so that the task times out, and
 * then fails it.
 */
async function failTasks(service: FakeRelayService, workflowId: string): Promise<string> {
  const { temporal, config } = service.api.services
  const { namespace, taskQueue } = config.temporal
  for (let failures = 0; failures < 3; failures += 1) {
    const { taskToken } = await temporal.withDeadline(Date.now() + 30_000, () =>
      temporal.workflowService.pollWorkflowTaskQueue({ namespace, identity: 'test', taskQueue: { name: taskQueue } }),
    )
    if (failures > 0)
      await temporal.workflowService.respondWorkflowTaskFailed({ namespace, identity: 'test', taskToken, cause: 1 })
  }
  const { runId, raw } = await handleOf(service, workflowId).describe()
  expect(raw.pendingWorkflowTask?.attempt).toBe(4)
  // The worker that starts finds it in Temporal's list, which lags behind.
  const query = `WorkflowId = '${workflowId}' AND ExecutionStatus = 'Running'`
  const listed = async () => {
    const runIds: string[] = []
    for await (const execution of temporal.workflow.list({ query })) runIds.push(execution.runId)
    return runIds
  }
  await eventually(listed, (runIds) => runIds.includes(runId))
  return runId
}

const statusOf = async ({ api }: FakeRelayService, workflowId: string, runId: string) =>
  (await api.services.temporal.workflow.getHandle(workflowId, runId).describe()).status.name

const endedWorkflowsOf = async ({ api }: FakeRelayService) =>
  (await (await fetch(`${api.url}/metrics`)).text()).match(/^svc_workflows_ended\{.*$/gm)

test('a session begins again before a worker takes its task, and is stopped with its instance at the second time', async () => {
  const service = await startFakeRelayService({ variables: longRelayTimeouts, worker: false })
  const user = await service.user()
  const { session_id: sessionId } = (await user.start()).body.session
  const workflowId = messages.relaySessionWorkflowId(sessionId)
  await service.api.services.deliveries.drain()
  const firstRun = await failTasks(service, workflowId)
  const worker = await service.startWorker()
  const sessionOf = async () => (await service.history(sessionId)).session
  await eventually(sessionOf, ({ instance_id }) => instance_id !== null)
  expect(await statusOf(service, workflowId, firstRun)).toBe('TERMINATED')
  expect(await endedWorkflowsOf(service)).toEqual([
    'svc_workflows_ended{workflow_type="relaySession",times="once"} 1',
    'svc_workflows_ended{workflow_type="relaySession",times="repeatedly"} 0',
  ])
  await service.sendReport(sessionId)
  await eventually(sessionOf, ({ state }) => state === 'active')
  await worker.stop()

  await service.api.services.relaySessions.wake(sessionId)
  const secondRun = await failTasks(service, workflowId)
  expect(secondRun).not.toBe(firstRun)
  await service.startWorker()
  expect(await sessionOf()).toMatchObject({ state: 'stopped', reason: 'force_disconnected' })
  expect(await statusOf(service, workflowId, secondRun)).toBe('TERMINATED')
  await service.runJob('sweep_orphans')
  expect(await service.relayProvider.list()).toEqual([])
  expect(await endedWorkflowsOf(service)).toContain(
    'svc_workflows_ended{workflow_type="relaySession",times="repeatedly"} 1',
  )
  // A user can start again, and the worker works.
  const next = await service.startActiveRelay(user)
  expect(next.state).toBe('active')
})

test('a subscription applies its events after the first time, and is parked at the second one', async () => {
  const service = await startFakeRelayService({ worker: false })
  const subscriber = await newSubscriber(service)
  const workflowId = messages.subscriptionWorkflowId(subscriber.userId)
  await subscriber.sendEvent('subscription.activated', { invoice_id: 'inv_1' })
  await failTasks(service, workflowId)
  const worker = await service.startWorker()
  await subscriber.waitForPlan(({ planTier }) => planTier === 'paid')
  await worker.stop()

  await service.api.services.subscriptions.wake(subscriber.userId)
  await failTasks(service, workflowId)
  await service.startWorker()
  const { taskQueue } = service.api.services.config.temporal
  expect(await handleOf(service, workflowId).describe()).toMatchObject({
    status: { name: 'RUNNING' },
    taskQueue: `${taskQueue}-parked`,
  })
  await service.api.services.subscriptions.wake(subscriber.userId)
  expect((await handleOf(service, workflowId).describe()).taskQueue).toBe(`${taskQueue}-parked`)
  // An operator ends it once the cause is mended.
  await handleOf(service, workflowId).terminate('mended')
  await service.api.services.subscriptions.wake(subscriber.userId)
  await eventually(
    async () => (await handleOf(service, workflowId).describe()).taskQueue,
    (queue) => queue === taskQueue,
  )
})

test('a message that cannot be decoded is dropped while a worker runs, and the relay goes on', async () => {
  const service = await startFakeRelayService({ variables: longRelayTimeouts })
  const user = await service.user()
  const { session_id: sessionId } = await service.startActiveRelay(user)
  const workflowId = messages.relaySessionWorkflowId(sessionId)
  const { temporal, config } = service.api.services
  const poisoned = (await handleOf(service, workflowId).describe()).runId
  await temporal.workflowService.signalWorkflowExecution({
    namespace: config.temporal.namespace,
    workflowExecution: { workflowId },
    signalName: 'relay.instanceGone',
    input: { payloads: [{ metadata: { encoding: Buffer.from('binary/unknown') }, data: Buffer.from('x') }] },
  })
  await eventually(
    async () => {
      await service.runJob('restart_workflows')
      return statusOf(service, workflowId, poisoned)
    },
    (status) => status !== 'RUNNING',
    60,
  )
  expect(await statusOf(service, workflowId, poisoned)).toBe('TERMINATED')
  expect((await user.active()).sessions[0]).toMatchObject({ session_id: sessionId, state: 'active' })
  const stopped = await user.stop({ session_id: sessionId, immediate: true })
  expect(stopped.body.session.state).toBe('stopped')
})
