/** Gives an instance that was launched without a name the name of a fleet. */
import { nameAddresses } from './aws-addresses.ts'
import type { Ec2Call } from './aws-connection.ts'
import { fleetMemberOf, fleetTag, isExisting, taggedResourcesOf } from './aws-instances.ts'
import { type FleetMember, RelayProviderError } from './provider.ts'

/** Reads the tags again first: another control plane may have adopted the instance since it was listed. */
export async function adopt(call: Ec2Call, fleetName: string | undefined, member: FleetMember): Promise<void> {
  if (fleetName === undefined) throw new Error('a fleet without a name adopts nothing')
  const { instanceId, providerId } = member
  const input = { Filters: [{ Name: 'instance-id', Values: [providerId] }] }
  const { Reservations = [] } = await call('DescribeInstances', (ec2, options) => ec2.describeInstances(input, options))
  const instance = Reservations[0]?.Instances?.[0]
  if (!instance || !isExisting(instance)) return
  const present = fleetMemberOf(instance)
  if (present.fleetName === fleetName) return
  if (present.instanceId !== instanceId || present.fleetName !== null)
    throw new RelayProviderError(`${providerId} has other tags than before`, 'give_up', { detail: 'configuration' })
  const request = { Resources: taggedResourcesOf(instance), Tags: [fleetTag(fleetName)] }
  await call('CreateTags', (ec2, options) => ec2.createTags(request, options))
  await nameAddresses(call, instance, fleetName)
}
