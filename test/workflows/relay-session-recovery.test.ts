import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { RelayInstance, RelaySpec } from '../../providers/relay/provider.ts'
import { type RelaySessionInput, relaySessionWorkflow, relaySessionWorkflowId } from '../../workflows/messages.ts'
import { eventually, relayProcesses, startService, type TestService } from '../support/relays.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({
    variables: { SVC_RELAY_STOP_GRACE_SECONDS: '12' },
    around: (real) => ({ ...real, create: (spec, signal) => create((changed) => real.create(changed, signal), spec) }),
  })
})

/** Creates the instance of a session. A test replaces it to inject a failure. */
let create: (createReal: (spec: RelaySpec) => Promise<RelayInstance>, spec: RelaySpec) => Promise<RelayInstance>
beforeEach(() => {
  create = (createReal, spec) => createReal(spec)
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

/** Deletes the execution and its history from Temporal. */
async function deleteExecution(sessionId: string): Promise<void> {
  const { temporal } = service.api.services
  await temporal.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: relaySessionWorkflowId(sessionId) },
  })
  await eventually(
    () => isRunning(sessionId),
    (running) => !running,
  )
}

/** Makes the session old enough for the restart job, since Temporal's list is delayed. */
const ageSession = (sessionId: string) =>
  service.api.sql`update relay_sessions set created_at = created_at - interval '1 minute' where id = ${sessionId}`

describe.concurrent('a live session whose workflow execution was deleted in Temporal', () => {
  test('is replaced within a minute and keeps the relay', async () => {
    const { user, session } = await service.activeRelay()
    const [pid] = service.relaysOf(session.session_id)
    await ageSession(session.session_id)
    await deleteExecution(session.session_id)
    await eventually(() => isRunning(session.session_id), Boolean)
    expect(await stateOf(session.session_id)).toBe('active')
    expect(service.relaysOf(session.session_id)).toEqual([pid])
    const { body } = await user.stop({ session_id: session.session_id, immediate: true })
    expect(body.session.state).toBe('stopped')
    await eventually(
      () => service.relaysOf(session.session_id),
      (relays) => relays.length === 0,
    )
  })
})

describe.concurrent('a workflow from an older store of Temporal', () => {
  test('whose session is stopped adopts that state and ends', async () => {
    const { user, session } = await service.activeRelay()
    const { session_id: sessionId } = session
    await user.stop({ session_id: sessionId, immediate: true })
    await eventually(
      () => isRunning(sessionId),
      (running) => !running,
    )
    await service.api.sql`update relay_transitions set at = at - interval '1 minute' where session_id = ${sessionId}`
    const { config } = service.api.services
    const settings = config.relay
    const state = { state: 'active', reason: 'relay_ready', version: 1, commandSeq: 1, deadlineAt: null } as const
    const identity = { sessionId, region: 'local', settings, createdAt: Date.now() }
    const input: RelaySessionInput = {
      ...{ ...identity, userId: user.userId, connectionId: 'default' },
      resumeState: { ...identity, ...state, instanceId: session.instance_id ?? null },
    }
    await workflows().start(relaySessionWorkflow, {
      taskQueue: config.temporal.taskQueue,
      workflowId: relaySessionWorkflowId(sessionId),
      args: [input],
    })
    await eventually(
      () => isRunning(sessionId),
      (running) => !running,
    )
  })

  test('that was reset into the grace of a stop waits for the end of that grace', async () => {
    const { user, session } = await service.activeRelay()
    const stopped = await user.stop({ session_id: session.session_id })
    const endsAt = Date.parse(stopped.body.session.grace_ends_at ?? '')
    const { events } = await handleOf(session.session_id).fetchHistory()
    const firstTask = events?.find((event) => event.workflowTaskCompletedEventAttributes)
    await service.api.services.temporal.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: relaySessionWorkflowId(session.session_id) },
      workflowTaskFinishEventId: firstTask?.eventId ?? null,
      requestId: crypto.randomUUID(),
      reason: 'test',
    })
    const { session: ended } = await eventually(
      () => service.history(session.session_id),
      ({ session: current }) => current.state === 'stopped',
    )
    expect(ended.reason).toBe('grace_elapsed')
    expect(Date.parse(ended.stopped_at ?? '')).toBeGreaterThanOrEqual(endsAt)
  })
})

describe('a session whose workflow execution was deleted while it was provisioning', () => {
  test('becomes active on one relay', async () => {
    create = () => new Promise(() => {})
    const user = await service.user()
    const { session_id } = (await user.start()).body.session
    await eventually(() => isRunning(session_id), Boolean)
    await ageSession(session_id)
    await deleteExecution(session_id)
    create = (createReal, spec) => createReal(spec)
    await untilState(session_id, 'active')
    expect(service.relaysOf(session_id)).toHaveLength(1)
  })
})

describe('a relay that dies before its first report', () => {
  test('is created again long before the provisioning deadline', async () => {
    let attempts = 0
    create = async (createReal, spec) => {
      attempts += 1
      if (attempts > 1) return createReal(spec)
      const instance = await createReal({ ...spec, apiUrl: 'http://127.0.0.1:9' })
      for (const pid of service.relaysOf(spec.sessionId ?? '')) process.kill(pid, 'SIGKILL')
      return instance
    }
    const user = await service.user()
    const { session_id } = (await user.start()).body.session
    await untilState(session_id, 'active')
    expect(attempts).toBe(2)
    const { session } = await service.history(session_id)
    expect(Date.parse(session.active_at ?? '') - Date.parse(session.created_at)).toBeLessThan(18_000)
  })
})

describe('when all relays of a region are permanently gone', () => {
  test('their sessions end when the provider confirms it, and starts get new relays', async () => {
    const relays = await Promise.all(Array.from({ length: 6 }, () => service.activeRelay()))
    const sessionIds = relays.map(({ session }) => session.session_id)
    for (const { pid, sessionId } of relayProcesses(service.dataDir))
      if (sessionId !== undefined && sessionIds.includes(sessionId)) process.kill(pid, 'SIGKILL')
    for (const sessionId of sessionIds) await untilState(sessionId, 'stopped')
    const responses = await Promise.all(relays.map(({ user }) => user.start()))
    expect(responses.map(({ status }) => status)).toEqual(Array(6).fill(201))
  })
})
