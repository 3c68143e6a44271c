/** Relays on EC2, against an imitation. */
import { randomUUID } from 'node:crypto'
import { Writable } from 'node:stream'
import { EC2 } from '@aws-sdk/client-ec2'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { regions } from '../../platform/config/regions.ts'
import { type AwsRelayOptions, createAwsRelayProvider } from '../../providers/relay/aws.ts'
import { createInstanceId } from '../../providers/relay/instance-secrets.ts'
import { RelayProviderError, type RelaySpec } from '../../providers/relay/provider.ts'
import { type Fault, startEc2Proxy } from '../support/ec2-proxy.ts'
import { awsNetworkOf, type Moto, startMoto } from '../support/moto.ts'

const awsRegion = 'eu-central-1'
const secretKey = 'the-secret-key-of-the-account'
process.env.AWS_ACCESS_KEY_ID = 'AKIAIOSFODNN7EXAMPLE'
process.env.AWS_SECRET_ACCESS_KEY = secretKey

let moto: Moto
/** A client of the account, as an operator would use it. */
let account: EC2
let settings: { image_id: string; subnet_ids: string[]; security_group_ids: string[] }

beforeAll(async () => {
  moto = await startMoto()
  account = new EC2({ region: awsRegion, endpoint: moto.url })
  settings = await awsNetworkOf(account)
})
afterAll(async () => {
  account.destroy()
  await moto.close()
})

const never = () => new AbortController().signal

const specOf = (region: string, more: Partial<RelaySpec> = {}): RelaySpec => ({
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
  ...more,
})

/** A region of its own per test, since all tests share moto. */
function givenProvider(more: Partial<AwsRelayOptions> & { settings?: Partial<typeof settings> } = {}) {
  const name = `r-${randomUUID().slice(0, 8)}`
  const aws = { region: awsRegion, instance_type: 't3.small', ...settings, ...more.settings }
  const [region] = regions.parse(JSON.stringify([{ region: name, display_name: name, provider: 'aws', aws }]))
  if (!region) throw new Error('unreachable')
  const lines: string[] = []
  const log = pino({}, new Writable({ write: (line, _, done) => done(void lines.push(String(line))) }))
  const relays = createAwsRelayProvider({
    region,
    fleetName: undefined,
    log,
    userData: ({ instanceId }) => `#cloud-config\n# ${instanceId}\n`,
    endpoint: moto.url,
    ...more,
  })
  return { relays, name, lines, another: (others: Partial<AwsRelayOptions>) => givenSame(region, log, others) }
}

const givenSame = (region: AwsRelayOptions['region'], log: AwsRelayOptions['log'], more: Partial<AwsRelayOptions>) =>
  createAwsRelayProvider({ region, fleetName: undefined, log, userData: () => 'x', endpoint: moto.url, ...more })

async function givenProxy() {
  const proxy = await startEc2Proxy(moto.url)
  onTestFinished(() => proxy.close())
  return proxy
}

async function tagsOf(resource: string): Promise<Record<string, string | undefined>> {
  const { Tags = [] } = await account.describeTags({ Filters: [{ Name: 'resource-id', Values: [resource] }] })
  return Object.fromEntries(Tags.map(({ Key, Value }) => [Key, Value]))
}

/** All instances with the id in their tag, in any state and of any region or fleet. */
async function instancesOf(instanceId: string) {
  const Filters = [{ Name: 'tag:svc-instance', Values: [instanceId] }]
  const { Reservations = [] } = await account.describeInstances({ Filters })
  return Reservations.flatMap(({ Instances = [] }) => Instances)
}

const existingOf = async (instanceId: string) =>
  (await instancesOf(instanceId)).filter(({ State }) => State?.Name === 'running')

async function failureOf(call: Promise<unknown>): Promise<RelayProviderError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(RelayProviderError)
  return error as RelayProviderError
}

test('an instance in a subnet with IPv6 is described with both addresses', async () => {
  const { relays, name } = givenProvider()
  const created = await relays.create(specOf(name), never())
  expect(created.endpoint.hostV6).toBeUndefined()

  // The imitation gives no address at the launch, as subnets do that are set to.
  const [instance] = await instancesOf(created.instanceId)
  const NetworkInterfaceId = instance?.NetworkInterfaces?.[0]?.NetworkInterfaceId
  await account.assignIpv6Addresses({ NetworkInterfaceId, Ipv6Addresses: ['2001:db8:7::17'] })

  expect((await relays.describe(created.instanceId))?.endpoint).toEqual({
    ...created.endpoint,
    hostV6: '2001:db8:7::17',
  })
})

test('a created instance is listed and described with a public address, until it is destroyed', async () => {
  const { relays, name } = givenProvider()
  const spec = specOf(name)

  const instance = await relays.create(spec, never())

  expect(instance).toMatchObject({
    instanceId: spec.instanceId,
    providerId: expect.stringMatching(/^i-[0-9a-f]+$/),
    sessionId: spec.sessionId,
    region: name,
    endpoint: {
      host: expect.stringMatching(/^\d+\.\d+\.\d+\.\d+$/),
      srtlaPort: 5000,
      publishPort: 4001,
      playPort: 4000,
      statsPort: 5080,
    },
  })
  expect(Math.abs(Date.now() - instance.createdAt.getTime())).toBeLessThan(10_000)
  expect(await relays.list()).toEqual([instance])
  expect(await relays.list({ sessionId: spec.sessionId ?? '' })).toEqual([instance])
  expect(await relays.list({ sessionId: randomUUID() })).toEqual([])
  expect(await relays.describe(spec.instanceId)).toEqual(instance)

  await relays.destroy(spec.instanceId)

  expect(await relays.describe(spec.instanceId)).toBeNull()
  expect(await relays.list()).toEqual([])
  expect(await existingOf(spec.instanceId)).toEqual([])
  await relays.destroy(spec.instanceId)
})

test('an instance is destroyed by its id at the provider, also when its tags are not shown', async () => {
  const { relays, name } = givenProvider()
  const { instanceId, providerId } = await relays.create(specOf(name), never())
  await account.deleteTags({ Resources: [providerId ?? ''], Tags: [{ Key: 'svc-instance' }] })
  expect(await relays.hasEnded(instanceId, providerId)).toBe(false)
  await relays.destroy(instanceId, providerId)
  expect(await relays.hasEnded(instanceId, providerId)).toBe(true)
  const { Reservations = [] } = await account.describeInstances({ InstanceIds: [providerId ?? ''] })
  expect(Reservations[0]?.Instances?.[0]?.State?.Name).toBe('terminated')
  await relays.destroy(instanceId, providerId)
})

test('the destruction of an unknown instance resolves', async () => {
  const { relays } = givenProvider()
  await relays.destroy(createInstanceId('aws'))
  await relays.destroy(createInstanceId('aws'), 'i-0123456789abcdef0')
  // That an instance is not shown proves nothing.
  expect(await relays.hasEnded(createInstanceId('aws'), 'i-0123456789abcdef0')).toBe(false)
})

test('instance, volume and network interface have exactly the tags of the relay', async () => {
  const { relays, name, another } = givenProvider({ fleetName: 'staging' })
  const spec = specOf(name)
  const expected = { 'svc-session': spec.sessionId, 'svc-instance': spec.instanceId, 'svc-region': name }
  const { providerId } = await relays.create(spec, never())
  const [instance] = await instancesOf(spec.instanceId)
  const volume = instance?.BlockDeviceMappings?.[0]?.Ebs?.VolumeId ?? ''
  expect(await tagsOf(providerId ?? '')).toEqual({ ...expected, 'svc-fleet': 'staging' })
  expect(await tagsOf(volume)).toEqual({ ...expected, 'svc-fleet': 'staging' })

  const withoutFleet = another({})
  const warm = await withoutFleet.create(specOf(name, { sessionId: null }), never())
  expect(warm.sessionId).toBeNull()
  expect(await tagsOf(warm.providerId ?? '')).toEqual({
    'svc-session': '',
    'svc-instance': warm.instanceId,
    'svc-region': name,
  })
})

test('an instance is launched as configured, in the subnet of its zone, with its user data', async () => {
  const proxy = await givenProxy()
  const { relays, name } = givenProvider({ endpoint: proxy.url })
  expect(relays.zones).toBe(settings.subnet_ids.length)
  const spec = specOf(name, { zone: 1 })
  const { providerId } = await relays.create(spec, never())
  const [instance] = await instancesOf(spec.instanceId)
  expect(instance).toMatchObject({
    ImageId: settings.image_id,
    InstanceType: 't3.small',
    SubnetId: settings.subnet_ids[1],
    MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1 },
  })
  const attribute = await account.describeInstanceAttribute({ InstanceId: providerId ?? '', Attribute: 'userData' })
  const userData = Buffer.from(attribute.UserData?.Value ?? '', 'base64').toString()
  expect(userData).toBe(`#cloud-config\n# ${spec.instanceId}\n`)
  const [{ parameters } = { parameters: new URLSearchParams() }] = proxy.requests
  expect(Object.fromEntries(parameters)).toMatchObject({
    MinCount: '1',
    MaxCount: '1',
    InstanceInitiatedShutdownBehavior: 'terminate',
    'NetworkInterface.1.SecurityGroupId.1': settings.security_group_ids[0],
    'NetworkInterface.1.AssociatePublicIpAddress': 'true',
    'NetworkInterface.1.DeleteOnTermination': 'true',
    'TagSpecification.3.ResourceType': 'network-interface',
    'TagSpecification.3.Tag.2.Value': spec.instanceId,
  })
})

test('a zone without a subnet is a fault of the configuration', async () => {
  const { relays, name } = givenProvider()
  const spec = specOf(name, { zone: relays.zones })
  expect(await failureOf(relays.create(spec, never()))).toMatchObject({ failure: 'give_up', detail: 'configuration' })
})

test('a repeated create adopts the instance, and concurrent ones launch a single one', async () => {
  const proxy = await givenProxy()
  const { relays, name, another } = givenProvider({ endpoint: proxy.url })
  const spec = specOf(name)
  const others = [1, 2, 3].map(() =>
    another({ endpoint: proxy.url, userData: ({ instanceId }) => `#cloud-config\n# ${instanceId}\n` }),
  )
  const [first, ...more] = await Promise.all([relays, ...others].map((provider) => provider.create(spec, never())))
  expect(more).toEqual([first, first, first])
  expect(await relays.create(spec, never())).toEqual(first)
  expect(await instancesOf(spec.instanceId)).toHaveLength(1)
})

test('a repeated create adopts the instance when the settings have changed meanwhile', async () => {
  const proxy = await givenProxy()
  const { relays, name, another } = givenProvider({ endpoint: proxy.url })
  const spec = specOf(name)
  const first = await relays.create(spec, never())
  // The description of a new instance lags behind.
  const hide = { type: 'change', change: (body: string) => body.replaceAll('svc-instance', 'hidden') } as const
  proxy.fail('DescribeInstances', hide, 1)
  expect(await another({ endpoint: proxy.url, userData: () => 'other' }).create(spec, never())).toEqual(first)
  expect(await instancesOf(spec.instanceId)).toHaveLength(1)
})

test('an instance that was destroyed is not launched again by a late create', async () => {
  const proxy = await givenProxy()
  const { relays, name } = givenProvider({ endpoint: proxy.url })
  const spec = specOf(name)
  await relays.create(spec, never())
  await relays.destroy(spec.instanceId)
  const error = await failureOf(relays.create(spec, never()))
  expect(error.failure).toBe('give_up')
  expect(error.message).toContain('IdempotentInstanceTerminated')
  expect(await existingOf(spec.instanceId)).toEqual([])
})

test('a launch whose reply is lost is repeated, and results in one instance', async () => {
  const proxy = await givenProxy()
  const { relays, name } = givenProvider({ endpoint: proxy.url })
  const spec = specOf(name)
  proxy.fail('RunInstances', { type: 'lose_reply' })
  const instance = await relays.create(spec, never())
  expect(proxy.requests.filter(({ action }) => action === 'RunInstances')).toHaveLength(2)
  expect(await relays.list()).toEqual([instance])
  expect(await instancesOf(spec.instanceId)).toHaveLength(1)
})

test('a create that loses every reply fails, and its repetition adopts the only instance', async () => {
  const proxy = await givenProxy()
  const { relays, name } = givenProvider({ endpoint: proxy.url })
  const spec = specOf(name)
  proxy.fail('RunInstances', { type: 'lose_reply' }, 3)
  expect(await failureOf(relays.create(spec, never()))).toMatchObject({ failure: 'retry' })
  await relays.create(spec, never())
  expect(await instancesOf(spec.instanceId)).toHaveLength(1)
})

const withoutAddress = (body: string) => body.replaceAll(/<ipAddress>[^<]*<\/ipAddress>/g, '')

test('a create waits for the public address', async () => {
  const proxy = await givenProxy()
  const { relays, name } = givenProvider({ endpoint: proxy.url })
  proxy.fail('RunInstances', { type: 'change', change: withoutAddress })
  proxy.fail('DescribeInstances', { type: 'change', change: withoutAddress })
  const { endpoint } = await relays.create(specOf(name), never())
  expect(endpoint.host).toMatch(/^\d+\.\d+\.\d+\.\d+$/)
  expect(proxy.requests.filter(({ action }) => action === 'DescribeInstances')).toHaveLength(2)
})

test.each([
  ['Server.InsufficientInstanceCapacity', 'try_other_zone', 'capacity'],
  ['Client.VolumeLimitExceeded', 'give_up', 'quota'],
  ['Server.InternalError', 'try_other_zone', 'capacity'],
  ['Client.InternalError', 'give_up', undefined],
])('a create fails when EC2 ends the instance with %s', async (code, failure, detail) => {
  const proxy = await givenProxy()
  const { relays, name } = givenProvider({ endpoint: proxy.url })
  const end = (body: string) =>
    body
      .replace(/<name>\w+<\/name>/, '<name>terminated</name>')
      .replace(/<stateReason>.*?<\/stateReason>|<stateReason *\/>/s, '')
      .replace('<imageId>', `<stateReason><code>${code}</code></stateReason><imageId>`)
  proxy.fail('RunInstances', { type: 'change', change: end })
  expect(await failureOf(relays.create(specOf(name), never()))).toMatchObject({ failure, detail })
})

test.each([
  ['while the launch is not answered', [['RunInstances', { type: 'hold_reply' }]]],
  [
    'while the address is not known',
    [
      ['RunInstances', { type: 'change', change: withoutAddress }],
      ['DescribeInstances', { type: 'hold_reply' }],
    ],
  ],
] satisfies [string, [string, Fault][]][])(
  'a create that is aborted %s ends at once, and a destroy by the same id leaves no orphan',
  async (_, faults) => {
    const proxy = await givenProxy()
    const { relays, name } = givenProvider({ endpoint: proxy.url })
    const spec = specOf(name)
    const abort = new AbortController()
    for (const [action, fault] of faults) proxy.fail(action, fault)
    const [last] = faults.at(-1) ?? []
    const creation = relays.create(spec, abort.signal)
    creation.catch(() => undefined)
    await expect.poll(() => proxy.requests.map(({ action }) => action)).toContain(last)
    await expect.poll(() => existingOf(spec.instanceId)).toHaveLength(1)
    const abortedAt = performance.now()
    abort.abort(new Error('cancelled by the test'))
    await expect(creation).rejects.toThrow('cancelled by the test')
    expect(performance.now() - abortedAt).toBeLessThan(500)
    proxy.recover()
    await relays.destroy(spec.instanceId)
    expect(await existingOf(spec.instanceId)).toEqual([])
    expect(await relays.list()).toEqual([])
  },
)

test('a list has all pages, and fails when one of them cannot be read', async () => {
  const proxy = await givenProxy()
  const { relays, name } = givenProvider({ endpoint: proxy.url })
  const ids = Array.from({ length: 120 }, () => createInstanceId('aws'))
  for (const id of ids) {
    const Tags = [
      { Key: 'svc-instance', Value: id },
      { Key: 'svc-region', Value: name },
    ]
    await account.runInstances({
      MinCount: 1,
      MaxCount: 1,
      ImageId: settings.image_id,
      TagSpecifications: [{ ResourceType: 'instance', Tags }],
    })
  }
  const listed = await relays.list()
  expect(listed.map(({ instanceId }) => instanceId).toSorted()).toEqual(ids.toSorted())
  expect(proxy.requests).toHaveLength(2)
  proxy.fail('DescribeInstances', { type: 'change', change: (body) => body })
  proxy.fail('DescribeInstances', { type: 'refuse', status: 500, code: 'InternalError' }, 3)
  expect(await failureOf(relays.list())).toMatchObject({ failure: 'retry' })
})

test('instances of other fleets, of other regions and without tags are neither listed nor destroyed', async () => {
  const own = givenProvider()
  const stagingFleet = own.another({ fleetName: 'staging' })
  const otherRegion = givenProvider()
  const untagged = await account.runInstances({ MinCount: 1, MaxCount: 1, ImageId: settings.image_id })
  const mine = await own.relays.create(specOf(own.name), never())
  const staged = await stagingFleet.create(specOf(own.name), never())
  const foreign = await otherRegion.relays.create(specOf(otherRegion.name), never())

  expect(await own.relays.list()).toEqual([mine])
  expect(await stagingFleet.list()).toEqual([staged])
  expect(await own.another({ fleetName: 'production' }).list()).toEqual([])
  expect(await otherRegion.relays.list()).toEqual([foreign])
  for (const { instanceId } of [staged, foreign]) {
    expect(await own.relays.describe(instanceId)).toBeNull()
    await own.relays.destroy(instanceId)
  }
  // The filters of EC2 would understand these as wildcards.
  for (const pattern of ['*', 'aws-*', '????-*', '']) await own.relays.destroy(pattern)

  expect(await own.relays.list()).toEqual([mine])
  expect(await stagingFleet.list()).toEqual([staged])
  expect(await otherRegion.relays.list()).toEqual([foreign])
  const id = untagged.Instances?.[0]?.InstanceId ?? ''
  const { Reservations = [] } = await account.describeInstances({ InstanceIds: [id] })
  expect(Reservations[0]?.Instances?.[0]?.State?.Name).toBe('running')
})

test('an instance without a name is adopted with its volume, and belongs to the fleet from then on', async () => {
  const { relays, name, another } = givenProvider()
  const named = another({ fleetName: 'production' })
  const { instanceId, providerId, sessionId } = await relays.create(specOf(name), never())
  const staged = await another({ fleetName: 'staging' }).create(specOf(name), never())
  const members = (await named.account?.listAll()) ?? []
  const memberOf = (id: string) => members.find(({ instanceId: known }) => known === id)
  expect(members).toHaveLength(2)
  expect(memberOf(instanceId)).toEqual({ instanceId, providerId, sessionId, fleetName: null })
  expect(memberOf(staged.instanceId)).toMatchObject({ fleetName: 'staging' })

  for (const member of members) if (member.fleetName === null) await named.account?.adopt(member)

  expect((await named.list()).map(({ instanceId: id }) => id)).toEqual([instanceId])
  expect(await relays.list()).toEqual([])
  const [instance] = await instancesOf(instanceId)
  const volume = instance?.BlockDeviceMappings?.[0]?.Ebs?.VolumeId ?? ''
  expect(await tagsOf(volume)).toMatchObject({ 'svc-fleet': 'production', 'svc-instance': instanceId })
  // Listed before another control plane has taken it.
  const late = another({ fleetName: 'late' }).account
  for (const member of members)
    expect(await failureOf(late?.adopt(member) ?? Promise.resolve())).toMatchObject({ failure: 'give_up' })
  expect(await tagsOf(providerId ?? '')).toMatchObject({ 'svc-fleet': 'production' })
})

test('an instance of another fleet is not terminated by its id, which a copied database may contain', async () => {
  const { name, another } = givenProvider()
  const [production, staging] = [another({ fleetName: 'production' }), another({ fleetName: 'staging' })]
  const { instanceId, providerId } = await production.create(specOf(name), never())
  for (const provider of [staging, another({})]) await provider.destroy(instanceId, providerId)
  expect(await existingOf(instanceId)).toHaveLength(1)
  await production.destroy(instanceId, providerId)
  expect(await existingOf(instanceId)).toEqual([])
})

test.each([
  [500, 'InternalError', { failure: 'retry' }],
  [503, 'RequestLimitExceeded', { failure: 'throttled', retryAfterSeconds: 5 }],
  [500, 'InsufficientInstanceCapacity', { failure: 'try_other_zone', detail: 'capacity' }],
  [400, 'VcpuLimitExceeded', { failure: 'give_up', detail: 'quota' }],
  [403, 'UnauthorizedOperation', { failure: 'give_up', detail: 'configuration' }],
])('a launch that EC2 refuses with %i %s creates nothing, and is classified', async (status, code, expected) => {
  const proxy = await givenProxy()
  const { relays, name } = givenProvider({ endpoint: proxy.url })
  const spec = specOf(name)
  proxy.fail('RunInstances', { type: 'refuse', status, code }, 3)
  const startedAt = performance.now()
  const error = await failureOf(relays.create(spec, never()))
  expect(error).toMatchObject(expected)
  expect(error.message).toContain(code)
  expect(performance.now() - startedAt).toBeLessThan(10_000)
  expect(await instancesOf(spec.instanceId)).toEqual([])
})

test('a throttled call states the pause that EC2 requests', async () => {
  const proxy = await givenProxy()
  const { relays } = givenProvider({ endpoint: proxy.url })
  proxy.fail('DescribeInstances', { type: 'refuse', status: 503, code: 'RequestLimitExceeded', retryAfter: 2 }, 3)
  expect(await failureOf(relays.list())).toMatchObject({ failure: 'throttled', retryAfterSeconds: 2 })
})

test('a reply that is not of EC2 may be better later, and one failed attempt is hidden by the next', async () => {
  const proxy = await givenProxy()
  const { relays, name } = givenProvider({ endpoint: proxy.url })
  proxy.fail('RunInstances', { type: 'break' }, 3)
  expect(await failureOf(relays.create(specOf(name), never()))).toMatchObject({ failure: 'retry' })
  proxy.recover()
  proxy.fail('RunInstances', { type: 'refuse', status: 503, code: 'Unavailable' })
  expect(await relays.create(specOf(name), never())).toMatchObject({ region: name })
})

test('a call without a reply ends in a bounded time', async () => {
  const proxy = await givenProxy()
  const { relays, name } = givenProvider({ endpoint: proxy.url, attemptMillisMax: 400 })
  await relays.list()
  for (const action of ['RunInstances', 'DescribeInstances']) proxy.fail(action, { type: 'hold_reply' }, 3)
  for (const call of [() => relays.create(specOf(name), never()), () => relays.list()]) {
    const startedAt = performance.now()
    const error = await failureOf(call())
    expect(error).toMatchObject({ failure: 'retry' })
    expect(error.message).toContain('TimeoutError')
    expect(performance.now() - startedAt).toBeGreaterThan(1_000)
    expect(performance.now() - startedAt).toBeLessThan(6_000)
  }
})

test('an endpoint that nothing listens at may be back later', async () => {
  const { relays } = givenProvider({ endpoint: 'http://127.0.0.1:9' })
  expect(await failureOf(relays.list())).toMatchObject({ failure: 'retry' })
})

test('the check accepts valid settings, creates nothing, and names the wrong one otherwise', async () => {
  const { relays } = givenProvider()
  await relays.check()
  expect(await relays.list()).toEqual([])
  expect(await instancesOf('aws-check')).toEqual([])

  const checkOf = (wrong: Partial<typeof settings>) => failureOf(givenProvider({ settings: wrong }).relays.check())
  const { VpcId = '' } = (await account.createVpc({ CidrBlock: '10.9.0.0/16' })).Vpc ?? {}
  const foreign = await account.createSecurityGroup({
    VpcId,
    GroupName: randomUUID(),
    Description: 'of another network',
  })
  const errors = {
    'aws.image_id': await checkOf({ image_id: 'ami-00000000000000000' }),
    'aws.subnet_ids': await checkOf({ subnet_ids: [...settings.subnet_ids, 'subnet-00000000000000000'] }),
    'aws.security_group_ids': await checkOf({ security_group_ids: ['sg-00000000000000000'] }),
    'different networks': await checkOf({ security_group_ids: [foreign.GroupId ?? ''] }),
  }
  for (const [name, error] of Object.entries(errors)) {
    expect(error.message).toContain(name)
    expect(error).toMatchObject({ failure: 'give_up', detail: 'configuration' })
  }
})

test('the check names wrong credentials, and no error or log line contains the secret key', async () => {
  const { relays, name, lines } = givenProvider()
  await relays.create(specOf(name), never())
  await moto.requireAuthorization()
  onTestFinished(() => moto.acceptAll())
  const errors = [await failureOf(relays.check()), await failureOf(relays.create(specOf(name), never()))]
  for (const error of errors) {
    expect(error).toMatchObject({ failure: 'give_up', detail: 'configuration' })
    expect(error.message).toContain('AWS_ACCESS_KEY_ID')
    expect(error.message).not.toContain(secretKey)
  }
  expect(lines.join('')).toContain('relay created')
  expect(lines.join('')).not.toContain(secretKey)
  expect(lines.join('')).not.toContain('the-secret-of-the-instance')
})

test('AWS_ENDPOINT_URL_EC2 replaces the address of EC2', async () => {
  process.env.AWS_ENDPOINT_URL_EC2 = moto.url
  onTestFinished(() => void delete process.env.AWS_ENDPOINT_URL_EC2)
  const { relays, name } = givenProvider({ endpoint: undefined })
  const instance = await relays.create(specOf(name), never())
  expect(await relays.list()).toEqual([instance])
})
