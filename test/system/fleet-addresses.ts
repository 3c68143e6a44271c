/**
 * The stable addresses of a simulated provider, and the rules about them and about names. Like those of EC2 they move
 * between running instances, or like those of Hetzner Cloud only a new instance gets one that no instance has.
 */
import type { Database } from '../../db/connection.ts'
import { RelayProviderError, type StableAddresses } from '../../providers/relay/provider.ts'
import type { SimulatedInstance, SimulatedProvider } from './fleet-provider.ts'

interface SimulatedAddress {
  readonly addressId: string
  readonly host: string
  /** The instance that it was reserved for. */
  readonly taggedId: string
  instanceId: string
}

interface Options {
  /** Distinguishes the addresses of the regions. */
  readonly network: number
  readonly canMove: boolean
  readonly instances: readonly SimulatedInstance[]
  readonly chance: (probability: number) => boolean
  readonly fail: (fault: string, message: string) => never
  readonly answerTime: () => Promise<unknown>
}

export interface SimulatedAddresses extends StableAddresses {
  /** Gives a new instance the wanted address where it can have it, or another one. */
  reserve(instanceId: string, wantedId: string | null | undefined): SimulatedAddress
  /** All that are not released, by host, with the instance that each leads to. */
  hosts(): ReadonlyMap<string, string>
}

export function createSimulatedAddresses(options: Options): SimulatedAddresses {
  const { network, canMove, instances, chance, fail, answerTime } = options
  const addresses = new Map<string, SimulatedAddress>()
  let reserved = 0
  const holderOf = ({ instanceId }: SimulatedAddress) =>
    instances.find((instance) => instance.instanceId === instanceId && instance.endedAt === null)

  const reserve = (instanceId: string, wantedId: string | null | undefined): SimulatedAddress => {
    const wanted = addresses.get(wantedId ?? '')
    if (wanted && !canMove && !holderOf(wanted)) return Object.assign(wanted, { instanceId })
    reserved += 1
    const host = `198.${network}.${reserved >> 8}.${reserved & 255}`
    const address = { addressId: `address-${network}-${reserved}`, host, taggedId: instanceId, instanceId }
    addresses.set(address.addressId, address)
    return address
  }
  const move = async (addressId: string, providerId: string): Promise<void> => {
    await answerTime()
    if (chance(0.08)) fail('failed move of an address', 'the provider failed')
    const target = instances.find((instance) => instance.providerId === providerId)
    const address = addresses.get(addressId)
    if (!address || !target || target.endedAt !== null) throw new RelayProviderError('there is no such instance')
    for (const other of addresses.values()) if (other.instanceId === target.instanceId) other.instanceId = ''
    address.instanceId = target.instanceId
    if (chance(0.05)) fail('lost reply of a move', 'the connection was reset')
  }
  return {
    areReserved: true,
    reserve,
    hosts: () => new Map([...addresses.values()].map(({ host, instanceId }) => [host, instanceId])),
    ...(canMove ? { move } : {}),
    list: async () => {
      await answerTime()
      if (chance(0.05)) fail('failed list of addresses', 'the list is not complete')
      return [...addresses.values()].map((address) => {
        const providerId = holderOf(address)?.providerId ?? null
        const { addressId, host, taggedId: instanceId } = address
        return { addressId, host, instanceId, providerId, isAttached: providerId !== null }
      })
    },
    release: async (addressId) => {
      await answerTime()
      if (chance(0.08)) fail('failed release of an address', 'the provider failed')
      const address = addresses.get(addressId)
      if (address && !canMove && holderOf(address)) fail('release of a used address', 'an instance has the address')
      addresses.delete(addressId)
      if (chance(0.05)) fail('lost reply of a release', 'the connection was reset')
    },
  }
}

/** Longer than the trouble of a provider and the pauses after it. */
const leadSecondsMax = 30
/** Between a change at the provider and its row. */
const changeSecondsMax = 3

/** @returns a function that finds what has broken a rule for too long, when it is called again and again. */
export function watchAddresses(sql: Database, providers: readonly SimulatedProvider[]): () => Promise<string[]> {
  let since = new Map<string, number>()
  return async () => {
    const rows = await sql<{ text: string; host: string; region: string | null; instanceId: string | null }[]>`
      select format('session %s', id) as text, relay_host as host, region, instance_id from relay_sessions
      where state = 'active' and command = 'run' and relay_host is not null
      union all select format('name %s', label), shown_v4, null, null from relay_names where shown_v4 is not null`
    const present = rows.flatMap(({ text, host, region, instanceId }) => {
      const hosts = providers
        .filter((provider) => region === null || provider.region === region)
        .map((it) => it.hosts())
      const target = hosts.find((all) => all.has(host))?.get(host)
      if (target === undefined)
        return [{ text: `${text} leads to ${host}, which was released`, secondsMax: changeSecondsMax }]
      const isRight = instanceId === null || target === instanceId
      const secondsMax = leadSecondsMax
      return isRight
        ? []
        : [{ text: `${text} has ${host}, which leads to ${target} and not to ${instanceId}`, secondsMax }]
    })
    const now = Date.now()
    since = new Map(present.map(({ text }) => [text, since.get(text) ?? now]))
    return present
      .filter(({ text, secondsMax }) => now - (since.get(text) ?? now) > secondsMax * 1000)
      .map(({ text }) => text)
  }
}

/** Addresses that no warm instance has, and rows of such, after all sessions have ended. */
export async function findAddressesLeft(sql: Database, providers: readonly SimulatedProvider[]): Promise<string[]> {
  const rows = await sql<{ host: string }[]>`select host from relay_addresses`
  const stored = new Set(rows.map(({ host }) => host))
  const names = await sql<{ label: string }[]>`select label from relay_names where shown_v4 is not null`
  const left = providers.flatMap((provider) => {
    const used = new Set(provider.listExisting().map(({ endpoint }) => endpoint.host))
    const hosts = [...provider.hosts().keys()]
    return [
      ...hosts.filter((host) => !used.has(host)).map((host) => `${host} is left at the provider`),
      ...hosts.filter((host) => !stored.has(host)).map((host) => `${host} has no row`),
    ]
  })
  const known = new Set(providers.flatMap((provider) => [...provider.hosts().keys()]))
  return [
    ...left,
    ...[...stored].filter((host) => !known.has(host)).map((host) => `the row of ${host} is left`),
    ...names.map(({ label }) => `the name ${label} leads somewhere`),
  ]
}

/** As the configuration of a region with such addresses. */
export const cloudSettings = (canMove: boolean) =>
  canMove
    ? {
        provider: 'aws',
        aws: {
          region: 'eu-central-1',
          image_id: 'ami-0a',
          instance_type: 't3.small',
          subnet_ids: ['subnet-0a'],
          security_group_ids: ['sg-0a'],
        },
      }
    : { provider: 'hetzner', hetzner: { location: 'fsn1', server_type: 'cx22', image: 'debian-13' } }
