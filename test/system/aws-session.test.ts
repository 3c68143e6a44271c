/** Sessions in a region of AWS. A process with the program of the user data takes the place of the machine. */
import { once } from 'node:events'
import { EC2, type Instance } from '@aws-sdk/client-ec2'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
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
let service: TestService

beforeAll(async () => {
  moto = await startMoto()
  proxy = await startEc2Proxy(moto.url)
  process.env.AWS_ENDPOINT_URL_EC2 = proxy.url
  account = new EC2({ region: awsRegion, endpoint: moto.url })
  const { subnet_ids, ...network } = await awsNetworkOf(account)
  const aws = { region: awsRegion, instance_type: 't3.small', ...network, subnet_ids: subnet_ids.slice(0, 1) }
  const regions = [
    { region: 'eu', display_name: 'Europe', provider: 'aws', default: true, aws },
    { region: 'eu-warm', display_name: 'Europe, warm', provider: 'aws', warm: 1, capacity: 3, aws },
  ]
  service = await startService({ variables: { SVC_REGIONS: JSON.stringify(regions), SVC_RELAY_ENGINE: 'none' } })
})
afterAll(async () => {
  delete process.env.AWS_ENDPOINT_URL_EC2
  account.destroy()
  await proxy.close()
  await moto.close()
})

/** The running instances that were launched for a session. */
const instancesOf = (sessionId: string) => runningInstances({ Name: 'tag:svc-session', Values: [sessionId] })

async function runningInstances(filter: { Name: string; Values: string[] }): Promise<Instance[]> {
  const Filters = [filter, { Name: 'instance-state-name', Values: ['running'] }]
  const { Reservations = [] } = await account.describeInstances({ Filters })
  return Reservations.flatMap(({ Instances = [] }) => Instances)
}

test('a start launches an instance that becomes active after its boot, and a stop terminates it', async () => {
  const user = await service.user()
  const { session_id } = (await user.start()).body.session
  const [instance] = await eventually(
    () => instancesOf(session_id),
    (all) => all.length > 0,
  )
  if (!instance) throw new Error('unreachable')

  const { relay } = await bootRelay(await userDataOf(account, instance))
  const active = await eventually(
    async () => (await user.active()).session,
    (session) => session?.state === 'active',
  )
  const host = instance.PublicIpAddress ?? ''
  expect(active?.connect).toMatchObject({
    srtla_url: expect.stringContaining(`${host}:5000`),
    srt_url: expect.stringContaining(`${host}:4001`),
    player_url: expect.stringContaining(`${host}:4000`),
    stats_url: expect.stringContaining(`${host}:5080`),
  })

  const ended = once(relay, 'exit')
  expect((await user.stop({ session_id, immediate: true })).status).toBe(200)
  await eventually(
    () => instancesOf(session_id),
    (all) => all.length === 0,
  )
  expect(await ended).toEqual([0, null])
})

test('the user data of an instance contains neither the stream token nor a secret that other instances have', async () => {
  const user = await service.user()
  const { session_id } = (await user.start()).body.session
  const [instance] = await eventually(
    () => instancesOf(session_id),
    (all) => all.length > 0,
  )
  if (!instance) throw new Error('unreachable')
  const userData = await userDataOf(account, instance)
  await bootRelay(userData)
  const active = await eventually(
    async () => (await user.active()).session,
    (session) => session?.state === 'active',
  )
  const [, token = ''] = /streamid=publish\/live\/(\w{8})/.exec(active?.connect?.srt_url ?? '') ?? []
  expect(token).toHaveLength(8)
  expect(userData).not.toContain(token)
  expect(userData).not.toContain(session_id)
  const [masterSecret = ''] = service.api.services.config.relayAuthSecrets
  expect(masterSecret).not.toBe('')
  expect(userData).not.toContain(masterSecret)
  expect((await user.stop({ session_id, immediate: true })).status).toBe(200)
})

test('a start gets the warm instance of its region, which has no session in its tags, and another one is launched', async () => {
  const ofRegion = () => runningInstances({ Name: 'tag:svc-region', Values: ['eu-warm'] })
  const [warm] = await eventually(ofRegion, (all) => all.length > 0)
  if (!warm) throw new Error('unreachable')
  expect(warm.Tags).toContainEqual({ Key: 'svc-session', Value: '' })
  await bootRelay(await userDataOf(account, warm))
  await eventually(
    async () =>
      (await service.api.sql`select 1 from instances where region = 'eu-warm' and last_report_at is not null`).length,
    (count) => count === 1,
  )

  const user = await service.user()
  const startedAt = performance.now()
  const { session_id } = (await user.start({ region: 'eu-warm' })).body.session
  const active = await eventually(
    async () => (await user.active()).session,
    (session) => session?.state === 'active',
  )
  expect(performance.now() - startedAt).toBeLessThan(3_000)
  expect(active?.connect?.srt_url).toContain(`${warm.PublicIpAddress}:4001`)
  expect(await instancesOf(session_id)).toEqual([])
  await eventually(ofRegion, (all) => all.length === 2)

  expect((await user.stop({ session_id, immediate: true })).status).toBe(200)
  await eventually(ofRegion, (all) => all.length === 1 && all[0]?.InstanceId !== warm.InstanceId)
})

test.each([
  [400, 'VcpuLimitExceeded', 'quota'],
  [500, 'InsufficientInstanceCapacity', 'capacity'],
  [403, 'UnauthorizedOperation', 'configuration'],
])('a session ends with its detail when EC2 refuses the launch with %i %s', async (status, code, detail) => {
  onTestFinished(() => proxy.recover())
  proxy.fail('RunInstances', { type: 'refuse', status, code }, 1_000)
  const user = await service.user()
  const { session_id } = (await user.start()).body.session
  const { session } = await eventually(
    () => service.history(session_id),
    (history) => history.session.state === 'stopped',
  )
  expect(session).toMatchObject({ state: 'stopped', detail })
  expect(await instancesOf(session_id)).toEqual([])
})

test('a launch whose replies are lost results in one instance', async () => {
  onTestFinished(() => proxy.recover())
  proxy.fail('RunInstances', { type: 'lose_reply' }, 4)
  const user = await service.user()
  const { session_id } = (await user.start()).body.session
  const launches = () => proxy.requests.filter(({ action }) => action === 'RunInstances').length
  const before = launches()
  await eventually(launches, (count) => count >= before + 4)
  const [instance, ...others] = await eventually(
    () => instancesOf(session_id),
    (all) => all.length > 0,
  )
  expect(others).toEqual([])
  if (!instance) throw new Error('unreachable')
  await bootRelay(await userDataOf(account, instance))
  await eventually(
    async () => (await user.active()).session,
    (session) => session?.state === 'active',
  )
  expect((await user.stop({ session_id, immediate: true })).status).toBe(200)
  await eventually(
    () => instancesOf(session_id),
    (all) => all.length === 0,
  )
})
