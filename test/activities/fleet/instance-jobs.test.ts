/** The job that sweeps instances without an owner, and what it leaves alone. */
import { randomUUID } from 'node:crypto'
import { Registry } from 'prom-client'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { instanceJobs } from '../../../activities/fleet/instance-jobs.ts'
import type { SweepLimits } from '../../../activities/fleet/orphan-sweep.ts'
import { createWorkerMetrics, type WorkerMetrics } from '../../../activities/worker/metrics.ts'
import { retireInstances } from '../../../db/fleet/instances.ts'
import { type RelayInstance, type RelayProvider, RelayProviderError } from '../../../providers/relay/provider.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { writeStopped } from '../../support/relay-rows.ts'

const endpoint = { host: '198.51.100.7', srtlaPort: 5000, publishPort: 4001, playPort: 4000, statsPort: 5080 }
const regions = ['first', 'second', 'third']

let api: TestApi
/** The instances of each region's provider. */
let instances: Map<string, RelayInstance[]>
let failing: { list: Set<string>; destroy: Set<string> }
let hanging: { list: Set<string>; destroy: Set<string> }
/** Arguments of the calls to destroy. */
let destroyed: [instanceId: string, providerId: string | null | undefined][]
let metrics: WorkerMetrics

beforeAll(async () => {
  api = await startApi({
    SVC_REGIONS: JSON.stringify(regions.map((region) => ({ region, display_name: region, provider: 'local' }))),
  })
})

beforeEach(async () => {
  instances = new Map(regions.map((region) => [region, []] as const))
  failing = { list: new Set(), destroy: new Set() }
  hanging = { list: new Set(), destroy: new Set() }
  destroyed = []
  metrics = createWorkerMetrics(new Registry())
  await api.sql`delete from instances`
})

const forever = () => new Promise<never>(() => {})

const providerOf = (region: string): RelayProvider => ({
  zones: 1,
  listLagSeconds: 0,
  check: async () => {},
  create: () => Promise.reject(new Error('not used')),
  hasEnded: async () => false,
  describe: async (id) => (instances.get(region) ?? []).find(({ instanceId }) => instanceId === id) ?? null,
  destroy: async (id, providerId) => {
    destroyed.push([id, providerId])
    if (hanging.destroy.has(id)) await forever()
    if (failing.destroy.has(id)) throw new RelayProviderError('busy')
    instances.set(
      region,
      (instances.get(region) ?? []).filter(({ instanceId }) => instanceId !== id),
    )
  },
  list: async () => {
    if (hanging.list.has(region)) await forever()
    if (failing.list.has(region)) throw new RelayProviderError('the list is incomplete')
    return instances.get(region) ?? []
  },
})

/** Adds an instance to the provider's list. */
function addInstance(region: string, values: Partial<RelayInstance> = {}): string {
  const instanceId = values.instanceId ?? `i-${randomUUID()}`
  instances
    .get(region)
    ?.push({ sessionId: null, region, providerId: null, endpoint, createdAt: new Date(), ...values, instanceId })
  return instanceId
}

/** An instance that two runs a minute apart found without an owner. */
async function addOrphan(region: string): Promise<string> {
  const instanceId = addInstance(region, { sessionId: randomUUID() })
  await api.sql`
    insert into instances (instance_id, region, unowned_since) values (${instanceId}, ${region}, now() - interval '2 minutes')`
  return instanceId
}

/** A warm instance that exists and has reported. */
async function addWarm(region: string): Promise<string> {
  const instanceId = addInstance(region)
  await api.sql`
    insert into instances (instance_id, region, provider, is_warm, launched_at, last_report_at)
    values (${instanceId}, ${region}, 'aws', true, now(), now())`
  return instanceId
}

const sweep = async (limits?: SweepLimits) => {
  const { config, sql, log } = api.services
  const providers = new Map(regions.map((region) => [region, providerOf(region)] as const))
  for (const job of instanceJobs({ config, sql, log, providers, metrics }, limits)) await job.run()
}
/** As if a minute had passed since the observations until now. */
const passMinute = () => api.sql`update instances set unowned_since = unowned_since - interval '1 minute'`
const listInstanceIds = () => [...instances.values()].flat().map(({ instanceId }) => instanceId)
const listExisting = async () =>
  (await api.sql<{ instanceId: string }[]>`select instance_id from instances where gone_at is null order by 1`).map(
    ({ instanceId }) => instanceId,
  )

describe('sweep_orphans', () => {
  test('continues with the other regions when the listing of one fails, and then fails', async () => {
    const [orphanInFirst] = [await addOrphan('first'), await addOrphan('second'), await addOrphan('third')]
    failing.list.add('first')
    await expect(sweep()).rejects.toThrow('the list is incomplete')
    expect(listInstanceIds()).toEqual([orphanInFirst])
  })

  test('continues with the other orphans when one cannot be destroyed', async () => {
    const [indestructible] = [await addOrphan('second'), await addOrphan('second'), await addOrphan('third')]
    failing.destroy.add(indestructible)
    await expect(sweep()).rejects.toThrow('busy')
    expect(listInstanceIds()).toEqual([indestructible])
  })

  test('destroys the instance of a stopped session in the run after its report', async () => {
    const user = await api.given.user()
    const sessionId = randomUUID()
    await api.sql`
      insert into relay_sessions (id, user_id, connection_id, region, command_initiator)
      values (${sessionId}, ${user.userId}, 'default', 'second', 'user')`
    await api.sql`
      update relay_sessions set state = 'stopped', reason = 'provision_failed', stopped_at = now()
      where id = ${sessionId}`
    const instanceId = `i-${sessionId}`
    addInstance('second', { instanceId, sessionId })
    await sweep()
    expect(listInstanceIds()).toEqual([instanceId])
    const headers = { 'X-Relay-Auth': api.services.config.relayAuthSecrets[0] ?? '' }
    const report = await api.post('/relay/health', { session_id: sessionId, instance_id: instanceId }, { headers })
    expect([report.status, report.body.error?.code]).toEqual([409, 'invalid_transition'])
    await sweep()
    expect(listInstanceIds()).toEqual([])
  })

  test('keeps the instance of a live session whose report names a stopped one', async () => {
    const user = await api.given.user()
    const [live, stopped] = [randomUUID(), randomUUID()]
    const instanceId = `i-${live}`
    await api.sql`
      insert into relay_sessions (id, user_id, connection_id, region, command_initiator, instance_id)
      values (${live}, ${user.userId}, 'live', 'second', 'user', ${instanceId}), (${stopped}, ${user.userId}, 'other', 'second', 'user', null)`
    await api.sql`
      update relay_sessions set state = 'stopped', reason = 'provision_failed', stopped_at = now() where id = ${stopped}`
    addInstance('second', { instanceId, sessionId: live })
    const headers = { 'X-Relay-Auth': api.services.config.relayAuthSecrets[0] ?? '' }
    await api.post('/relay/health', { session_id: stopped, instance_id: instanceId }, { headers })
    await sweep()
    expect(listInstanceIds()).toEqual([instanceId])
  })
})

describe('an instance', () => {
  test('without an owner is destroyed by its provider id, a minute after the first observation', async () => {
    const instanceId = addInstance('first', { providerId: 'i-0123456789abcdef0', sessionId: randomUUID() })
    await sweep()
    await sweep()
    expect(destroyed).toEqual([])
    await passMinute()
    await sweep()
    expect(destroyed).toEqual([[instanceId, 'i-0123456789abcdef0']])
    expect(await listExisting()).toEqual([])
  })

  test('that is warm and unbound survives all sweeps, and is destroyed in the next one when it is retired', async () => {
    const [kept, retired] = [await addWarm('first'), await addWarm('first')]
    for (let times = 0; times < 3; times += 1) {
      await sweep()
      await passMinute()
    }
    expect(listInstanceIds()).toEqual([kept, retired])
    await retireInstances(api.sql, [retired])
    await sweep()
    expect(listInstanceIds()).toEqual([kept])
    expect(await listExisting()).toEqual([kept])
  })

  test('that its provider has not listed for 30 s is not gone, and keeps its row when it appears', async () => {
    const instanceId = `aws-${randomUUID()}`
    await api.sql`
      insert into instances (instance_id, region, provider, is_warm, created_at, create_attempted_at, launched_at)
      select ${instanceId}, 'first', 'aws', true, t, t, t from (select now() - interval '30 seconds' as t) past`
    await sweep()
    expect(await listExisting()).toEqual([instanceId])
    addInstance('first', { instanceId, providerId: 'i-1' })
    await sweep()
    const rows = await api.sql`select instance_id, is_warm, gone_at, unowned_since from instances`
    expect(rows).toEqual([{ instanceId, isWarm: true, goneAt: null, unownedSince: null }])
  })

  test('whose creation is still attempted is not gone, however long it is not listed', async () => {
    const instanceId = `aws-${randomUUID()}`
    await api.sql`
      insert into instances (instance_id, region, provider, is_warm, created_at, create_attempted_at)
      values (${instanceId}, 'first', 'aws', true, now() - interval '1 hour', now())`
    await sweep()
    expect(await listExisting()).toEqual([instanceId])
    await api.sql`update instances set create_attempted_at = now() - interval '1 hour'`
    await sweep()
    expect(await listExisting()).toEqual([])
  })

  test('that was never created is gone soon after its session has stopped, even if no workflow is left', async () => {
    const { userId } = await api.given.user()
    const sessionId = randomUUID()
    await api.sql`
      insert into relay_sessions (id, user_id, connection_id, region, command_initiator)
      values (${sessionId}, ${userId}, 'default', 'first', 'user')`
    const instanceId = `aws-${randomUUID()}`
    await api.sql`
      insert into instances (instance_id, session_id, region, provider, created_at, create_attempted_at)
      select ${instanceId}, ${sessionId}, 'first', 'aws', t, t from (select now() - interval '2 minutes' as t) past`
    await sweep()
    expect(await listExisting()).toEqual([instanceId])
    await writeStopped(api.sql, sessionId)
    await sweep()
    expect(await listExisting()).toEqual([])
  })

  test('that its provider destroys already counts as gone, also while the list still shows it', async () => {
    const instanceId = await addOrphan('first')
    const listed = instances.get('first') ?? []
    await sweep()
    expect(await listExisting()).toEqual([])
    instances.set('first', listed)
    await sweep()
    expect(destroyed.map(([id]) => id)).toEqual([instanceId, instanceId])
    expect(await listExisting()).toEqual([])
  })

  test.each(['not a UUID', '', '00000000-0000-0000-0000-00000000000g'])(
    'with the session tag "%s" is an orphan like any other',
    async (sessionId) => {
      const [instanceId, kept] = [addInstance('first', { sessionId }), await addWarm('first')]
      await sweep()
      await passMinute()
      await sweep()
      expect([destroyed.map(([id]) => id), listInstanceIds()]).toEqual([[instanceId], [kept]])
    },
  )
})

describe('a region', () => {
  test('keeps all instances when most seem to have no owner, which is logged and counted', async () => {
    const orphans = await Promise.all([1, 2, 3, 4, 5].map(() => addOrphan('first')))
    const retired = await addWarm('first')
    await retireInstances(api.sql, [retired])
    const elsewhere = await addOrphan('second')
    const linesBefore = api.logged.length
    await sweep()
    expect(listInstanceIds()).toEqual([...orphans, retired])
    expect(destroyed.map(([id]) => id)).toEqual([elsewhere])
    const blocked = api.logged.slice(linesBefore).filter((line) => line.includes('seem to have no owner'))
    expect(blocked.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({ level: 'error', region: 'first', unowned: 5, listed: 6 }),
    ])
    const text = await metrics.registry.metrics()
    expect(text).toContain('svc_relay_orphan_sweeps_blocked_total{region="first"} 1')
    expect(text).toContain('svc_relay_orphan_sweeps_blocked_total{region="second"} 0')
  })

  test('whose list hangs delays no other, and fails after its limit', async () => {
    const [first, second] = [await addOrphan('first'), await addOrphan('second')]
    hanging.list.add('first')
    const limits = { listMillisMax: 300, destroyMillisMax: 300, regionMillisMax: 1000 }
    await expect(sweep(limits)).rejects.toThrow('the list of region first took too long')
    expect([listInstanceIds(), destroyed.map(([id]) => id)]).toEqual([[first], [second]])
  })

  test('goes on with its other instances when the destruction of one hangs', async () => {
    const [stuck, other] = [await addOrphan('first'), await addOrphan('first')]
    hanging.destroy.add(stuck)
    const limits = { listMillisMax: 300, destroyMillisMax: 300, regionMillisMax: 1000 }
    await expect(sweep(limits)).rejects.toThrow(`the destruction of ${stuck} took too long`)
    expect([listInstanceIds(), await listExisting()]).toEqual([[stuck], [stuck]])
    expect(destroyed.map(([id]) => id).toSorted()).toEqual([stuck, other].toSorted())
  })

  test('may be swept twice at the same time', async () => {
    const [orphan, kept] = [await addOrphan('first'), await addWarm('first')]
    await Promise.all([sweep(), sweep()])
    expect([listInstanceIds(), await listExisting()]).toEqual([[kept], [kept]])
    expect(new Set(destroyed.map(([id]) => id))).toEqual(new Set([orphan]))
  })

  test('that is no longer configured and has instances is logged once in a run', async () => {
    await api.sql`insert into instances (instance_id, region) values ('i-1', 'mars'), ('i-2', 'mars'), ('i-3', 'venus')`
    const linesBefore = api.logged.length
    await sweep()
    const lines = api.logged.slice(linesBefore).filter((line) => line.includes('not in SVC_REGIONS'))
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        level: 'error',
        regions: [
          { region: 'mars', count: 2 },
          { region: 'venus', count: 1 },
        ],
      }),
    ])
    expect(await listExisting()).toEqual(['i-1', 'i-2', 'i-3'])
  })
})
