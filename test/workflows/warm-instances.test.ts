import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type RelayProvider, RelayProviderError } from '../../providers/relay/provider.ts'
import { wakeWarmInstances, warmInstancesWorkflowId } from '../../workflows/messages.ts'
import { createWarmInstancesWorkflows } from '../../workflows/warm-instances-client.ts'
import { eventually, freeze, operator, relayProcesses, startService, type TestService } from '../support/relays.ts'

// A loss is detected after nine seconds, and a pause after a failure takes five: some tests wait for both several times.
const region = 'local'
const warm = 2

let service: TestService
/** The calls of the current test that replace those of the real provider. */
let provider: Partial<RelayProvider> & { real: RelayProvider }

beforeAll(async () => {
  service = await startService({
    variables: {
      // Instances report every three seconds, so a busy machine does not make them look silent.
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '9',
      SVC_REGIONS: JSON.stringify([{ region, display_name: 'Here', provider: 'local', capacity: 6, warm }]),
    },
    around: (real) => {
      provider = { real }
      return { ...real, create: (spec, signal) => (provider.create ?? real.create)(spec, signal) }
    },
  })
})

beforeEach(async () => {
  provider = { real: provider.real }
  await service.api.sql`delete from regions`
  await untilReady(warm)
})

afterEach(async () => {
  const { api } = service
  const listLive = () => api.sql<{ id: string }[]>`select id from relay_sessions where state <> 'stopped'`
  // Those of a failed test would take the places of the next ones.
  for (const { id } of await listLive())
    await api.post(`/admin/sessions/${id}/disconnect`, { reason: 'the test has ended' }, { headers: operator })
  await eventually(listLive, (live) => live.length === 0)
})

interface InstanceRow {
  readonly instanceId: string
  readonly sessionId: string | null
  readonly isReady: boolean
  readonly isRetired: boolean
}
const listInstances = async (): Promise<readonly InstanceRow[]> =>
  service.api.sql<InstanceRow[]>`
    select instance_id, session_id, last_report_at is not null as is_ready, retired_at is not null as is_retired
    from instances where gone_at is null order by created_at`
const listReady = async () =>
  (await listInstances()).filter(({ sessionId, isReady, isRetired }) => sessionId === null && isReady && !isRetired)
const untilReady = (count: number) => eventually(listReady, (ready) => ready.length === count)
const processOf = (instanceId: string) => relayProcesses(service.dataDir).find((one) => one.instanceId === instanceId)

const runJob = async (name: string) => {
  const { sql } = service.api
  const countRuns = async () => Number((await sql`select runs from jobs where name = ${name}`)[0]?.runs)
  const before = await countRuns()
  await sql`update jobs set due_at = now() where name = ${name}`
  await eventually(countRuns, (runs) => runs > before)
}

describe('a region with warm instances', () => {
  test('keeps the configured number ready without a session', async () => {
    expect(await listInstances()).toHaveLength(warm)
    expect(relayProcesses(service.dataDir).map(({ sessionId }) => sessionId)).toEqual([undefined, undefined])
  })

  test('gives one to a start at once, which is active after one report, and refills', async () => {
    const before = (await listReady()).map(({ instanceId }) => instanceId)
    const user = await service.user()
    const { status, body } = await user.start()
    expect([status, before.includes(body.session.instance_id ?? '')]).toEqual([201, true])
    expect(body.session.connect).not.toBeNull()
    const { session } = await service.activeRelay(user)
    expect(session.session_id).toBe(body.session.session_id)
    const { transitions } = await service.history(session.session_id)
    expect(transitions).toMatchObject([{ to: 'active', reason: 'relay_ready', initiator: 'relay' }])
    await untilReady(warm)
    expect(await listInstances()).toHaveLength(warm + 1)
    await user.stop({ session_id: session.session_id, immediate: true })
    await eventually(listInstances, (all) => all.length === warm)
    expect(processOf(session.instance_id ?? '')).toBeUndefined()
  })

  test('gives each of six concurrent starts an instance of its own, within the capacity', async () => {
    const users = await Promise.all(Array.from({ length: 6 }, () => service.user()))
    const sessions = await Promise.all(users.map((user) => service.activeRelay(user)))
    expect(new Set(sessions.map(({ session }) => session.instance_id)).size).toBe(6)
    const all = await listInstances()
    expect(all.filter(({ sessionId }) => sessionId !== null)).toHaveLength(6)
    expect(all.length).toBeLessThanOrEqual(6)
    await Promise.all(
      sessions.map(({ user, session }) => user.stop({ session_id: session.session_id, immediate: true })),
    )
    await untilReady(warm)
  })

  test('replaces an assigned instance that dies before its first report, and the dead one is gone', async () => {
    const ready = await listReady()
    const frozen = ready.map(({ instanceId }) => freeze(processOf(instanceId)?.pid ?? 0))
    const user = await service.user()
    const { body } = await user.start()
    const first = body.session.instance_id ?? ''
    expect(ready.map(({ instanceId }) => instanceId)).toContain(first)
    process.kill(processOf(first)?.pid ?? 0, 'SIGKILL')
    for (const one of frozen) one.thaw()
    const { session } = await service.activeRelay(user)
    expect(session.session_id).toBe(body.session.session_id)
    expect(session.instance_id).not.toBe(first)
    await runJob('sweep_orphans')
    await runJob('sweep_orphans')
    expect((await listInstances()).map(({ instanceId }) => instanceId)).not.toContain(first)
    await user.stop({ session_id: session.session_id, immediate: true })
  })

  test('replaces an assigned instance that hangs, whose process is destroyed', async () => {
    const ready = await listReady()
    for (const { instanceId } of ready) freeze(processOf(instanceId)?.pid ?? 0)
    const user = await service.user()
    const { session } = await service.activeRelay(user)
    expect(session.instance_id).not.toBeNull()
    const { instance_id: instanceId } = session
    await eventually(
      async () => {
        await runJob('sweep_orphans')
        return ready.filter((one) => one.instanceId !== instanceId && processOf(one.instanceId))
      },
      (left) => left.length === 0,
    )
    await user.stop({ session_id: session.session_id, immediate: true })
  })

  test('replaces an instance that is killed while it waits', async () => {
    const [victim] = await listReady()
    process.kill(processOf(victim?.instanceId ?? '')?.pid ?? 0, 'SIGKILL')
    await eventually(
      async () => (await listReady()).map(({ instanceId }) => instanceId),
      (ids) => ids.length === warm && !ids.includes(victim?.instanceId ?? ''),
    )
  })

  test('replaces instances of an old image, which no start gets', async () => {
    const old = (await listReady()).map(({ instanceId }) => instanceId)
    await service.api.sql`update instances set image = 'relay-node@0.0.1' where gone_at is null`
    const user = await service.user()
    const { session } = await service.activeRelay(user)
    expect(old).not.toContain(session.instance_id)
    await eventually(
      async () => (await listInstances()).filter(({ instanceId }) => old.includes(instanceId)),
      (left) => left.length === 0,
    )
    await user.stop({ session_id: session.session_id, immediate: true })
    await untilReady(warm)
  })

  test('retires them while it is drained, and keeps them again when it is resumed', async () => {
    await service.api.sql`insert into regions (region, drained_at) values (${region}, now())`
    await eventually(listInstances, (all) => all.length === 0)
    expect(relayProcesses(service.dataDir)).toEqual([])
    await service.api.sql`delete from regions`
    await untilReady(warm)
  })

  test('creates again after a pause when its provider fails', async () => {
    let attempts = 0
    provider.create = (spec, signal) => {
      attempts += 1
      return attempts === 1 ? Promise.reject(new RelayProviderError('busy')) : provider.real.create(spec, signal)
    }
    const [victim] = await listReady()
    process.kill(processOf(victim?.instanceId ?? '')?.pid ?? 0, 'SIGKILL')
    await eventually(
      () => attempts,
      (count) => count >= 2,
    )
    await untilReady(warm)
    expect(await listInstances()).toHaveLength(warm)
  })

  test('counts creations that fail together as one failure, so that they are repeated after the first pause', async () => {
    const { temporal, config } = service.api.services
    const { taskQueue } = config.temporal
    const workflows = createWarmInstancesWorkflows(temporal, { taskQueue, callMillisMax: 5_000 })
    // A creation may be ready before its workflow has counted it as a success.
    await eventually(
      async () => (await workflows.snapshot(region))?.failures ?? 0,
      (failures) => failures === 0,
    )
    const failing = new Set<string>()
    let failTogether = () => {}
    const allBegun = new Promise<void>((resolve) => {
      failTogether = resolve
    })
    provider.create = async (spec, signal) => {
      if (failing.size < warm) failing.add(spec.instanceId)
      if (!failing.has(spec.instanceId)) return provider.real.create(spec, signal)
      // The loss of the two instances may be detected at different times.
      if (failing.size === warm) failTogether()
      await allBegun
      throw new RelayProviderError('busy')
    }
    const victims = await listReady()
    for (const { instanceId } of victims) process.kill(processOf(instanceId)?.pid ?? 0, 'SIGKILL')
    const snapshot = await eventually(
      () => workflows.snapshot(region),
      (one) => failing.size === warm && one?.creating.length === 0 && one.failures > 0,
    )
    expect(snapshot?.failures).toBe(1)
    await untilReady(warm)
  })

  test('adds nothing to the history of its workflow while nothing happens', async () => {
    const handle = service.api.services.temporal.workflow.getHandle(warmInstancesWorkflowId(region))
    await handle.signal(wakeWarmInstances).catch(() => undefined)
    const lengthOf = async () => (await handle.describe()).historyLength
    const before = await eventually(lengthOf, (length) => length > 0)
    await new Promise((done) => setTimeout(done, 8_000))
    expect((await lengthOf()) - before).toBeLessThanOrEqual(10)
  })
})
