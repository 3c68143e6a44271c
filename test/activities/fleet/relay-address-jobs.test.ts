/** The job that moves and releases stable addresses, and the sweep that finds them. */
import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { listAddresses, sweepAddresses } from '../../../activities/fleet/orphan-sweep.ts'
import { relayAddressJobs } from '../../../activities/fleet/relay-address-jobs.ts'
import { compareAddresses, keepAddress, recordAddress } from '../../../db/fleet/relay-addresses.ts'
import { createLog } from '../../../platform/log.ts'
import type { ListedAddress, RelayProvider } from '../../../providers/relay/provider.ts'
import { givePlan, startApi, type TestApi } from '../../support/api.ts'
import { readMetrics } from '../../support/metrics.ts'
import { writeActive, writeStopGrace, writeStopped } from '../../support/relay-rows.ts'
import type { OneSession } from '../../support/relays.ts'

const region = 'local'
/** That of a relay in `writeActive`. */
const firstHost = '198.51.100.7'

let api: TestApi
/** The addresses of the provider, by id. */
let addresses: Map<string, ListedAddress>
let isFailing: boolean
let areReserved: boolean
let lists: number

beforeAll(async () => {
  api = await startApi()
})
beforeEach(async () => {
  addresses = new Map()
  isFailing = false
  areReserved = true
  lists = 0
  for (const table of ['relay_addresses', 'relay_names', 'relay_sessions', 'instances'])
    await api.sql`delete from ${api.sql(table)}`
})

const provider: Pick<RelayProvider, 'addresses'> = {
  addresses: {
    get areReserved() {
      return areReserved
    },
    list: async () => {
      lists += 1
      return [...addresses.values()]
    },
    move: async (addressId, providerId) => {
      if (isFailing) throw new Error('busy')
      const address = addresses.get(addressId)
      if (address) addresses.set(addressId, { ...address, providerId, isAttached: true })
    },
    release: async (addressId) => {
      if (isFailing) throw new Error('busy')
      addresses.delete(addressId)
    },
  },
}

const log = createLog('worker', 'silent')
const deps = () => ({ sql: api.sql, log, region, provider: provider as RelayProvider })

async function runJob(): Promise<void> {
  await api.sql`update relay_addresses set next_attempt_at = now() where failing_since is not null`
  const [job] = relayAddressJobs({ sql: api.sql, log, providers: new Map([[region, provider as RelayProvider]]) })
  await job?.run(undefined)
}

const sweep = async () => sweepAddresses(deps(), await listAddresses(deps()))

const insertInstance = async (instanceId: string, host: string | null, sessionId: string | null = null) => {
  await api.sql`
    insert into instances (instance_id, session_id, region, provider, provider_id, launched_at, host)
    values (${instanceId}, ${sessionId}, ${region}, 'aws', ${`provider-${instanceId}`}, now(), ${host})`
}

/** An address that its provider has, with a row unless the worker died before it was written. */
async function givenAddress(addressId: string, host: string, instanceId: string, hasRow = true): Promise<void> {
  const providerId = `provider-${instanceId}`
  addresses.set(addressId, { addressId, host, instanceId, providerId, isAttached: true })
  if (hasRow) await recordAddress(api.sql, { region, addressId, host, canMove: true, instanceId })
}

/** An active session whose first instance has a stable address. */
async function givenSession(): Promise<string> {
  const { userId, bearer } = await api.given.user()
  await givePlan(api.sql, userId)
  const headers = { 'Idempotency-Key': randomUUID() }
  const started = await api.post<OneSession>('/relay/start', {}, { bearer, headers })
  const { session_id: sessionId } = started.body.session
  await insertInstance('i-1', firstHost, sessionId)
  await givenAddress('a-1', firstHost, 'i-1')
  await writeActive(api.sql, sessionId)
  return sessionId
}

/** As the first report of a replacement does, which has another address of its own. */
async function replaceInstance(sessionId: string): Promise<void> {
  await keepAddress(api.sql, sessionId)
  await insertInstance('i-2', '198.51.100.8', sessionId)
  await givenAddress('a-2', '198.51.100.8', 'i-2')
  await api.sql`update relay_sessions set instance_id = 'i-2' where id = ${sessionId}`
  await api.sql`update instances set gone_at = now() where instance_id = 'i-1'`
}

const failingSeconds = async () => (await readMetrics(api))('svc_relay_addresses_failing_seconds')

const hostOf = async (sessionId: string) =>
  (await api.sql<{ relayHost: string }[]>`select relay_host from relay_sessions where id = ${sessionId}`)[0]?.relayHost

const targets = () =>
  Object.fromEntries([...addresses.values()].map(({ addressId, providerId }) => [addressId, providerId]))

test('the address of a session leads to its next instance, whose own address is released', async () => {
  const sessionId = await givenSession()
  await runJob()
  expect(targets()).toEqual({ 'a-1': 'provider-i-1' })
  await replaceInstance(sessionId)
  await runJob()
  await runJob()
  expect(targets()).toEqual({ 'a-1': 'provider-i-2' })
  expect(await hostOf(sessionId)).toBe(firstHost)
})

test('the address is released once the session has stopped and its instance is gone', async () => {
  const sessionId = await givenSession()
  await writeStopGrace(api.sql, sessionId)
  await writeStopped(api.sql, sessionId)
  await runJob()
  expect(targets()).toEqual({ 'a-1': 'provider-i-1' })
  await api.sql`update instances set gone_at = now()`
  await runJob()
  expect(targets()).toEqual({})
  expect(await api.sql`select from relay_addresses`).toHaveLength(0)
})

test('a session shows the address of its instance while its own cannot move for ten seconds, and then its own', async () => {
  const sessionId = await givenSession()
  await replaceInstance(sessionId)
  isFailing = true
  await runJob()
  expect(await hostOf(sessionId)).toBe(firstHost)
  await api.sql`update relay_addresses set failing_since = now() - interval '11 seconds'`
  await runJob()
  expect(await hostOf(sessionId)).toBe('198.51.100.8')
  expect(await failingSeconds()).toBeGreaterThan(10)

  isFailing = false
  await runJob()
  expect(await hostOf(sessionId)).toBe(firstHost)
  expect(await failingSeconds()).toBe(0)
})

test('an address is not released while a name leads to it, for five minutes at most', async () => {
  await givenAddress('a-1', firstHost, 'i-1')
  await api.sql`insert into relay_names (label, shown_v4) values ('abcdefghij', ${firstHost})`
  await runJob()
  expect(targets()).toEqual({ 'a-1': 'provider-i-1' })
  await api.sql`update relay_addresses set failing_since = now() - interval '301 seconds'`
  await runJob()
  expect(targets()).toEqual({})
})

test('an address without a row is released when it is unused at a second look as well', async () => {
  await givenAddress('a-1', firstHost, 'i-1', false)
  const difference = { kind: 'unused_address', addressId: 'a-1', instanceId: 'i-1', since: null }
  expect(await compareAddresses(api.sql, { region, listed: [...addresses.values()] })).toMatchObject([difference])
  await sweep()
  await runJob()
  expect(targets()).toEqual({ 'a-1': 'provider-i-1' })
  await api.sql`update relay_addresses set next_attempt_at = next_attempt_at - interval '61 seconds'`
  await runJob()
  expect(targets()).toEqual({})
})

test('an address without a row stays when it leads to an instance that exists, as after a restored backup', async () => {
  await insertInstance('i-2', null)
  addresses.set('a-1', {
    addressId: 'a-1',
    host: firstHost,
    instanceId: 'i-1',
    providerId: 'provider-i-2',
    isAttached: true,
  })
  await sweep()
  await api.sql`update relay_addresses set next_attempt_at = now()`
  await runJob()
  expect(targets()).toEqual({ 'a-1': 'provider-i-2' })
})

test('the address of a session that leads nowhere any more is moved again', async () => {
  const sessionId = await givenSession()
  await keepAddress(api.sql, sessionId)
  await givenAddress('a-1', firstHost, 'i-1', false)
  addresses.set('a-1', { addressId: 'a-1', host: firstHost, instanceId: 'i-1', providerId: null, isAttached: false })
  await sweep()
  await runJob()
  expect(targets()).toEqual({ 'a-1': 'provider-i-1' })
})

test('an address that its provider has not had for five minutes loses its row', async () => {
  await givenSession()
  addresses.clear()
  await sweep()
  expect(await api.sql`select from relay_addresses`).toHaveLength(1)
  await api.sql`update relay_addresses set created_at = now() - interval '301 seconds'`
  expect(await compareAddresses(api.sql, { region, listed: [] })).toMatchObject([
    { kind: 'missing_address', isGone: true },
  ])
  await sweep()
  expect(await api.sql`select from relay_addresses`).toHaveLength(0)
})

test('a provider without stable addresses is not asked for them, unless there are some of before', async () => {
  areReserved = false
  await sweep()
  expect(lists).toBe(0)
  await givenAddress('a-1', firstHost, 'i-1')
  await sweep()
  expect(lists).toBe(1)
})

test('addresses of a session that ended in another region are released', async () => {
  const sessionId = await givenSession()
  await keepAddress(api.sql, sessionId)
  await api.sql`update instances set gone_at = now()`
  await api.sql`update relay_sessions set region = ${`other-${randomUUID().slice(0, 4)}`} where id = ${sessionId}`
  await runJob()
  expect(targets()).toEqual({})
})
