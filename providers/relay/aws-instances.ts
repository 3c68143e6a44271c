/** Relays as instances of EC2: the request that launches one, its tags, and how its description is read. */
import type { _InstanceType, Filter, Instance, RunInstancesCommandInput, Tag } from '@aws-sdk/client-ec2'
import { cloudRelayPorts } from '../../domain/relay/ports.ts'
import type { AwsSettings } from '../../platform/config/regions.ts'
import type { FleetMember, RelayInstance } from './provider.ts'

/** Whose instances a provider manages: those of one region of SVC_REGIONS and of one control plane. */
export interface Scope {
  readonly region: string
  readonly fleetName: string | undefined
}

/** The tags state the session that an instance was created for. One that is assigned later is not tagged. */
export interface Identity {
  readonly instanceId: string
  readonly sessionId: string | null
}

const tagNames = { session: 'svc-session', instance: 'svc-instance', region: 'svc-region', fleet: 'svc-fleet' } as const

/** An instance in one of these states costs money. In `shutting-down` and `terminated` it costs nothing any more. */
const existingStates = ['pending', 'running', 'stopping', 'stopped']

export const isExisting = ({ State }: Instance): boolean => existingStates.includes(State?.Name ?? '')

export const tagsOf = ({ region, fleetName }: Scope, { instanceId, sessionId }: Identity): Tag[] => [
  { Key: tagNames.session, Value: sessionId ?? '' },
  { Key: tagNames.instance, Value: instanceId },
  { Key: tagNames.region, Value: region },
  ...(fleetName === undefined ? [] : [{ Key: tagNames.fleet, Value: fleetName }]),
]

export interface LaunchRequest extends Identity {
  readonly subnetId: string
  /** Launches at most one instance for all requests with the same token. */
  readonly clientToken?: string
  readonly userData: string
}

/** One instance with a public address. Its volume and its network interface get the same tags and end with it. */
export function createRunInput(scope: Scope, settings: AwsSettings, request: LaunchRequest): RunInstancesCommandInput {
  const Tags = tagsOf(scope, request)
  return {
    ...(request.clientToken === undefined ? {} : { ClientToken: request.clientToken }),
    MinCount: 1,
    MaxCount: 1,
    ImageId: settings.image_id,
    InstanceType: settings.instance_type as _InstanceType,
    UserData: Buffer.from(request.userData).toString('base64'),
    NetworkInterfaces: [
      {
        DeviceIndex: 0,
        SubnetId: request.subnetId,
        Groups: settings.security_group_ids,
        AssociatePublicIpAddress: true,
        DeleteOnTermination: true,
      },
    ],
    // The user data contains the secret of the instance. With a hop limit of 1 no forwarded request reads it.
    MetadataOptions: { HttpTokens: 'required', HttpEndpoint: 'enabled', HttpPutResponseHopLimit: 1 },
    InstanceInitiatedShutdownBehavior: 'terminate',
    TagSpecifications: [
      { ResourceType: 'instance', Tags },
      { ResourceType: 'volume', Tags },
      { ResourceType: 'network-interface', Tags },
    ],
  }
}

/** What to look for; everything in the scope by default. */
export interface Selection {
  readonly instanceId?: string
  readonly sessionId?: string
  readonly providerId?: string
  /** Also instances of other fleets, and those without a name. */
  readonly anyFleet?: true
}

type Tagged = Pick<Instance, 'Tags' | 'InstanceId'>

/** Narrows EC2's reply. Its filters understand wildcards, so {@link isSelected} decides. */
export function filtersOf(
  { region, fleetName }: Scope,
  { instanceId, sessionId, providerId, anyFleet }: Selection,
): Filter[] {
  const equal = (Name: string, value: string | undefined) => (value === undefined ? [] : [{ Name, Values: [value] }])
  return [
    ...equal(`tag:${tagNames.region}`, region),
    ...equal(`tag:${tagNames.fleet}`, anyFleet ? undefined : fleetName),
    ...equal(`tag:${tagNames.session}`, sessionId),
    ...(instanceId === undefined ? equal('tag-key', tagNames.instance) : equal(`tag:${tagNames.instance}`, instanceId)),
    ...equal('instance-id', providerId),
  ]
}

/** @param resource an instance, or an address, which has the tags of its instance. */
export function isSelected(resource: Tagged, scope: Scope, selection: Selection): boolean {
  const tags = readTags(resource)
  const isEqual = (found: string | undefined, wanted: string | undefined) => wanted === undefined || found === wanted
  return (
    tags.get(tagNames.region) === scope.region &&
    (selection.anyFleet || tags.get(tagNames.fleet) === scope.fleetName) &&
    Boolean(tags.get(tagNames.instance)) &&
    isEqual(tags.get(tagNames.instance), selection.instanceId) &&
    isEqual(tags.get(tagNames.session), selection.sessionId) &&
    isEqual(resource.InstanceId, selection.providerId)
  )
}

/** Tags may not be shown yet: an instance without the tag counts as one of the fleet. */
export function isOfAnotherFleet(instance: Instance, { fleetName }: Scope): boolean {
  const found = readTags(instance).get(tagNames.fleet)
  return found !== undefined && found !== fleetName
}

export function fleetMemberOf(resource: Tagged): FleetMember {
  const tags = readTags(resource)
  return {
    instanceId: tags.get(tagNames.instance) ?? '',
    providerId: resource.InstanceId ?? '',
    sessionId: tags.get(tagNames.session) || null,
    fleetName: tags.get(tagNames.fleet) ?? null,
  }
}

/** An instance, its volumes and its network interfaces, which all have its tags. */
export const taggedResourcesOf = (instance: Instance): string[] =>
  [
    instance.InstanceId,
    ...(instance.BlockDeviceMappings ?? []).map(({ Ebs }) => Ebs?.VolumeId),
    ...(instance.NetworkInterfaces ?? []).map(({ NetworkInterfaceId }) => NetworkInterfaceId),
  ].filter((id) => id !== undefined)

export const fleetTag = (fleetName: string): Tag => ({ Key: tagNames.fleet, Value: fleetName })

/** The host is empty until EC2 has assigned the public address. */
export function relayInstanceOf(instance: Instance): RelayInstance {
  const tags = readTags(instance)
  return {
    instanceId: tags.get(tagNames.instance) ?? '',
    providerId: instance.InstanceId ?? null,
    sessionId: tags.get(tagNames.session) || null,
    region: tags.get(tagNames.region) ?? '',
    endpoint: { host: instance.PublicIpAddress ?? '', hostV6: ipv6AddressOf(instance), ...cloudRelayPorts },
    createdAt: instance.LaunchTime ?? new Date(0),
  }
}

/** A subnet that has IPv6 gives each new instance an address, where it is set to. */
const ipv6AddressOf = ({ NetworkInterfaces: [first] = [] }: Instance): string | undefined =>
  first?.Ipv6Addresses?.[0]?.Ipv6Address

const readTags = ({ Tags = [] }: Pick<Tagged, 'Tags'>): ReadonlyMap<string, string> =>
  new Map(Tags.map(({ Key = '', Value = '' }) => [Key, Value] as const))
