/** The recovery of sessions whose workflow or instances are lost. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import {
  type RelaySessionInput,
  relaySessionWorkflow,
  relaySessionWorkflowId,
  snapshot,
} from '../../workflows/messages.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { endGrace, makeSilent } from '../support/relay-jobs.ts'
import { eventually } from '../support/relays.ts'
import { longRelayTimeouts } from '../support/subscribers.ts'

const stopGraceSeconds = 600
let service: FakeRelayService
let createReal: RelayProvider['create']
beforeAll(async () => {
  service = await startFakeRelayService({
    variables: { ...longRelayTimeouts, SVC_RELAY_STOP_GRACE_SECONDS: String(stopGraceSeconds) },
  })
  createReal = service.relayProvider.create
  Object.assign(service.relayProvider, { create: ((...args) => create(...args)) satisfies RelayProvider['create'] })
})

/** Creates the instance of a session. A test replaces it to inject a failure. */
let create: RelayProvider['create']
beforeEach(() => {
  create = createReal
})

const workflows = () => service.api.services.temporal.workflow
const handleOf = (sessionId: string) => workflows().getHandle(relaySessionWorkflowId(sessionId))
const stateOf = async (sessionId: string) => (await service.history(sessionId)).session.state
const untilState = (sessionId: string, state: string) =>
  eventually(
    () => stateOf(sessionId),
    (current) => current === state,
  )
const isRunning = (sessionId: string) => service.api.services.relaySessions.isRunning(sessionId)
const untilEnded = (sessionId: string) =>
  eventually(
    () => isRunning(sessionId),
    (running) => !running,
  )

const instancesOf = async (sessionId: string) =>
  (await service.relayProvider.list()).filter((instance) => instance.sessionId === sessionId)

/** Activates a session whose instance is bound or is being created. */
async function untilReportedActive(sessionId: string): Promise<void> {
  const { session } = await eventually(
    () => service.history(sessionId),
    (history) => history.session.instance_id !== null,
  )
  await service.sendReport(sessionId, { instance_id: session.instance_id })
  await untilState(sessionId, 'active')
}

/** Deletes the execution and its history from Temporal. */
async function deleteExecution(sessionId: string): Promise<void> {
  await service.api.services.temporal.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: relaySessionWorkflowId(sessionId) },
  })
  await untilEnded(sessionId)
}

/**
 * Runs the restart job until the session has a workflow. The session counts as old enough, since Temporal's list is
 * delayed.
 */
async function untilRestarted(sessionId: string): Promise<void> {
  await service.api.sql`update relay_sessions set created_at = created_at - interval '1 minute' where id = ${sessionId}`
  await eventually(async () => {
    await service.runJob('restart_workflows')
    return isRunning(sessionId)
  }, Boolean)
}

describe('a live session whose workflow execution was deleted in Temporal', () => {
  test('gets another one by the restart job, and keeps the relay', async () => {
    const user = await service.user()
    const { session_id: sessionId } = await service.startActiveRelay(user)
    const before = await instancesOf(sessionId)
    await deleteExecution(sessionId)
    await untilRestarted(sessionId)
    expect(await stateOf(sessionId)).toBe('active')
    expect(await instancesOf(sessionId)).toEqual(before)
    const { body } = await user.stop({ session_id: sessionId, immediate: true })
    expect(body.session.state).toBe('stopped')
    await eventually(
      () => instancesOf(sessionId),
      (instances) => instances.length === 0,
    )
  })

  test('while it was provisioning becomes active on one relay', async () => {
    let hasBegun = false
    create = () => {
      hasBegun = true
      return new Promise(() => {})
    }
    const user = await service.user()
    const { session_id: sessionId } = (await user.start()).body.session
    await eventually(() => hasBegun, Boolean)
    await deleteExecution(sessionId)
    create = createReal
    await untilRestarted(sessionId)
    await untilReportedActive(sessionId)
    expect(await instancesOf(sessionId)).toHaveLength(1)
  })
})

describe('a workflow from an older store of Temporal', () => {
  test('whose session is stopped adopts that state and ends', async () => {
    const user = await service.user()
    const { session_id: sessionId, instance_id: instanceId } = await service.startActiveRelay(user)
    await user.stop({ session_id: sessionId, immediate: true })
    await untilEnded(sessionId)
    await service.api.sql`update relay_transitions set at = at - interval '1 minute' where session_id = ${sessionId}`
    const { config } = service.api.services
    const settings = config.relay
    const state = { state: 'active', reason: 'relay_ready', version: 1, commandSeq: 1, deadlineAt: null } as const
    const identity = { sessionId, region: 'local', settings, createdAt: Date.now() }
    const input: RelaySessionInput = {
      ...identity,
      userId: user.userId,
      connectionId: 'default',
      resumeState: { ...identity, ...state, instanceId: instanceId ?? null },
    }
    await workflows().start(relaySessionWorkflow, {
      taskQueue: config.temporal.taskQueue,
      workflowId: relaySessionWorkflowId(sessionId),
      args: [input],
    })
    await eventually(
      async () => {
        await service.runJob('restart_workflows')
        return isRunning(sessionId)
      },
      (running) => !running,
    )
  })

  test('that was reset into the grace of a stop waits for the end of that grace', async () => {
    const user = await service.user()
    const { session_id: sessionId } = await service.startActiveRelay(user)
    const stopped = await user.stop({ session_id: sessionId })
    const endsAt = Date.parse(stopped.body.session.grace_ends_at ?? '')
    const { events } = await handleOf(sessionId).fetchHistory()
    const firstTask = events?.find((event) => event.workflowTaskCompletedEventAttributes)
    await service.api.services.temporal.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: relaySessionWorkflowId(sessionId) },
      workflowTaskFinishEventId: firstTask?.eventId ?? null,
      requestId: crypto.randomUUID(),
      reason: 'test',
    })
    const adopted = await eventually(
      () => handleOf(sessionId).query(snapshot),
      ({ state }) => state === 'grace',
    )
    // Its clock is that of its task, which began before Postgres answered how long the grace lasts.
    expect(adopted.deadlineAt).toBeGreaterThan(endsAt - (stopGraceSeconds * 1000) / 2)
    await endGrace(service.api, sessionId)
    await untilState(sessionId, 'stopped')
    expect((await service.history(sessionId)).session.reason).toBe('grace_elapsed')
  })
})

describe('a relay that dies before its first report', () => {
  test('is created again, long before the provisioning deadline', async () => {
    const user = await service.user()
    const { session_id: sessionId } = (await user.start()).body.session
    const instanceIdOf = async () => (await service.history(sessionId)).session.instance_id
    const dead = await eventually(instanceIdOf, (instanceId) => instanceId !== null)
    await service.relayProvider.destroy(dead ?? '')
    await eventually(
      async () => {
        await makeSilent(service.api, [sessionId])
        await service.runJob('watch_health')
        return instanceIdOf()
      },
      (instanceId) => instanceId !== null && instanceId !== dead,
    )
    await untilReportedActive(sessionId)
    expect(await instancesOf(sessionId)).toHaveLength(1)
  })
})

describe('when all relays of a region are permanently gone', () => {
  test('their sessions end when the provider confirms it, and starts get new relays', async () => {
    const users = await Promise.all(Array.from({ length: 6 }, () => service.user()))
    const sessions = await Promise.all(users.map((user) => service.startActiveRelay(user)))
    const sessionIds = sessions.map(({ session_id }) => session_id)
    // Sessions of the tests before count as well.
    const { sql } = service.api
    const live = await sql<{ id: string }[]>`select id from relay_sessions where state = 'active'`
    await makeSilent(
      service.api,
      live.map(({ id }) => id),
    )
    await service.runJob('watch_health')
    expect(await Promise.all(sessionIds.map(stateOf))).toEqual(Array(6).fill('active'))
    for (const { instance_id: instanceId } of sessions) await service.relayProvider.destroy(instanceId ?? '')
    await eventually(
      async () => {
        await makeSilent(service.api, sessionIds)
        await service.runJob('watch_health')
        return Promise.all(sessionIds.map(stateOf))
      },
      (states) => states.every((state) => state === 'stopped'),
    )
    const responses = await Promise.all(users.map((user) => user.start()))
    expect(responses.map(({ status }) => status)).toEqual(Array(6).fill(201))
  })
})
