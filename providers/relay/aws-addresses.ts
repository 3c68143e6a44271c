/** Elastic IPs: addresses of EC2 that can move from one instance to another while both run. */
import type { Address, Filter, Instance } from '@aws-sdk/client-ec2'
import type { Logger } from '../../platform/log.ts'
import type { Ec2Call } from './aws-connection.ts'
import { Ec2Error } from './aws-errors.ts'
import { filtersOf, fleetMemberOf, fleetTag, type Identity, isSelected, type Scope, tagsOf } from './aws-instances.ts'
import { type ListedAddress, RelayProviderError, type StableAddresses } from './provider.ts'

interface Calls {
  readonly call: Ec2Call
  readonly scope: Scope
}

/**
 * Gives a new instance an Elastic IP of its own. Safe to repeat: its tags find the one of an earlier call. Where the
 * list lags behind, there may be a second one, which no instance has as its host, so it is released.
 * @returns undefined when the account may have no more of them, or not at all: the instance keeps its ordinary address.
 */
export async function reserveAddress(
  calls: Calls & { readonly log: Logger },
  identity: Identity,
  networkInterfaceId: string,
  signal: AbortSignal,
): Promise<{ readonly addressId: string; readonly host: string } | undefined> {
  const { log } = calls
  const { instanceId } = identity
  const address = (await find(calls, instanceId, signal)) ?? (await allocate(calls, identity, signal).catch(refused))
  if (address === undefined) return undefined
  const { AllocationId: addressId = '', PublicIp: host = '' } = address
  await associate(calls, addressId, networkInterfaceId, signal)
  return { addressId, host }

  function refused(error: unknown): undefined {
    const isFinal = error instanceof Ec2Error && (error.failure === 'give_up' || error.failure === 'try_other_zone')
    if (!isFinal) throw error
    log.warn({ err: error, instanceId }, 'a relay has an ordinary address, since EC2 reserved no stable one for it')
    return undefined
  }
}

const find = async (calls: Calls, instanceId: string, signal: AbortSignal): Promise<Address | undefined> => {
  const found = await describe(calls, filtersOf(calls.scope, { instanceId }), signal)
  const own = found.filter((address) => isSelected(address, calls.scope, { instanceId }))
  // Of two the one that the instance has already.
  const rank = ({ AssociationId, AllocationId }: Address) => `${AssociationId ? 0 : 1} ${AllocationId}`
  return own.toSorted((a, b) => rank(a).localeCompare(rank(b)))[0]
}

const allocate = ({ call, scope }: Calls, identity: Identity, signal: AbortSignal) => {
  const TagSpecifications = [{ ResourceType: 'elastic-ip' as const, Tags: tagsOf(scope, identity) }]
  return call(
    'AllocateAddress',
    (ec2, options) => ec2.allocateAddress({ Domain: 'vpc', TagSpecifications }, options),
    signal,
  )
}

/** By the network interface, which has an address before its instance runs. */
const associate = ({ call }: Calls, AllocationId: string, NetworkInterfaceId: string, signal?: AbortSignal) => {
  const input = { AllocationId, NetworkInterfaceId, AllowReassociation: true }
  return call('AssociateAddress', (ec2, options) => ec2.associateAddress(input, options), signal)
}

async function describe({ call }: Pick<Calls, 'call'>, Filters: Filter[], signal?: AbortSignal): Promise<Address[]> {
  const { Addresses = [] } = await call(
    'DescribeAddresses',
    (ec2, options) => ec2.describeAddresses({ Filters }, options),
    signal,
  )
  return Addresses
}

interface AddressOptions extends Calls {
  readonly areReserved: boolean
  /** The first network interface of a running instance; undefined when there is no such instance. */
  readonly findNetworkInterface: (providerId: string) => Promise<string | undefined>
}

export function createAwsAddresses({ areReserved, findNetworkInterface, ...calls }: AddressOptions) {
  const { call, scope } = calls
  const findById = async (addressId: string): Promise<Address | undefined> => {
    const [address] = await describe(calls, [{ Name: 'allocation-id', Values: [addressId] }])
    // The id may come from a database that is a copy of another control plane's.
    return address && isSelected(address, scope, {}) ? address : undefined
  }
  return {
    areReserved,
    async list(): Promise<ListedAddress[]> {
      const found = await describe(calls, filtersOf(scope, {}))
      return found.filter((address) => isSelected(address, scope, {})).map(listedAddressOf)
    },
    async move(addressId, providerId) {
      const networkInterfaceId = await findNetworkInterface(providerId)
      if (networkInterfaceId === undefined) throw new RelayProviderError(`EC2 shows no running instance ${providerId}`)
      if (!(await findById(addressId))) throw new RelayProviderError(`EC2 shows no address ${addressId} of this fleet`)
      await associate(calls, addressId, networkInterfaceId)
    },
    async release(addressId) {
      const address = await findById(addressId)
      if (!address) return
      const { AssociationId } = address
      try {
        if (AssociationId)
          await call('DisassociateAddress', (ec2, options) => ec2.disassociateAddress({ AssociationId }, options))
        await call('ReleaseAddress', (ec2, options) => ec2.releaseAddress({ AllocationId: addressId }, options))
      } catch (error) {
        if (!(error instanceof Ec2Error && error.code === 'InvalidAllocationID.NotFound')) throw error
      }
    },
  } satisfies StableAddresses
}

const listedAddressOf = (address: Address): ListedAddress => ({
  addressId: address.AllocationId ?? '',
  host: address.PublicIp ?? '',
  instanceId: fleetMemberOf(address).instanceId,
  providerId: address.InstanceId || null,
  isAttached: Boolean(address.AssociationId),
})

/** Gives the addresses of an instance that was launched without a name the name of a fleet. */
export async function nameAddresses(call: Ec2Call, instance: Instance, fleetName: string): Promise<void> {
  const Values = (instance.NetworkInterfaces ?? []).map(({ NetworkInterfaceId = '' }) => NetworkInterfaceId)
  const found = await describe({ call }, [{ Name: 'network-interface-id', Values }])
  const own = found.filter((address) => fleetMemberOf(address).instanceId !== '')
  const Resources = own.map(({ AllocationId = '' }) => AllocationId)
  if (Resources.length > 0)
    await call('CreateTags', (ec2, options) => ec2.createTags({ Resources, Tags: [fleetTag(fleetName)] }, options))
}
