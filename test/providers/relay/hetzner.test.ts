/** Relays at Hetzner Cloud, against an imitation: creation, lists, destruction. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
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

test('a created relay is described and listed with its address and session, until it is destroyed', async () => {
  const { api, relays } = await givenHetznerRelays()
  api.project.createMillis = 50
  const spec = relaySpec({ sessionId: randomUUID() })
  const calledAt = Date.now()

  const instance = await relays.create(spec, never())

  const [server] = api.project.servers()
  expect(instance).toEqual({
    instanceId: spec.instanceId,
    providerId: String(server?.id),
    sessionId: spec.sessionId,
    region: 'eu',
    endpoint: {
      host: server?.address,
      hostV6: `2001:db8:${server?.id.toString(16)}::1`,
      srtlaPort: 5000,
      publishPort: 4001,
      playPort: 4000,
      statsPort: 5080,
    },
    createdAt: expect.any(Date),
  })
  // Hetzner's times have no milliseconds.
  expect(instance.createdAt.getTime()).toBeGreaterThanOrEqual(calledAt - 1_000)
  expect(instance.createdAt.getTime()).toBeLessThanOrEqual(Date.now())
  expect(await relays.describe(spec.instanceId)).toEqual(instance)
  expect(await relays.list()).toEqual([instance])
  expect(await relays.list({ sessionId: spec.sessionId ?? '' })).toEqual([instance])
  expect(await relays.list({ sessionId: randomUUID() })).toEqual([])

  await relays.destroy(spec.instanceId)
  expect(await relays.describe(spec.instanceId)).toBeNull()
  expect(await relays.list()).toEqual([])
  expect(api.project.servers()).toEqual([])
})

test('a server without IPv6, as an operator may have created it, has its IPv4 address only', async () => {
  const { api, relays } = await givenHetznerRelays()
  const spec = relaySpec()
  await relays.create(spec, never())
  Object.assign(api.project.servers()[0] ?? {}, { ipv6Network: null })

  const instance = await relays.describe(spec.instanceId)

  expect(instance?.endpoint.host).toMatch(/^203\.0\./)
  expect(instance?.endpoint.hostV6).toBeUndefined()
})

test('the request for a server has the settings of the region, the user data and exactly our labels', async () => {
  const { api, relays } = await givenHetznerRelays({
    region: hetznerRegion('eu', { server_type: 'cax11', ssh_keys: ['operations'] }),
  })
  const spec = relaySpec({ sessionId: randomUUID() })
  await relays.create(spec, never())
  const { body } = api.requests.find(({ method }) => method === 'POST') ?? { body: '' }
  expect(JSON.parse(body)).toEqual({
    name: spec.instanceId,
    server_type: 'cax11',
    image: 'debian-13',
    location: 'fsn1',
    ssh_keys: ['operations'],
    labels: { 'svc-instance': spec.instanceId, 'svc-session': spec.sessionId, 'svc-region': 'eu' },
    user_data: `#cloud-config\nhostname: ${spec.instanceId}\n`,
    start_after_create: true,
    public_net: { enable_ipv4: true, enable_ipv6: true },
  })
})

test('a warm instance of a named fleet has an empty session label and the label of the fleet', async () => {
  const { api, relays } = await givenHetznerRelays({ fleetName: 'staging' })
  const spec = relaySpec()
  const instance = await relays.create(spec, never())
  expect(api.project.servers()[0]?.labels).toEqual({
    'svc-instance': spec.instanceId,
    'svc-session': '',
    'svc-region': 'eu',
    'svc-fleet': 'staging',
  })
  expect(instance.sessionId).toBeNull()
  expect(await relays.list()).toEqual([instance])
})

test('a create whose reply was lost can be repeated, and adopts the server', async () => {
  const { api, relays } = await givenHetznerRelays()
  const spec = relaySpec()
  api.loseReplies(1, { method: 'POST' })

  expect(await failureOf(relays.create(spec, never()))).toMatchObject({ failure: 'retry' })
  const instance = await relays.create(spec, never())

  expect(instance.providerId).toBe(String(api.project.servers()[0]?.id))
  expect(api.project.creations).toEqual(new Map([[spec.instanceId, 1]]))
})

test('a server that the list does not have yet is adopted once it has it', async () => {
  const { api, relays } = await givenHetznerRelays()
  const spec = relaySpec()
  api.project.listLagMillis = 300
  api.loseReplies(1, { method: 'POST' })
  await failureOf(relays.create(spec, never()))

  const instance = await relays.create(spec, never())

  expect(instance.instanceId).toBe(spec.instanceId)
  expect(api.project.creations.get(spec.instanceId)).toBe(1)
})

test('concurrent creates of one instance by several processes create one server', async () => {
  const { api, relays } = await givenHetznerRelays()
  const { relays: others } = createHetznerRelays(api)
  Object.assign(api.project, { createMillis: 100, listLagMillis: 50 })
  const spec = relaySpec()

  const instances = await Promise.all(
    [relays, others, relays, others, relays].map((provider) => provider.create(spec, never())),
  )

  expect(new Set(instances.map(({ providerId }) => providerId)).size).toBe(1)
  expect(api.project.creations).toEqual(new Map([[spec.instanceId, 1]]))
  expect(api.project.mostAtOnce('svc-instance', spec.instanceId)).toBe(1)
})

test('an aborted create rejects at once with the reason of the signal, and its server can be destroyed', async () => {
  const { api, relays } = await givenHetznerRelays()
  // Longer than a test may take.
  api.project.createMillis = 600_000
  const spec = relaySpec()
  const controller = new AbortController()
  const reason = new Error('the session was stopped')
  const created = relays.create(spec, controller.signal)
  await expect.poll(() => api.project.servers().length).toBe(1)

  controller.abort(reason)

  await expect(created).rejects.toBe(reason)
  // Hetzner locks a server during its creation.
  await expect(relays.destroy(spec.instanceId)).rejects.toThrow()
  for (const server of api.project.servers()) Object.assign(server, { readyAt: Date.now() })
  await relays.destroy(spec.instanceId)
  expect(api.project.servers()).toEqual([])
})

test('a create that is aborted before its request creates nothing', async () => {
  const { api, relays } = await givenHetznerRelays()
  const reason = new Error('stopped')
  await expect(relays.create(relaySpec(), AbortSignal.abort(reason))).rejects.toBe(reason)
  expect(api.requests).toEqual([])
})

test('a create waits for an address that is assigned after the server exists', async () => {
  const { api, relays } = await givenHetznerRelays()
  api.project.addressMillis = 500
  const spec = relaySpec()
  const created = relays.create(spec, never())
  await expect.poll(() => api.project.servers().length).toBe(1)
  expect(await relays.describe(spec.instanceId)).toMatchObject({ endpoint: { host: '' } })
  expect((await created).endpoint.host).toMatch(/^203\.0\./)
})

test.each([
  ['create_server', 'resource_unavailable', 'resource unavailable', 'try_other_zone', 'capacity'],
  ['create_server', 'action_failed', 'no capacity left in fsn1', 'try_other_zone', 'capacity'],
  ['start_server', 'action_failed', 'Action failed', 'retry', undefined],
] as const)('a server whose %s fails with %s (%s) is deleted', async (command, code, message, failure, detail) => {
  const { api, relays } = await givenHetznerRelays()
  Object.assign(api.project, { createMillis: 30, deleteMillis: 30 })
  api.project.actionFailures.push({ command, error: { code, message } })
  const spec = relaySpec()

  const error = await failureOf(relays.create(spec, never()))

  expect(error).toMatchObject({ failure, detail, message: expect.stringContaining(`${command} of server`) })
  expect(api.project.servers()).toEqual([])
  expect(await relays.create(spec, never())).toMatchObject({ instanceId: spec.instanceId })
  expect(api.project.mostAtOnce('svc-instance', spec.instanceId)).toBe(1)
})

test('a failed server that could not be deleted is deleted by the next create', async () => {
  const { api, relays } = await givenHetznerRelays()
  api.project.actionFailures.push({ command: 'create_server', error: { code: 'resource_unavailable', message: '' } })
  api.fail(1, { method: 'DELETE' })
  const spec = relaySpec()
  expect(await failureOf(relays.create(spec, never()))).toMatchObject({ failure: 'retry' })
  expect(api.project.servers()).toHaveLength(1)
  expect(await failureOf(relays.create(spec, never()))).toMatchObject({ failure: 'try_other_zone' })
  expect(api.project.servers()).toEqual([])
})

test('servers of other programs, regions and fleets are neither listed nor described nor destroyed', async () => {
  const api = await givenHetzner()
  const eu = createHetznerRelays(api).relays
  const us = createHetznerRelays(api, { region: hetznerRegion('us') }).relays
  const staging = createHetznerRelays(api, { fleetName: 'staging' }).relays
  const testing = createHetznerRelays(api, { fleetName: 'testing' }).relays
  const providers = [eu, us, staging, testing]
  const owned = await Promise.all(providers.map((provider) => provider.create(relaySpec(), never())))
  const foreign = api.project.addForeign('database', { role: 'database' })

  for (const [index, provider] of providers.entries()) {
    const own = owned[index]
    expect(await provider.list()).toEqual([own])
    for (const other of owned.filter((instance) => instance !== own)) {
      expect(await provider.describe(other.instanceId)).toBeNull()
      await provider.destroy(other.instanceId)
      await provider.destroy(other.instanceId, other.providerId)
    }
    await provider.destroy('database')
    await provider.destroy('database', String(foreign.id))
  }

  expect(api.project.servers()).toHaveLength(5)
})

test('a server of another program that has the name of the instance is not adopted', async () => {
  const { api, relays } = await givenHetznerRelays()
  const spec = relaySpec()
  api.project.addForeign(spec.instanceId, {})
  expect(await failureOf(relays.create(spec, never()))).toMatchObject({ failure: 'give_up', detail: 'configuration' })
  expect(api.project.servers()).toHaveLength(1)
})

test('a destroyed instance may be destroyed again, also by its provider id', async () => {
  const { api, relays } = await givenHetznerRelays()
  const { instanceId, providerId } = await relays.create(relaySpec(), never())
  await relays.destroy(instanceId, providerId)
  await relays.destroy(instanceId, providerId)
  await relays.destroy(instanceId)
  await relays.destroy('hetzner-unknown')
  expect(api.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(1)
})

test('a server that another process deletes at the same time counts as destroyed', async () => {
  const { api, relays } = await givenHetznerRelays()
  const { instanceId } = await relays.create(relaySpec(), never())
  api.refuse(1, 'not_found', { method: 'DELETE', status: 404 })
  await relays.destroy(instanceId)
  expect(api.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(1)
})

test('an instance that the list does not have yet is destroyed by its provider id', async () => {
  const { api, relays } = await givenHetznerRelays()
  api.project.listLagMillis = 60_000
  const { instanceId, providerId } = await relays.create(relaySpec(), never())
  await relays.destroy(instanceId, providerId)
  expect(api.project.servers()).toEqual([])
})

test('a destroy resolves once the API does not show the server any more', async () => {
  const { api, relays } = await givenHetznerRelays()
  const { instanceId } = await relays.create(relaySpec(), never())
  api.project.deleteMillis = 500
  const startedAt = Date.now()
  // The second one finds a server that is being deleted.
  await Promise.all([relays.destroy(instanceId), sleep(100).then(() => relays.destroy(instanceId))])
  expect(Date.now() - startedAt).toBeGreaterThanOrEqual(500)
  expect(api.project.servers()).toEqual([])
  expect(api.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(1)
})

test.each([
  [423, 'locked'],
  [409, 'conflict'],
])('a destroy that is refused with %i %s can be repeated', async (status, code) => {
  const { api, relays } = await givenHetznerRelays()
  const { instanceId } = await relays.create(relaySpec(), never())
  api.refuse(1, code, { method: 'DELETE', status })
  expect(await failureOf(relays.destroy(instanceId))).toMatchObject({ failure: 'retry' })
  await relays.destroy(instanceId)
  expect(api.project.servers()).toEqual([])
})

test('a destroy whose reply was lost can be repeated', async () => {
  const { api, relays } = await givenHetznerRelays()
  const { instanceId, providerId } = await relays.create(relaySpec(), never())
  api.loseReplies(1, { method: 'DELETE' })
  expect(await failureOf(relays.destroy(instanceId, providerId))).toMatchObject({ failure: 'retry' })
  await relays.destroy(instanceId, providerId)
  expect(api.project.servers()).toEqual([])
})

test('40 instances that are created and destroyed over an unreliable network leave no server behind', async () => {
  const { api, relays } = await givenHetznerRelays()
  Object.assign(api.project, { listLagMillis: 30, createMillis: 10, deleteMillis: 10 })
  api.loseReplies(30)
  api.fail(30)
  const repeat = async <Value>(call: () => Promise<Value>): Promise<Value> => {
    for (;;) {
      try {
        return await call()
      } catch {
        await sleep(10)
      }
    }
  }
  const specs = Array.from({ length: 40 }, () => relaySpec())
  await Promise.all(
    specs.map(async (spec) => {
      const { instanceId, providerId } = await repeat(() => relays.create(spec, never()))
      await repeat(() => relays.destroy(instanceId, providerId))
    }),
  )
  expect(api.project.servers()).toEqual([])
  expect(specs.map(({ instanceId }) => api.project.creations.get(instanceId))).toEqual(specs.map(() => 1))
})
