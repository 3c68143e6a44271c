/**
 * Workflows whose recorded history the workflow code does not repeat: the SDK writes one when a worker stalls at a
 * wrong moment.
 */

import { defaultPayloadConverter } from '@temporalio/common'
import { expect, test } from 'vitest'
import * as messages from '../../workflows/messages.ts'
import { testEnvironment } from '../support/environment.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { temporaryFolder } from '../support/folders.ts'
import { findFreePort } from '../support/ports.ts'
import { startProgram } from '../support/programs.ts'
import { eventually } from '../support/relays.ts'
import { longRelayTimeouts, newSubscriber } from '../support/subscribers.ts'

/** `COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES` of Temporal's API. */
const modifyProperties = 16

/**
 * Completes the next workflow task of the service's queue in place of a worker, with a command that the code never
 * sends. Returns the id of the workflow.
 */
async function recordForeignCommand({ api }: FakeRelayService): Promise<string> {
  const { temporal, config } = api.services
  const [namespace, identity] = [config.temporal.namespace, 'test']
  const { taskToken, workflowExecution } = await temporal.withDeadline(Date.now() + 30_000, () =>
    temporal.workflowService.pollWorkflowTaskQueue({
      namespace,
      identity,
      taskQueue: { name: config.temporal.taskQueue },
    }),
  )
  const memo = { fields: { foreign: defaultPayloadConverter.toPayload(true) } }
  await temporal.workflowService.respondWorkflowTaskCompleted({
    namespace,
    identity,
    taskToken,
    commands: [{ commandType: modifyProperties, modifyWorkflowPropertiesCommandAttributes: { upsertedMemo: memo } }],
    forceCreateNewWorkflowTask: true,
  })
  return workflowExecution?.workflowId ?? ''
}

const firstRunOf = async ({ api }: FakeRelayService, workflowId: string) => {
  const { temporal } = api.services
  const handle = temporal.workflow.getHandle(workflowId)
  return temporal.workflow.getHandle(workflowId, (await handle.describe()).runId)
}

test('a subscription with such a history is replaced and counted, and its accepted events take effect', async () => {
  const service = await startFakeRelayService({ worker: false })
  const subscriber = await newSubscriber(service)
  await subscriber.sendEvent('subscription.activated', { invoice_id: 'inv_1' })
  const workflowId = await recordForeignCommand(service)
  expect(workflowId).toBe(messages.subscriptionWorkflowId(subscriber.userId))
  const replaced = await firstRunOf(service, workflowId)
  const { config } = service.api.services
  const metricsAddress = `127.0.0.1:${await findFreePort()}`
  const worker = await startProgram(
    'worker',
    testEnvironment({
      DATABASE_URL: config.database.url,
      SVC_DATA_DIR: await temporaryFolder(),
      SVC_TEMPORAL_TASK_QUEUE: config.temporal.taskQueue,
      SVC_WORKER_METRICS_ADDRESS: metricsAddress,
    }),
  )
  await subscriber.waitForPlan(({ planTier }) => planTier === 'paid')
  expect((await replaced.describe()).status.name).toBe('FAILED')
  // The alert WorkflowNondeterminism reads this metric.
  const metrics = await (await fetch(`http://${metricsAddress}/metrics`)).text()
  expect(metrics).toMatch(/^temporal_workflow_failed_total\{.*workflow_type="subscription".*\} 1$/m)
  await worker.stop()
})

test('a relay session with such a history is replaced, keeps its relay, and can be stopped', async () => {
  const service = await startFakeRelayService({ variables: longRelayTimeouts, worker: false })
  const user = await service.user()
  const { session_id: sessionId } = (await user.start()).body.session
  const workflowId = await recordForeignCommand(service)
  expect(workflowId).toBe(messages.relaySessionWorkflowId(sessionId))
  const replaced = await firstRunOf(service, workflowId)
  await service.startWorker()
  const stateOf = async () => (await user.active()).sessions.find(({ session_id }) => session_id === sessionId)
  await eventually(stateOf, (session) => session?.instance_id != null, 90)
  expect((await replaced.describe()).status.name).toBe('FAILED')
  await service.sendReport(sessionId)
  await eventually(stateOf, (session) => session?.state === 'active')
  const stopped = await user.stop({ session_id: sessionId, immediate: true })
  expect(stopped.body.session.state).toBe('stopped')
})
