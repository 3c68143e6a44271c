/**
 * Ends workflows whose tasks fail again and again, since such a task may crash each worker that takes it. The first
 * time a workflow begins again from its rows; at the second time within a day a session is stopped, and another
 * workflow is parked (docs/decisions/0055).
 */
import pLimit from 'p-limit'
import type { Database } from '../../db/connection.ts'
import { listInstancesOfSession, retireInstances } from '../../db/fleet/instances.ts'
import { recordEndedRun } from '../../db/operations/ended-workflows.ts'
import { findLiveSessions } from '../../db/relay/sessions.ts'
import { writeTransitions } from '../../db/transactions/write-transitions.ts'
import { transitionsOfFailedWorkflow } from '../../domain/relay/session.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { FailingWorkflow, FailingWorkflows } from '../../workflows/failing-workflows-client.ts'
import {
  regionOf,
  relaySessionWorkflow,
  sessionIdOf,
  subscriptionWorkflow,
  userIdOf,
} from '../../workflows/messages.ts'
import type { RelaySessionWorkflows } from '../../workflows/relay-session-client.ts'
import type { SubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import type { WarmInstancesWorkflows } from '../../workflows/warm-instances-client.ts'
import { createNotify } from '../notifications/notifier.ts'
import type { WorkerMetrics } from './metrics.ts'

export interface FailingWorkflowDeps {
  readonly config: Pick<Config, 'relay' | 'siteUrl' | 'timeBank'>
  readonly sql: Database
  readonly log: Logger
  readonly sealing: Sealing
  readonly metrics: Pick<WorkerMetrics, 'countTransitions'>
  readonly failingWorkflows: FailingWorkflows
  readonly relaySessions: RelaySessionWorkflows
  readonly subscriptions: SubscriptionWorkflows
  readonly warmInstances: WarmInstancesWorkflows
}

const callsMax = 16

/** @param workflowsMax that are looked at; a random part when more run, so each has its turn. */
export async function endFailingWorkflows(
  deps: FailingWorkflowDeps,
  workflowsMax: number,
  signal?: AbortSignal,
): Promise<void> {
  const running = await deps.failingWorkflows.listRunning()
  const chosen =
    running.length <= workflowsMax ? running : running.toSorted(() => Math.random() - 0.5).slice(0, workflowsMax)
  await pLimit(callsMax).map(chosen, async (workflow) => {
    if (signal?.aborted) return
    try {
      if (await deps.failingWorkflows.isFailing(workflow)) await endFailingWorkflow(deps, workflow)
    } catch (error) {
      deps.log.warn({ err: error, workflow_id: workflow.workflowId }, 'a failing workflow could not be ended')
    }
  })
}

/** Safe to repeat at each step: the record of the run says again whether it is the first one. */
async function endFailingWorkflow(deps: FailingWorkflowDeps, workflow: FailingWorkflow): Promise<void> {
  const { sql, log, failingWorkflows } = deps
  const isFirst = await recordEndedRun(sql, workflow)
  const fields = { workflow_id: workflow.workflowId, run_id: workflow.runId, is_first: isFirst }
  log.error(fields, 'a workflow whose tasks fail again and again is ended')
  if (workflow.workflowType === relaySessionWorkflow) {
    const sessionId = sessionIdOf(workflow.workflowId)
    // Before its workflow ends, since a live session without one is restarted.
    if (!isFirst) await stopSession(deps, sessionId)
    await failingWorkflows.end(workflow)
    if (isFirst) await restartSession(deps, sessionId)
    return
  }
  await failingWorkflows.end(workflow)
  if (!isFirst) await failingWorkflows.park(workflow)
  else if (workflow.workflowType === subscriptionWorkflow) await deps.subscriptions.wake(userIdOf(workflow.workflowId))
  else await deps.warmInstances.wake(regionOf(workflow.workflowId))
}

async function restartSession({ sql, relaySessions }: FailingWorkflowDeps, sessionId: string): Promise<void> {
  for (const session of await findLiveSessions(sql, [sessionId])) {
    await relaySessions.restart(session)
    // The job `deliver_commands` repeats this, so the start of a worker need not wait for it.
    if (session.commandSeq > session.commandDeliveredSeq) relaySessions.deliver(session).catch(() => undefined)
  }
}

/** Stops the session in place of its workflow. The orphan sweep destroys the instances. */
async function stopSession(deps: FailingWorkflowDeps, sessionId: string): Promise<void> {
  const { config, sql, sealing, metrics } = deps
  for (const session of await findLiveSessions(sql, [sessionId])) {
    const request = {
      sessionId,
      from: session.state,
      region: session.region,
      createdAt: session.createdAt.getTime(),
      version: session.version,
      commandSeq: session.commandSeq,
      cause: 'cancelled',
      transitions: transitionsOfFailedWorkflow(session.state),
      graceSeconds: null,
      operatorRequestId: null,
      settings: config.relay,
      healthIntervalSeconds: config.relay.healthIntervalSeconds,
      trialSeconds: config.timeBank.trialSeconds,
    } as const
    const outcome = await writeTransitions(sql, request, createNotify({ sealing, siteUrl: config.siteUrl }))
    if (outcome.type !== 'stored') throw new Error(`session ${sessionId} could not be stopped: ${outcome.type}`)
    if (outcome.isWritten) metrics.countTransitions(request, Date.now())
  }
  const instances = await listInstancesOfSession(sql, sessionId)
  await retireInstances(
    sql,
    instances.map(({ instanceId }) => instanceId),
  )
}
