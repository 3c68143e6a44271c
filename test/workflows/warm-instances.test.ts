/** The warm instances of a region, from creation to replacement. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import { type RelayProvider, RelayProviderError } from '../../providers/relay/provider.ts'
import { warmInstancesWorkflowId } from '../../workflows/messages.ts'
import { createWarmInstancesWorkflows, type WarmInstancesWorkflows } from '../../workflows/warm-instances-client.ts'
import { createFakeRelays } from '../support/fake-relay-provider.ts'
import { lengthenReception, type RelayJobName, runRelayJob } from '../support/relay-jobs.ts'
import { eventually, type RelayUser, relayProcesses, startService, type TestService } from '../support/relays.ts'

const warm = 2
const capacity = 6

/**
 * Each test has a region of its own. The relays of the first two are processes; those of the others report when a test
 * does.
 */
const processRegions = ['given', 'dead'] as const
const regions = [
  ...processRegions,
  'concurrent',
  'silent',
  'old-image',
  'new-image',
  'drained',
  'failing',
  'idle',
] as const
type Region = (typeof regions)[number]

const hasProcesses = (region: string) => processRegions.some((name) => name === region)

let service: TestService
let workflows: WarmInstancesWorkflows
const fakeRelays = createFakeRelays()
const providers = new Map<string, RelayProvider>()

/** Creates an instance of the region `failing`. A test replaces it to inject failures. */
let createInFailing: RelayProvider['create'] | undefined

beforeAll(async () => {
  service = await startService({
    variables: {
      // Longer than any test takes. Tests move the times of reports to the past instead of waiting.
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300',
      SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '600',
      SVC_REGIONS: JSON.stringify(
        regions.map((region) => ({ region, display_name: region, provider: 'local', capacity, warm })),
      ),
    },
    around: (real, region) => {
      const provider = hasProcesses(region) ? real : fakeRelays
      providers.set(region, provider)
      const create: RelayProvider['create'] = (spec, signal) =>
        (region === 'failing' && createInFailing ? createInFailing : provider.create)(spec, signal)
      return { ...provider, create }
    },
  })
  const { temporal, config } = service.api.services
  workflows = createWarmInstancesWorkflows(temporal, { taskQueue: config.temporal.taskQueue, callMillisMax: 30_000 })
})

const runJob = (name: RelayJobName) => runRelayJob(service.api, name, providers)

interface InstanceRow {
  readonly instanceId: string
  readonly sessionId: string | null
  readonly hasReported: boolean
  readonly isLaunched: boolean
  readonly isRetired: boolean
}

const listInstances = async (region: Region): Promise<readonly InstanceRow[]> =>
  service.api.sql<InstanceRow[]>`
    select instance_id, session_id, last_report_at is not null as has_reported, launched_at is not null as is_launched,
      retired_at is not null as is_retired
    from instances where region = ${region} and gone_at is null order by created_at`

const idsOf = (instances: readonly InstanceRow[]) => instances.map(({ instanceId }) => instanceId)

const report = (instanceId: string, sessionId: string | null) => {
  const [secret = ''] = service.api.services.config.relayAuthSecrets
  const body = { session_id: sessionId, instance_id: instanceId }
  return service.api.post('/relay/health', body, { headers: { 'X-Relay-Auth': secret } })
}

/**
 * Sends the first reports of the fake relays, without a session and with it. One of a stopped session does not report:
 * its instance would count as existing again.
 */
async function reportFakes(region: Region): Promise<void> {
  if (hasProcesses(region)) return
  const due = await service.api.sql<{ instanceId: string; sessionId: string | null }[]>`
    select i.instance_id, s.id as session_id from instances i left join relay_sessions s on s.id = i.session_id
    where i.region = ${region} and i.launched_at is not null and i.retired_at is null and i.gone_at is null
      and (s.state = 'provisioning' or (i.session_id is null and i.last_report_at is null))`
  await Promise.all(due.map(({ instanceId, sessionId }) => report(instanceId, sessionId)))
}

/** An instance may report before its launch is recorded, and is ready only after both. */
async function listReady(region: Region): Promise<readonly InstanceRow[]> {
  await reportFakes(region)
  return (await listInstances(region)).filter(
    ({ sessionId, isLaunched, hasReported, isRetired }) =>
      sessionId === null && isLaunched && hasReported && !isRetired,
  )
}

const untilReady = (region: Region) =>
  eventually(
    () => listReady(region),
    (ready) => ready.length === warm,
  )

const processOf = (instanceId: string) =>
  relayProcesses(service.dataDir).find(({ instanceId: id }) => id === instanceId)

const untilActive = (region: Region, user: RelayUser) =>
  eventually(
    async () => {
      await reportFakes(region)
      return (await user.active()).session
    },
    (session) => session?.state === 'active',
  ) as Promise<SessionView>

/** Makes instances silent for an hour, in which the API could take reports, and has their region woken. */
async function loseReports(instanceIds: readonly string[]): Promise<void> {
  const { sql } = service.api
  await lengthenReception(sql)
  await sql`update instances set last_report_at = now() - interval '1 hour' where instance_id in ${sql(instanceIds)}`
  await runJob('watch_warm_instances')
}

describe.concurrent('a region with warm instances', () => {
  test('keeps the configured number ready, gives one to a start at once, which is active after one report, and refills', async () => {
    const ready = idsOf(await untilReady('given'))
    expect(await listInstances('given')).toHaveLength(warm)
    expect(ready.map((instanceId) => processOf(instanceId)?.sessionId)).toEqual([undefined, undefined])
    const user = await service.user()
    const { status, body } = await user.start({ region: 'given' })
    expect([status, ready.includes(body.session.instance_id ?? '')]).toEqual([201, true])
    expect(body.session.connect).not.toBeNull()
    const session = await untilActive('given', user)
    expect(session.session_id).toBe(body.session.session_id)
    const { transitions } = await service.history(session.session_id)
    expect(transitions).toMatchObject([{ to: 'active', reason: 'relay_ready', initiator: 'relay' }])
    await runJob('watch_warm_instances')
    await untilReady('given')
    expect(await listInstances('given')).toHaveLength(warm + 1)
    await user.stop({ session_id: session.session_id, immediate: true })
    await eventually(
      () => listInstances('given'),
      (all) => all.length === warm,
    )
    expect(processOf(session.instance_id ?? '')).toBeUndefined()
  })

  test('replaces assigned instances that die or hang before their first report, and destroys the hanging process', async () => {
    const ready = idsOf(await untilReady('dead'))
    // Not with `freeze`, which continues them at the end of any test that runs at the same time.
    for (const instanceId of ready) process.kill(processOf(instanceId)?.pid ?? 0, 'SIGSTOP')
    const users = [await service.user(), await service.user()]
    const started = await Promise.all(users.map(async (user) => (await user.start({ region: 'dead' })).body.session))
    expect(started.map((session) => session.instance_id).toSorted()).toEqual(ready.toSorted())
    const [dead = '', hanging = ''] = ready
    process.kill(processOf(dead)?.pid ?? 0, 'SIGKILL')
    await lengthenReception(service.api.sql)
    await service.api.sql`
      update relay_sessions set instance_bound_at = now() - interval '1 hour' where instance_id in ${service.api.sql(ready)}`
    await runJob('watch_health')
    for (const [index, user] of users.entries()) {
      const session = await untilActive('dead', user)
      expect(session.session_id).toBe(started[index]?.session_id)
      expect(ready).not.toContain(session.instance_id)
    }
    await eventually(
      async () => {
        await runJob('sweep_orphans')
        return idsOf(await listInstances('dead'))
      },
      (left) => !left.some((instanceId) => ready.includes(instanceId)),
    )
    expect(processOf(hanging)).toBeUndefined()
  })

  test('gives each of six concurrent starts an instance of its own, within the capacity', async () => {
    await untilReady('concurrent')
    const users = await Promise.all(Array.from({ length: capacity }, () => service.user()))
    await Promise.all(users.map((user) => user.start({ region: 'concurrent' })))
    const sessions = await Promise.all(users.map((user) => untilActive('concurrent', user)))
    expect(new Set(sessions.map(({ instance_id }) => instance_id)).size).toBe(capacity)
    const all = await listInstances('concurrent')
    expect(all.map(({ sessionId }) => sessionId).toSorted()).toEqual(
      sessions.map(({ session_id }) => session_id).toSorted(),
    )
    await Promise.all(
      users.map((user, index) => user.stop({ session_id: sessions[index]?.session_id, immediate: true })),
    )
    await untilReady('concurrent')
  })

  test('replaces an instance that falls silent while it waits', async () => {
    const [victim = ''] = idsOf(await untilReady('silent'))
    await eventually(
      async () => {
        await loseReports([victim])
        return idsOf(await listReady('silent'))
      },
      (ids) => ids.length === warm && !ids.includes(victim),
    )
  })

  test('replaces instances of an old image one after the other, and a start gets one of them until a new one is ready', async () => {
    const old = idsOf(await untilReady('old-image'))
    const { sql } = service.api
    await sql`update instances set image = 'relay-node@0.0.1' where instance_id in ${sql(old)}`
    const user = await service.user()
    const { session } = (await user.start({ region: 'old-image' })).body
    expect(old).toContain(session.instance_id)
    const left = old.find((instanceId) => instanceId !== session.instance_id) ?? ''
    await untilActive('old-image', user)

    await runJob('watch_warm_instances')
    await eventually(
      async () => idsOf(await listReady('old-image')),
      (ready) => ready.some((instanceId) => instanceId !== left),
    )
    const another = await service.user()
    const { instance_id } = (await another.start({ region: 'old-image' })).body.session
    expect(instance_id).not.toBeNull()
    expect(old).not.toContain(instance_id)
    await eventually(
      async () => {
        await runJob('watch_warm_instances')
        await reportFakes('old-image')
        return idsOf(await listInstances('old-image'))
      },
      (all) => !all.includes(left),
    )
    await untilReady('old-image')
  })

  test('keeps all instances of an old image that are ready while the new one does not start', async () => {
    const old = idsOf(await untilReady('new-image'))
    const { sql } = service.api
    await sql`update instances set image = 'relay-node@0.0.1' where instance_id in ${sql(old)}`
    await runJob('watch_warm_instances')
    const launched = await eventually(
      () => listInstances('new-image'),
      (all) => all.some(({ instanceId, isLaunched }) => isLaunched && !old.includes(instanceId)),
    )
    expect(launched.filter(({ isRetired }) => !isRetired)).toHaveLength(warm + 1)
    const ready = idsOf(await listInstances('new-image')).filter((instanceId) => old.includes(instanceId))
    expect(ready).toEqual(old)
    await eventually(
      async () => {
        await runJob('watch_warm_instances')
        await reportFakes('new-image')
        return idsOf(await listInstances('new-image'))
      },
      (all) => all.length === warm && !all.some((instanceId) => old.includes(instanceId)),
    )
  })

  test('retires them while it is drained, and keeps them again when it is resumed', async () => {
    await untilReady('drained')
    await service.api.sql`insert into regions (region, drained_at) values ('drained', now())`
    await runJob('watch_warm_instances')
    await eventually(
      () => listInstances('drained'),
      (all) => all.length === 0,
    )
    expect((await fakeRelays.list()).filter(({ region }) => region === 'drained')).toEqual([])
    await service.api.sql`delete from regions where region = 'drained'`
    await runJob('watch_warm_instances')
    await untilReady('drained')
  })

  test('counts creations that fail together as one failure, and repeats them after the first pause', async () => {
    const victims = idsOf(await untilReady('failing'))
    // A creation may be ready before its workflow has counted it as a success.
    await eventually(
      () => workflows.snapshot('failing'),
      (snapshot) => snapshot?.failures === 0 && snapshot.creating.length === 0,
    )
    const failing = new Set<string>()
    let [failedAt, repeatedAt] = [0, 0]
    let [failTogether, repeat] = [() => {}, () => {}]
    const allBegun = new Promise<void>((resolve) => {
      failTogether = resolve
    })
    const mayRepeat = new Promise<void>((resolve) => {
      repeat = resolve
    })
    createInFailing = async (spec, signal) => {
      if (failing.size < warm) failing.add(spec.instanceId)
      if (!failing.has(spec.instanceId)) {
        repeatedAt ||= Date.now()
        await mayRepeat
        return fakeRelays.create(spec, signal)
      }
      if (failing.size === warm) failTogether()
      await allBegun
      failedAt = Date.now()
      throw new RelayProviderError('busy')
    }
    const failed = await eventually(
      async () => {
        if (failing.size < warm) await loseReports(victims)
        return workflows.snapshot('failing')
      },
      (snapshot) => failing.size === warm && !snapshot?.creating.some((instanceId) => failing.has(instanceId)),
    )
    expect(failed?.failures).toBe(1)
    repeat()
    await untilReady('failing')
    expect(await listInstances('failing')).toHaveLength(warm)
    expect(repeatedAt - failedAt).toBeGreaterThanOrEqual(5_000)
  })

  test('adds nothing to the history of its workflow while nothing happens', async () => {
    await untilReady('idle')
    // Wakes the workflow for the last time if a run of the worker's job found work before.
    await runJob('watch_warm_instances')
    const { sql } = service.api
    const countRuns = async () =>
      Number((await sql<{ runs: string }[]>`select runs from jobs where name = 'watch_warm_instances'`)[0]?.runs)
    const untilRun = async () => {
      const before = await countRuns()
      await sql`update jobs set due_at = now() where name = 'watch_warm_instances'`
      await eventually(countRuns, (runs) => runs > before)
    }
    await untilRun()
    const handle = service.api.services.temporal.workflow.getHandle(warmInstancesWorkflowId('idle'))
    const before = await eventually(
      () => handle.describe(),
      ({ raw }) => !raw.pendingWorkflowTask && (raw.pendingActivities ?? []).length === 0,
    )
    for (const { instanceId } of await listInstances('idle')) await report(instanceId, null)
    await untilRun()
    await untilRun()
    expect((await handle.describe()).historyLength).toBe(before.historyLength)
  })
})
