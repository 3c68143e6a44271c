/**
 * Runs relays as instances of Amazon EC2, one provider per region of SVC_REGIONS. It keeps no state: tags identify the
 * instances, and the client token of a launch makes it repeatable.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { EC2, Instance } from '@aws-sdk/client-ec2'
import type { AwsSettings, RegionConfig } from '../../platform/config/regions.ts'
import type { Logger } from '../../platform/log.ts'
import { createAwsAddresses, reserveAddress } from './aws-addresses.ts'
import { adopt } from './aws-adoption.ts'
import { checkAddresses, checkAwsSettings } from './aws-check.ts'
import { type ConnectionOptions, connectEc2, type Ec2Call } from './aws-connection.ts'
import { Ec2Error, meaningOf } from './aws-errors.ts'
import {
  createRunInput,
  filtersOf,
  fleetMemberOf,
  isExisting,
  isOfAnotherFleet,
  isSelected,
  relayInstanceOf,
  type Scope,
  type Selection,
} from './aws-instances.ts'
import { type RelayProvider, RelayProviderError, type RelaySpec, withAddress } from './provider.ts'

export interface AwsRelayOptions extends ConnectionOptions {
  /** A region with the provider `aws`. */
  readonly region: RegionConfig
  /** Only instances of this fleet are managed; without a name only those without a fleet. */
  readonly fleetName: string | undefined
  readonly log: Logger
  /** Returns the cloud-init text of an instance. */
  readonly userData: (spec: RelaySpec) => string
}

const createMillisMax = 60_000
const destroyMillisMax = 30_000
const pollMillis = 1_000
const listLagSeconds = 60
const instancesPerPage = 100
const endedStates: ReadonlySet<string> = new Set(['shutting-down', 'terminated', 'stopping', 'stopped'])

export function createAwsRelayProvider(options: AwsRelayOptions): RelayProvider {
  const { region, fleetName, log, userData } = options
  const settings = settingsOf(region)
  const call = connectEc2(settings.region, options)
  const scope = { region: region.region, fleetName }
  const findNetworkInterface = async (providerId: string) => {
    const instance = await describeById({ call, scope }, providerId)
    return instance?.State?.Name === 'running' ? networkInterfaceOf(instance) : undefined
  }
  return {
    zones: settings.subnet_ids.length,
    listLagSeconds,
    async create(spec, signal) {
      const startedAt = performance.now()
      const until = Date.now() + createMillisMax
      try {
        const launched = await launch({ call, scope, settings, userData }, spec, until, signal)
        const addressed = await waitForAddress({ call, scope }, launched, until, signal)
        const reserved = region.stable_address
          ? await reserveAddress({ call, scope, log }, spec, networkInterfaceOf(addressed) ?? '', signal)
          : undefined
        const instance = reserved ? withAddress(relayInstanceOf(addressed), reserved) : relayInstanceOf(addressed)
        const { instanceId, sessionId, providerId } = instance
        const millis = Math.round(performance.now() - startedAt)
        log.info({ instanceId, sessionId, providerId, millis }, 'relay created')
        return instance
      } catch (error) {
        // A launched instance is kept, since a repeated call on another worker adopts it. A client token cannot be used
        // again.
        if (signal.aborted) throw signal.reason
        throw error
      }
    },
    async describe(instanceId) {
      const [instance] = await find({ call, scope }, { instanceId })
      return instance ? relayInstanceOf(instance) : null
    },
    async destroy(instanceId, providerId) {
      const found = providerId ? [providerId] : (await find({ call, scope }, { instanceId })).map(providerIdOf)
      for (const id of found) {
        await terminate({ call, scope }, id)
        log.info({ instanceId, providerId: id }, 'relay destroyed')
      }
    },
    async hasEnded(_instanceId, providerId) {
      const instance = providerId === null ? undefined : await describeById({ call, scope }, providerId)
      return endedStates.has(instance?.State?.Name ?? '')
    },
    async list(filter) {
      return (await find({ call, scope }, filter ?? {})).map(relayInstanceOf)
    },
    addresses: createAwsAddresses({ call, scope, areReserved: region.stable_address, findNetworkInterface }),
    async check() {
      await checkAwsSettings(call, scope, settings)
      if (region.stable_address) await checkAddresses(call, scope)
    },
    account: {
      async listAll() {
        return (await find({ call, scope }, { anyFleet: true })).map(fleetMemberOf)
      },
      async adopt(member) {
        await adopt(call, fleetName, member)
        log.info({ instanceId: member.instanceId, providerId: member.providerId }, 'relay adopted')
      },
    },
  }
}

function settingsOf({ region, aws }: RegionConfig): AwsSettings {
  if (!aws) throw new Error(`region ${region} has no settings of AWS`)
  return aws
}

interface Calls {
  readonly call: Ec2Call
  readonly scope: Scope
}

/** Launches the instance, or finds the one that an earlier call launched. */
async function launch(
  { call, scope, settings, userData }: Calls & { settings: AwsSettings; userData: AwsRelayOptions['userData'] },
  spec: RelaySpec,
  until: number,
  signal: AbortSignal,
): Promise<Instance> {
  const { instanceId, sessionId, zone } = spec
  const subnetId = settings.subnet_ids[zone]
  if (!subnetId)
    throw new RelayProviderError(`zone ${zone} has no subnet in aws.subnet_ids`, 'give_up', { detail: 'configuration' })
  // EC2 also remembers the tokens of refused launches, and another subnet with the same token would be a mismatch.
  const clientToken = `${instanceId}-${zone}`
  const input = createRunInput(scope, settings, {
    instanceId,
    sessionId,
    subnetId,
    clientToken,
    userData: userData(spec),
  })
  try {
    const { Instances: [instance] = [] } = await call(
      'RunInstances',
      (ec2, options) => ec2.runInstances(input, options),
      signal,
    )
    if (instance) return instance
  } catch (error) {
    // The settings have changed since the first call with this token, which may have launched the instance.
    if (!(error instanceof Ec2Error && error.code === 'IdempotentParameterMismatch')) throw error
  }
  for (;;) {
    const [instance] = await find({ call, scope }, { instanceId }, signal)
    if (instance) return instance
    if (Date.now() >= until) throw new RelayProviderError(`EC2 shows no instance for the client token of ${instanceId}`)
    await sleep(pollMillis, undefined, { signal })
  }
}

/** Resolves once the instance has a public address, which takes a few seconds. */
async function waitForAddress(calls: Calls, launched: Instance, until: number, signal: AbortSignal): Promise<Instance> {
  const providerId = providerIdOf(launched)
  let instance = launched
  for (;;) {
    if (!isExisting(instance)) throw endedEarly(instance)
    if (instance.PublicIpAddress) return instance
    if (Date.now() >= until)
      throw new RelayProviderError(`${providerId} had no public address within ${createMillisMax} ms`)
    await sleep(pollMillis, undefined, { signal })
    // A new instance may be missing from a description for some seconds.
    instance = (await describeById(calls, providerId, signal)) ?? instance
  }
}

/**
 * EC2 may end a new instance, since it finds no room or too little quota for the volume. The client token is used up
 * then, so the same call would fail again. A failure of EC2 itself is most often limited to one zone.
 */
function endedEarly({ InstanceId, StateReason }: Instance): RelayProviderError {
  const code = StateReason?.Code ?? 'an unknown reason'
  const { failure, detail } = meaningOf(code.replace(/^(Server|Client)\./, ''))
  const message = `EC2 ended ${InstanceId} before it had an address: ${code}`
  if (code.startsWith('Server.') || failure === 'try_other_zone')
    return new RelayProviderError(message, 'try_other_zone', { detail: 'capacity' })
  return new RelayProviderError(message, 'give_up', detail ? { detail } : {})
}

/** The existing instances of a selection. Rejects when a page cannot be read. */
async function find({ call, scope }: Calls, selection: Selection, signal?: AbortSignal): Promise<Instance[]> {
  const found: Instance[] = []
  let page: string | undefined
  do {
    const input = {
      Filters: filtersOf(scope, selection),
      MaxResults: instancesPerPage,
      ...(page ? { NextToken: page } : {}),
    }
    const reply = await call('DescribeInstances', (ec2, options) => ec2.describeInstances(input, options), signal)
    const instances = (reply.Reservations ?? []).flatMap(({ Instances = [] }) => Instances)
    found.push(...instances.filter((instance) => isExisting(instance) && isSelected(instance, scope, selection)))
    page = reply.NextToken || undefined
  } while (page)
  return found
}

/** In any state, so that the end of an instance is seen as well. */
async function describeById({ call }: Calls, providerId: string, signal?: AbortSignal): Promise<Instance | undefined> {
  const input = { Filters: [{ Name: 'instance-id', Values: [providerId] }] }
  const reply = await call('DescribeInstances', (ec2, options) => ec2.describeInstances(input, options), signal)
  return reply.Reservations?.[0]?.Instances?.[0]
}

/**
 * Resolves once EC2 shuts the instance down, since it costs nothing from then on, or no longer knows it. Leaves an
 * instance of another fleet alone.
 */
async function terminate(calls: Calls, providerId: string): Promise<void> {
  const InstanceIds = [providerId]
  // The id may come from a database that is a copy of another control plane's.
  const found = await describeById(calls, providerId)
  if (found && isOfAnotherFleet(found, calls.scope)) return
  try {
    await calls.call('TerminateInstances', (ec2: EC2, options) => ec2.terminateInstances({ InstanceIds }, options))
  } catch (error) {
    if (error instanceof Ec2Error && error.code === 'InvalidInstanceID.NotFound') return
    const instance = await describeById(calls, providerId).catch(() => undefined)
    if (instance === undefined || isExisting(instance)) throw error
  }
  const until = Date.now() + destroyMillisMax
  for (;;) {
    const instance = await describeById(calls, providerId)
    if (!instance || !isExisting(instance)) return
    if (Date.now() >= until) throw new RelayProviderError(`${providerId} still exists after its termination`)
    await sleep(pollMillis)
  }
}

const networkInterfaceOf = ({ NetworkInterfaces: [first] = [] }: Instance): string | undefined =>
  first?.NetworkInterfaceId

const providerIdOf = ({ InstanceId = '' }: Instance): string => InstanceId
