/** Sessions that an operator cancels in the Temporal UI before they have an instance. */
import { beforeAll, expect, test } from 'vitest'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import { relaySessionWorkflowId } from '../../workflows/messages.ts'
import { createFakeRelays } from '../support/fake-relay-provider.ts'
import { eventually, startService, startTestWorker, type TestService } from '../support/relays.ts'
import { longRelayTimeouts } from '../support/subscribers.ts'

let service: TestService
let relays: RelayProvider

beforeAll(async () => {
  relays = createFakeRelays()
  service = await startService({ variables: longRelayTimeouts, worker: false })
})

/** Starts a session and waits until Temporal has its workflow, which no worker needs to have taken. */
async function startSession(): Promise<string> {
  const { session_id } = (await (await service.user()).start()).body.session
  await service.api.services.deliveries.drain()
  return session_id
}

const cancel = (sessionId: string) =>
  service.api.services.temporal.workflow.getHandle(relaySessionWorkflowId(sessionId)).cancel()

const untilStopped = async (sessionId: string) => {
  const isStopped = ({ session }: Awaited<ReturnType<TestService['history']>>) => session.state === 'stopped'
  return (await eventually(() => service.history(sessionId), isStopped)).session
}

/** The worker of this process answers a start with an active relay, so no workflow task holds it. */
async function expectWorkingWorker() {
  const sessionId = await startSession()
  const hasInstance = ({ session }: Awaited<ReturnType<TestService['history']>>) => session.instance_id !== null
  await eventually(() => service.history(sessionId), hasInstance)
}

test('a session that is cancelled while no worker runs is stopped by the next worker, which serves others', async () => {
  const sessionId = await startSession()
  await cancel(sessionId)
  const worker = await startTestWorker(service.api, () => relays)
  expect(await untilStopped(sessionId)).toMatchObject({ reason: 'force_disconnected', instance_id: null })
  await expectWorkingWorker()
  await worker.stop()
})

test('a session that is cancelled while its instance is being created is stopped, and others are served', async () => {
  let isCreating = false
  const create: RelayProvider['create'] = (spec, signal) => {
    if (isCreating) return relays.create(spec, signal)
    isCreating = true
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
  const worker = await startTestWorker(service.api, () => ({ ...relays, create }))
  const sessionId = await startSession()
  await eventually(() => isCreating, Boolean)
  await cancel(sessionId)
  expect(await untilStopped(sessionId)).toMatchObject({ reason: 'force_disconnected', instance_id: null })
  await expectWorkingWorker()
  await worker.stop()
})
