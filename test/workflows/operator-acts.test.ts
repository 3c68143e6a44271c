/**
 * What an operator can do to the workflow of a session in the Temporal UI, in each state and while its instance is
 * created. The worker runs in this process, so a workflow that takes it down ends the tests.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import { relaySessionWorkflowId } from '../../workflows/messages.ts'
import { createFakeRelays, fakeInstanceId } from '../support/fake-relay-provider.ts'
import { runRelayJob } from '../support/relay-jobs.ts'
import { eventually, type RelayUser, startService, startTestWorker, type TestService } from '../support/relays.ts'
import { longRelayTimeouts } from '../support/subscribers.ts'

let service: TestService
/** Calls that create the instance of a session, by its id, which wait for their release. */
const creating = new Map<string, () => void>()

beforeAll(async () => {
  const relays = createFakeRelays()
  const hold = (signal: AbortSignal | undefined, id: string) =>
    new Promise<void>((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason))
      creating.set(id, resolve)
    })
  const create: RelayProvider['create'] = async (spec, signal) => {
    if (spec.sessionId !== null && heldConnections.has(await connectionOf(spec.sessionId)))
      await hold(signal, spec.sessionId)
    return relays.create(spec, signal)
  }
  const variables = { ...longRelayTimeouts, SVC_RELAY_GRACE_SECONDS: '300', SVC_RELAY_STOP_GRACE_SECONDS: '300' }
  service = await startService({ variables, worker: false })
  await startTestWorker(service.api, () => ({ ...relays, create }))
})

const heldConnections = new Set<string>()
const connectionOf = async (sessionId: string): Promise<string> => {
  const rows = await service.api.sql<{ connectionId: string }[]>`
    select connection_id from relay_sessions where id = ${sessionId}`
  return rows[0]?.connectionId ?? ''
}

const sessionOf = async (sessionId: string) => (await service.history(sessionId)).session
const handleOf = (sessionId: string) =>
  service.api.services.temporal.workflow.getHandle(relaySessionWorkflowId(sessionId))

async function report(sessionId: string): Promise<void> {
  const [secret = ''] = service.api.services.config.relayAuthSecrets
  const body = { session_id: sessionId, instance_id: fakeInstanceId(sessionId) }
  await service.api.post('/relay/health', body, { headers: { 'X-Relay-Auth': secret } })
}

interface Started {
  readonly user: RelayUser
  readonly sessionId: string
}

async function start(connectionId: string): Promise<Started> {
  const user = await service.user()
  const { session_id: sessionId } = (await user.start({ connection_id: connectionId })).body.session
  return { user, sessionId }
}

async function startBound(): Promise<Started> {
  const started = await start('bound')
  await eventually(
    () => sessionOf(started.sessionId),
    ({ instance_id }) => instance_id !== null,
  )
  return started
}

async function startActive(): Promise<Started> {
  const started = await startBound()
  await report(started.sessionId)
  await eventually(
    () => sessionOf(started.sessionId),
    ({ state }) => state === 'active',
  )
  return started
}

const states: Readonly<Record<string, () => Promise<Started>>> = {
  'while its instance is created': async () => {
    heldConnections.add('held')
    const started = await start('held')
    await eventually(() => creating.has(started.sessionId), Boolean)
    return started
  },
  'before its instance has reported': startBound,
  'while it is active': startActive,
  'in the grace of a stop': async () => {
    const started = await startActive()
    await started.user.stop({ session_id: started.sessionId })
    await eventually(
      () => sessionOf(started.sessionId),
      ({ state }) => state === 'grace',
    )
    return started
  },
  'in the grace of lost health': async () => {
    const started = await startActive()
    const { sql, services } = service.api
    await sql`update presence set since = now() - interval '1 day' where role = 'api'`
    await sql`update relay_health set last_report_at = now() - interval '1 hour' where session_id = ${started.sessionId}`
    await services.relaySessions.healthLost(started.sessionId)
    await eventually(
      () => sessionOf(started.sessionId),
      ({ state }) => state === 'grace',
    )
    return started
  },
}

const wrongArguments = [
  [],
  [null],
  ['a string'],
  [7],
  [[]],
  [{}],
  [{ instanceId: 5, seq: 'x', to: {}, requestId: null }],
]

/** Acts after which the session goes on as it was. */
const harmless: Readonly<Record<string, (sessionId: string) => Promise<void>>> = {
  'signals of a wrong shape': async (sessionId) => {
    // Signals without arguments take any. Only `wake` says nothing about the relay.
    for (const name of ['instanceGone', 'wake', 'unknown'])
      for (const args of wrongArguments) await handleOf(sessionId).signal(`relay.${name}`, ...args)
  },
  'updates and queries of a wrong shape': async (sessionId) => {
    for (const name of ['relay.command', 'relay.transition', 'relay.unknown'])
      for (const args of wrongArguments)
        await expect(handleOf(sessionId).executeUpdate(name, { args: args as [] })).rejects.toThrow()
    for (const args of wrongArguments) await handleOf(sessionId).query('snapshot', ...args)
    await expect(handleOf(sessionId).query('unknown')).rejects.toThrow()
  },
  'a termination': async (sessionId) => {
    await handleOf(sessionId).terminate('an operator')
    await service.api
      .sql`update relay_sessions set created_at = created_at - interval '20 seconds' where id = ${sessionId}`
    await eventually(
      async () => {
        await runRelayJob(service.api, 'restart_workflows')
        return service.api.services.relaySessions.isRunning(sessionId)
      },
      Boolean,
      60,
    )
  },
  'a reset to its first task': async (sessionId) => {
    const { temporal, config } = service.api.services
    const { runId } = await handleOf(sessionId).describe()
    const { events = [] } = await handleOf(sessionId).fetchHistory()
    const workflowTaskCompleted = 7
    const first = events?.find(({ eventType }) => Number(eventType) === workflowTaskCompleted)
    await temporal.workflowService.resetWorkflowExecution({
      namespace: config.temporal.namespace,
      workflowExecution: { workflowId: relaySessionWorkflowId(sessionId), runId },
      workflowTaskFinishEventId: first?.eventId ?? null,
      requestId: runId,
      reason: 'an operator',
    })
  },
}

/** The session takes a stop, and leaves no instance. */
async function expectEnd({ user, sessionId }: Started): Promise<void> {
  await user.stop({ session_id: sessionId, immediate: true })
  await eventually(
    () => sessionOf(sessionId),
    ({ state }) => state === 'stopped',
  )
  await expectNoInstance(sessionId)
}

const expectNoInstance = (sessionId: string) =>
  eventually(
    async () => ({
      instances: (await service.api.sql`select from instances where session_id = ${sessionId} and gone_at is null`)
        .count,
      status: (await handleOf(sessionId).describe()).status.name,
    }),
    ({ instances, status }) => instances === 0 && status === 'COMPLETED',
    30,
  )

describe.concurrent.each(Object.entries(states))('a session %s', (_, reach) => {
  test('is stopped by a cancellation', async () => {
    const { sessionId } = await reach()
    await handleOf(sessionId).cancel()
    const session = await eventually(
      () => sessionOf(sessionId),
      ({ state }) => state === 'stopped',
    )
    expect(session.reason).toBe('force_disconnected')
    await expectNoInstance(sessionId)
  })

  test.each(Object.entries(harmless))('is as before after %s, and takes a stop', async (_, act) => {
    const started = await reach()
    const { sessionId } = started
    const before = await sessionOf(sessionId)
    await act(sessionId)
    // The workflow answers, so no task holds it.
    const snapshot = await eventually(
      () => service.api.services.relaySessions.snapshot(sessionId),
      (answer) => answer?.state === before.state,
    )
    expect(snapshot?.sessionId).toBe(sessionId)
    expect((await sessionOf(sessionId)).state).toBe(before.state)
    creating.get(sessionId)?.()
    await expectEnd(started)
  })
})
