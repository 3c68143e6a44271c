/**
 * The stable addresses of a simulated provider. Like those of EC2 they move
 * between running instances, or like those of Hetzner Cloud only a new instance gets one that no instance has.
 */
import { RelayProviderError, type StableAddresses } from '../../providers/relay/provider.ts'

interface Holder {
  readonly instanceId: string
  readonly providerId: string | null
  /** Null as long as it exists. */
  readonly endedAt: number | null
}

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
  readonly instances: readonly Holder[]
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
