/** The first report of a relay comes in while the session gives its instance up. */
import { beforeAll, describe, expect, test } from 'vitest'
import { bindInstance } from '../../db/fleet/instances.ts'
import { recordReports } from '../../db/relay/health.ts'
import { readIngest } from '../../domain/relay/ingest.ts'
import { type RelayProvider, RelayProviderError } from '../../providers/relay/provider.ts'
import { command, relaySessionWorkflowId } from '../../workflows/messages.ts'
import { fakeInstanceId } from '../support/fake-relay-provider.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { waitForBlockedQuery } from '../support/locks.ts'
import { eventually } from '../support/relays.ts'
import { longRelayTimeouts } from '../support/subscribers.ts'

let service: FakeRelayService
let createReal: RelayProvider['create']
/** Creates the instance of a session. A test replaces it to hold the creation up. */
let create: RelayProvider['create']
beforeAll(async () => {
  service = await startFakeRelayService({ variables: longRelayTimeouts })
  createReal = service.relayProvider.create
  create = createReal
  Object.assign(service.relayProvider, { create: ((...args) => create(...args)) satisfies RelayProvider['create'] })
})

const sqlOf = () => service.api.sql
const signals = () => service.api.services.relaySessions
const untilSession = (
  sessionId: string,
  isWanted: (session: { state: string; instance_id: string | null }) => boolean,
) =>
  eventually(
    async () => (await service.history(sessionId)).session as { state: string; instance_id: string | null },
    isWanted,
  )

/** Starts a session whose instance is bound and has not reported. */
async function startUnreported() {
  const user = await service.user()
  const { session_id: sessionId } = (await user.start()).body.session
  const instanceId = fakeInstanceId(sessionId)
  await untilSession(sessionId, (session) => session.instance_id === instanceId)
  return { sessionId, instanceId }
}

/**
 * Resolves when the workflow has handled all signals so far: it answers a command that it has carried out after them.
 */
const untilSignalsHandled = (sessionId: string) =>
  service.api.services.temporal.workflow
    .getHandle(relaySessionWorkflowId(sessionId))
    .executeUpdate(command, { args: [{ seq: 1, command: 'run', initiator: 'user' }] })

describe('an instance that seems lost before its first report', () => {
  test('is kept when it reports while its replacement is about to be reserved', async () => {
    const { sessionId, instanceId } = await startUnreported()
    await sqlOf().begin(async (tx) => {
      await tx`select from relay_sessions where id = ${sessionId} for no key update`
      await signals().instanceGone(sessionId, instanceId)
      await waitForBlockedQuery(sqlOf(), tx)
      expect((await service.sendReport(sessionId)).status).toBe(200)
    })
    const session = await untilSession(sessionId, ({ state }) => state === 'active')
    expect(session.instance_id).toBe(instanceId)
    await untilSignalsHandled(sessionId)
    await service.runJob('sweep_orphans')
    expect(await service.relayProvider.describe(instanceId)).not.toBeNull()
    expect(await service.sendReport(sessionId)).toMatchObject({
      status: 200,
      body: { state: 'active', desired: 'run' },
    })
  })

  test('does not make the session active with a report that was stored while it was replaced', async () => {
    const { sessionId, instanceId } = await startUnreported()
    let reservedId = ''
    let proceed = () => {}
    const mayProceed = new Promise<void>((resolve) => {
      proceed = resolve
    })
    create = async (spec, signal) => {
      if (spec.sessionId === sessionId) {
        reservedId = spec.instanceId
        await mayProceed
      }
      return createReal(spec, signal)
    }
    await sqlOf().begin(async (tx) => {
      const ingest = readIngest(undefined)
      const [reported] = await recordReports(
        tx,
        [{ sessionId, instanceId, hasOwnSecret: false, binding: 1, isHeld: false, isIdle: true, ingest }],
        10,
      )
      expect(reported).toMatchObject({ state: 'provisioning', isOtherInstance: false })
      await signals().instanceGone(sessionId, instanceId)
      await eventually(() => reservedId, Boolean)
    })
    await signals().ready(sessionId)
    await untilSignalsHandled(sessionId)
    expect((await service.history(sessionId)).session.state).toBe('provisioning')
    expect((await service.sendReport(sessionId)).status).toBe(409)
    await service.relayProvider.destroy(instanceId)
    proceed()
    await untilSession(sessionId, (session) => session.instance_id === reservedId)
    await service.sendReport(sessionId, { instance_id: reservedId })
    await untilSession(sessionId, ({ state }) => state === 'active')
  })
})

test('a session whose instance has reported is not ended by a failure of its creation', async () => {
  const user = await service.user()
  let fail = () => {}
  const mayFail = new Promise<void>((resolve) => {
    fail = resolve
  })
  let isCreated = false
  create = async (spec, signal) => {
    await createReal(spec, signal)
    isCreated = true
    await mayFail
    throw new RelayProviderError('the reply was lost', 'give_up')
  }
  const { session_id: sessionId } = (await user.start()).body.session
  await eventually(() => isCreated, Boolean)
  const instanceId = fakeInstanceId(sessionId)
  // Another attempt of the creation, whose worker seemed dead, has bound the instance. A sweep may have seen it before.
  await sqlOf()`
    insert into instances (instance_id, session_id, region, provider, launched_at, host, srtla_port, publish_port, play_port,
      stats_port)
    values (${instanceId}, ${sessionId}, 'local', 'local', now(), '198.51.100.7', 5000, 4001, 4000, 5080)
    on conflict (instance_id) do update set session_id = excluded.session_id, provider = excluded.provider,
      launched_at = excluded.launched_at, host = excluded.host, srtla_port = excluded.srtla_port,
      publish_port = excluded.publish_port, play_port = excluded.play_port, stats_port = excluded.stats_port`
  await bindInstance(sqlOf(), sessionId, instanceId)
  await sqlOf()`insert into relay_health (session_id, instance_id) values (${sessionId}, ${instanceId})`
  fail()
  const { state } = await untilSession(sessionId, (session) => session.state !== 'provisioning')
  expect(state).toBe('active')
})
