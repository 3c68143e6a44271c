/** Stable addresses on EC2, against an imitation: of the provider, and of a session whose relay is replaced. */
import { randomUUID } from 'node:crypto'
import { Writable } from 'node:stream'
import { type Address, EC2, type Instance } from '@aws-sdk/client-ec2'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { regions } from '../../platform/config/regions.ts'
import { createAwsRelayProvider } from '../../providers/relay/aws.ts'
import { createInstanceId } from '../../providers/relay/instance-secrets.ts'
import type { RelaySpec, StableAddresses } from '../../providers/relay/provider.ts'
import { type Ec2Proxy, startEc2Proxy } from '../support/ec2-proxy.ts'
import { awsNetworkOf, type Moto, startMoto, userDataOf } from '../support/moto.ts'
import { eventually, startService, type TestService } from '../support/relays.ts'
import { bootRelay } from './booted-relay.ts'

const awsRegion = 'eu-central-1'
process.env.AWS_ACCESS_KEY_ID = 'AKIAIOSFODNN7EXAMPLE'
process.env.AWS_SECRET_ACCESS_KEY = 'the-secret-key-of-the-account'

let moto: Moto
let proxy: Ec2Proxy
let account: EC2
let aws: object
let service: TestService

beforeAll(async () => {
  moto = await startMoto()
  proxy = await startEc2Proxy(moto.url)
  process.env.AWS_ENDPOINT_URL_EC2 = proxy.url
  account = new EC2({ region: awsRegion, endpoint: moto.url })
  aws = { region: awsRegion, instance_type: 't3.small', ...(await awsNetworkOf(account)) }
  const region = { region: 'eu', display_name: 'Europe', provider: 'aws', default: true, stable_address: true, aws }
  service = await startService({
    variables: {
      SVC_REGIONS: JSON.stringify([region]),
      SVC_RELAY_ENGINE: 'none',
      SVC_RELAY_GRACE_SECONDS: '60',
      SVC_RELAY_REPLACEMENT_SECONDS: '120',
    },
  })
})
afterAll(async () => {
  delete process.env.AWS_ENDPOINT_URL_EC2
  account.destroy()
  await proxy.close()
  await moto.close()
})

const never = () => new AbortController().signal

const specOf = (region: string): RelaySpec => ({
  instanceId: createInstanceId('aws'),
  sessionId: randomUUID(),
  region,
  zone: 0,
  streamTokenHash: { key: 'a'.repeat(43), hash: 'b'.repeat(43) },
  apiUrl: 'http://127.0.0.1:1',
  relayAuthSecret: 'the-secret-of-the-instance',
  healthIntervalSeconds: 10,
  capMbps: 48,
  engine: 'none',
})

/** A region of its own per test, since all tests share moto. */
function givenProvider({ fleetName = undefined as string | undefined, name = `r-${randomUUID().slice(0, 8)}` } = {}) {
  const setting = { region: name, display_name: name, provider: 'aws', stable_address: true, aws }
  const [region] = regions.parse(JSON.stringify([setting]))
  if (!region) throw new Error('unreachable')
  const lines: string[] = []
  const log = pino({}, new Writable({ write: (line, _, done) => done(void lines.push(String(line))) }))
  const relays = createAwsRelayProvider({ region, fleetName, log, userData: () => 'x', endpoint: proxy.url })
  const { addresses } = relays
  if (!addresses?.move) throw new Error('unreachable')
  return { relays, addresses: addresses as Required<StableAddresses>, name, lines }
}

async function addressesOf(region: string): Promise<Address[]> {
  const { Addresses = [] } = await account.describeAddresses({
    Filters: [{ Name: 'tag:svc-region', Values: [region] }],
  })
  return Addresses
}

async function runningOf(filter: string, value: string): Promise<Instance[]> {
  const Filters = [
    { Name: filter, Values: [value] },
    { Name: 'instance-state-name', Values: ['running'] },
  ]
  const { Reservations = [] } = await account.describeInstances({ Filters })
  return Reservations.flatMap(({ Instances = [] }) => Instances)
}

const hostOf = async (providerId: string | null) =>
  (await runningOf('instance-id', providerId ?? ''))[0]?.PublicIpAddress

test('a new instance has an Elastic IP with its tags, which a repeated create finds', async () => {
  const { relays, addresses, name } = givenProvider()
  const spec = specOf(name)
  proxy.fail('AllocateAddress', { type: 'lose_reply' })

  const instance = await relays.create(spec, never())
  expect(await relays.create(spec, never())).toEqual(instance)

  expect(await hostOf(instance.providerId)).toBe(instance.endpoint.host)
  // The SDK repeats the request whose reply is lost, which EC2 has no token for: the sweep releases the second address.
  const reserved = await addresses.list()
  expect(reserved.map(({ instanceId }) => instanceId)).toEqual([spec.instanceId, spec.instanceId])
  expect(reserved.filter(({ isAttached }) => isAttached).map(({ addressId }) => addressId)).toEqual([
    instance.addressId,
  ])
})

test('an address moves to another instance, whose own one leads nowhere from then on', async () => {
  const { relays, addresses, name } = givenProvider()
  const [lost, next] = [await relays.create(specOf(name), never()), await relays.create(specOf(name), never())]

  await addresses.move(lost.addressId ?? '', next.providerId ?? '')
  await addresses.move(lost.addressId ?? '', next.providerId ?? '')

  expect(await hostOf(next.providerId)).toBe(lost.endpoint.host)
  const listed = new Map((await addresses.list()).map((address) => [address.addressId, address.isAttached]))
  expect(listed).toEqual(
    new Map([
      [lost.addressId, true],
      [next.addressId, false],
    ]),
  )
})

test('a release takes the address from its instance, and can be repeated', async () => {
  const { relays, addresses, name } = givenProvider()
  const { addressId = '' } = await relays.create(specOf(name), never())
  proxy.fail('ReleaseAddress', { type: 'lose_reply' })
  await addresses.release(addressId)
  await addresses.release(addressId)
  expect(await addressesOf(name)).toEqual([])
})

test.each(['AddressLimitExceeded', 'UnauthorizedOperation', 'InsufficientAddressCapacity'])(
  'an instance keeps its ordinary address when EC2 refuses to reserve one with %s',
  async (code) => {
    onTestFinished(() => proxy.recover())
    const { relays, name, lines } = givenProvider()
    proxy.fail('AllocateAddress', { type: 'refuse', status: 400, code })
    const instance = await relays.create(specOf(name), never())
    expect(instance.addressId).toBeUndefined()
    expect(await hostOf(instance.providerId)).toBe(instance.endpoint.host)
    expect(lines.join('')).toContain('EC2 reserved no stable one')
  },
)

test('addresses of other fleets are neither listed, moved nor released, and unnamed ones can be adopted', async () => {
  const unnamed = givenProvider()
  const { relays, addresses } = givenProvider({ name: unnamed.name, fleetName: 'production' })
  const { addressId = '', providerId } = await unnamed.relays.create(specOf(unnamed.name), never())

  await addresses.release(addressId)
  await expect(addresses.move(addressId, providerId ?? '')).rejects.toThrow('no address')
  expect(await addresses.list()).toEqual([])

  for (const member of (await relays.account?.listAll()) ?? []) await relays.account?.adopt(member)
  expect((await addresses.list()).map((address) => address.addressId)).toEqual([addressId])
})

test('the check names a missing permission to reserve addresses', async () => {
  onTestFinished(() => proxy.recover())
  const { relays, name } = givenProvider()
  await relays.check()
  expect(await addressesOf(name)).toEqual([])
  proxy.fail('AllocateAddress', { type: 'refuse', status: 403, code: 'UnauthorizedOperation' })
  await expect(relays.check()).rejects.toThrow('lack a permission')
})

test('a session keeps its address when its instance is replaced, and gives it back at its end', async () => {
  const user = await service.user()
  const { session_id } = (await user.start()).body.session
  const ofSession = () => runningOf('tag:svc-session', session_id)
  const [lost] = await eventually(ofSession, (all) => all.length === 1)
  if (!lost) throw new Error('unreachable')
  const { relay } = await bootRelay(await userDataOf(account, lost))
  const before = await eventually(
    async () => (await user.active()).session,
    (session) => session?.state === 'active',
  )

  relay.kill('SIGKILL')
  await account.terminateInstances({ InstanceIds: [lost.InstanceId ?? ''] })
  const [next] = await eventually(ofSession, (all) => all.length === 1 && all[0]?.InstanceId !== lost.InstanceId, 60)
  if (!next) throw new Error('unreachable')
  await bootRelay(await userDataOf(account, next))
  const after = await eventually(
    async () => (await user.active()).session,
    (session) => session?.state === 'active' && session.detail === 'relay_replaced',
  )

  expect(after?.relay_host).toBe(before?.relay_host)
  await eventually(
    () => hostOf(next.InstanceId ?? ''),
    (host) => host === before?.relay_host,
  )
  // The address that the replacement was created with is given back.
  await eventually(
    () => addressesOf('eu'),
    (all) => all.length === 1 && all[0]?.PublicIp === before?.relay_host,
  )
  expect((await user.stop({ session_id, immediate: true })).status).toBe(200)
  await eventually(
    () => service.api.sql`select from relay_addresses`,
    (rows) => rows.length === 0,
  )
  expect(await addressesOf('eu')).toEqual([])
}, 120_000)
