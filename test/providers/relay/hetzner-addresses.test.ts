/** Stable addresses at Hetzner Cloud, against an imitation. */
import { expect, test } from 'vitest'
import {
  createHetznerRelays,
  failureOf,
  givenHetzner,
  givenHetznerRelays,
  hetznerRegion,
  never,
  relaySpec,
} from '../../support/hetzner.ts'
import type { HetznerServer } from '../../support/hetzner-server.ts'

const region = hetznerRegion('eu', {}, { stable_address: true })
const givenStable = () => givenHetznerRelays({ region })

const addressIds = (api: HetznerServer) => api.project.addresses().map(({ id }) => String(id))

test('a new server keeps its address, which outlives it, without an IPv6 address that would not', async () => {
  const { api, relays } = await givenStable()
  const spec = relaySpec()

  const instance = await relays.create(spec, never())

  const [server] = api.project.servers()
  expect(instance.endpoint).toMatchObject({ host: server?.address, hostV6: undefined })
  const listed = {
    addressId: instance.addressId,
    host: server?.address,
    instanceId: spec.instanceId,
    providerId: instance.providerId,
    isAttached: true,
  }
  expect(await relays.addresses?.list()).toEqual([listed])
  await relays.destroy(spec.instanceId)
  expect(await relays.addresses?.list()).toEqual([{ ...listed, providerId: null, isAttached: false }])
})

test('the next server is created with the address of the one before', async () => {
  const { relays } = await givenStable()
  const first = await relays.create(relaySpec(), never())
  await relays.destroy(first.instanceId)

  const next = relaySpec({ addressId: first.addressId })
  const second = await relays.create(next, never())
  // As a worker does that has lost the reply.
  const again = await relays.create(next, never())

  expect([second.endpoint.host, again.endpoint.host]).toEqual([first.endpoint.host, first.endpoint.host])
  expect([second.addressId, again.addressId]).toEqual([first.addressId, first.addressId])
  expect((await relays.addresses?.list())?.map(({ instanceId }) => instanceId)).toEqual([next.instanceId])
})

test('a server gets another address where the wanted one was deleted', async () => {
  const { api, relays, lines } = await givenStable()
  const instance = await relays.create(relaySpec({ addressId: '4711' }), never())
  expect(addressIds(api)).toEqual([instance.addressId])
  expect(lines.join('')).toContain('a relay does not get the stable address of its session')
})

test('a refused reservation leaves the ordinary address and a warning', async () => {
  const { api, relays, lines } = await givenStable()
  api.refuse(1, 'resource_limit_exceeded', { method: 'PUT', url: /^\/primary_ips/ })
  const instance = await relays.create(relaySpec(), never())
  expect(instance.addressId).toBeUndefined()
  expect(instance.endpoint.host).toBe(api.project.servers()[0]?.address)
  expect(lines.join('')).toContain('Hetzner reserved no stable one')
})

test('a reservation that fails for a moment is repeated with the next call, for the same server', async () => {
  const { api, relays } = await givenStable()
  const spec = relaySpec()
  api.loseReplies(1, { method: 'PUT' })
  expect((await failureOf(relays.create(spec, never()))).failure).toBe('retry')
  const instance = await relays.create(spec, never())
  expect(addressIds(api)).toEqual([instance.addressId])
  expect(api.project.creations.get(spec.instanceId)).toBe(1)
})

test('an address is released once no server has it, and its release can be repeated', async () => {
  const { api, relays } = await givenStable()
  const { instanceId, addressId = '' } = await relays.create(relaySpec(), never())
  expect((await failureOf(relays.addresses?.release(addressId) ?? Promise.resolve())).message).toContain('still has')
  await relays.destroy(instanceId)
  api.loseReplies(1, { method: 'DELETE' })
  expect((await failureOf(relays.addresses?.release(addressId) ?? Promise.resolve())).failure).toBe('retry')
  await relays.addresses?.release(addressId)
  expect(addressIds(api)).toEqual([])
})

test('addresses of other fleets are neither listed nor released', async () => {
  const api = await givenHetzner()
  const { relays: others } = createHetznerRelays(api, { region, fleetName: 'staging' })
  const { relays } = createHetznerRelays(api, { region, fleetName: 'production' })
  const { instanceId, addressId = '' } = await others.create(relaySpec(), never())
  await others.destroy(instanceId)

  await relays.addresses?.release(addressId)

  expect(await relays.addresses?.list()).toEqual([])
  expect(addressIds(api)).toEqual([addressId])
})

test('an address that was reserved without a name gets that of the fleet with its server', async () => {
  const api = await givenHetzner()
  const { relays: unnamed } = createHetznerRelays(api, { region })
  const { relays } = createHetznerRelays(api, { region, fleetName: 'production' })
  const { addressId } = await unnamed.create(relaySpec(), never())
  for (const member of (await relays.account?.listAll()) ?? []) await relays.account?.adopt(member)
  expect((await relays.addresses?.list())?.map((address) => address.addressId)).toEqual([addressId])
})
