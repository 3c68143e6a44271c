import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { instanceJobs } from '../../../activities/jobs/instance-jobs.ts'
import { type RelayInstance, type RelayProvider, RelayProviderError } from '../../../providers/relay/provider.ts'
import { startApi, type TestApi } from '../../support/api.ts'

const endpoint = { host: '198.51.100.7', srtlaPort: 5000, publishPort: 4001, playPort: 4000, statsPort: 5080 }
const regions = ['first', 'second', 'third']

let api: TestApi
/** The instances of each region's provider. */
let instances: Map<string, RelayInstance[]>
let failing: { list: Set<string>; destroy: Set<string> }

beforeAll(async () => {
  api = await startApi({
    SVC_REGIONS: JSON.stringify(regions.map((region) => ({ region, display_name: region, provider: 'local' }))),
  })
})

beforeEach(() => {
  instances = new Map(regions.map((region) => [region, []] as const))
  failing = { list: new Set(), destroy: new Set() }
})

const providerOf = (region: string): RelayProvider => ({
  zones: 1,
  listLagSeconds: 0,
  check: async () => {},
  create: () => Promise.reject(new Error('not used')),
  describe: async (id) => (instances.get(region) ?? []).find(({ instanceId }) => instanceId === id) ?? null,
  destroy: async (id) => {
    if (failing.destroy.has(id)) throw new RelayProviderError('busy')
    instances.set(
      region,
      (instances.get(region) ?? []).filter(({ instanceId }) => instanceId !== id),
    )
  },
  list: async () => {
    if (failing.list.has(region)) throw new RelayProviderError('the list is incomplete')
    return instances.get(region) ?? []
  },
})

/** An instance that two runs a minute apart found without an owner. */
async function addOrphan(region: string): Promise<string> {
  const instanceId = `i-${randomUUID()}`
  instances
    .get(region)
    ?.push({ instanceId, sessionId: randomUUID(), region, providerId: null, endpoint, createdAt: new Date() })
  await api.sql`
    insert into instances (instance_id, region, unowned_since) values (${instanceId}, ${region}, now() - interval '2 minutes')`
  return instanceId
}

const sweep = async () => {
  const { config, sql, log } = api.services
  const providers = new Map(regions.map((region) => [region, providerOf(region)] as const))
  for (const job of instanceJobs({ config, sql, log, providers })) await job.run()
}
const listInstanceIds = () => [...instances.values()].flat().map(({ instanceId }) => instanceId)

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
      update relay_sessions set state = 'stopped', reason = 'provision_failed', stopped_at = now(),
        pair_token = null, relay_ws_token = null where id = ${sessionId}`
    const instanceId = `i-${sessionId}`
    instances
      .get('second')
      ?.push({ instanceId, sessionId, region: 'second', providerId: null, endpoint, createdAt: new Date() })
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
    instances
      .get('second')
      ?.push({ instanceId, sessionId: live, region: 'second', providerId: null, endpoint, createdAt: new Date() })
    const headers = { 'X-Relay-Auth': api.services.config.relayAuthSecrets[0] ?? '' }
    await api.post('/relay/health', { session_id: stopped, instance_id: instanceId }, { headers })
    await sweep()
    expect(listInstanceIds()).toEqual([instanceId])
  })
})
