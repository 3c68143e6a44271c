/** Creates and destroys instances at their providers, for the activities of relay sessions and of warm instances. */
import { Context } from '@temporalio/activity'
import { ApplicationFailure } from '@temporalio/common'
import type { Database } from '../../db/connection.ts'
import { type Placement, type ReservedInstance, recordLaunch, type StoredInstance } from '../../db/fleet/instances.ts'
import { recordAddress } from '../../db/fleet/relay-addresses.ts'
import { moveToNextZone } from '../../db/transactions/move-to-next-zone.ts'
import { warmReportSecondsMax } from '../../domain/fleet/warm-instances.ts'
import type { Config } from '../../platform/config/config.ts'
import { imageKey } from '../../platform/config/regions.ts'
import { createInstanceId, instanceSecret } from '../../providers/relay/instance-secrets.ts'
import {
  type RelayInstance,
  type RelayProvider,
  RelayProviderError,
  type RelaySpec,
} from '../../providers/relay/provider.ts'
import type { RelayProviders } from './relay-providers.ts'

/** The hidden soft cap on a relay's throughput (specification, "Limits"). */
const capMbps = 48
const heartbeatMillis = 1000

export const regionOf = (config: Pick<Config, 'regions'>, name: string) => {
  const region = config.regions.find((candidate) => candidate.region === name)
  if (region) return region
  throw missingRegion(name)
}

const missingRegion = (name: string) =>
  new RelayProviderError(`region ${name} is not in SVC_REGIONS: put it back until its relays are gone`)

export const placementOf = (config: Pick<Config, 'regions' | 'relay'>, name: string): Placement => {
  const region = regionOf(config, name)
  const { provider, capacity } = region
  const reportSecondsMax = warmReportSecondsMax(config.relay.healthTimeoutSeconds)
  return { region: name, provider, image: imageKey(region), capacity, reportSecondsMax }
}

export function providerOf(providers: RelayProviders, region: string): RelayProvider {
  const provider = providers.get(region)
  if (provider) return provider
  throw missingRegion(region)
}

interface Deps {
  readonly config: Config
  readonly sql: Database
  readonly providers: RelayProviders
}

/**
 * Creates an instance that has a row, in its zone or in the next one that has room, and records the provider's answer.
 * Rejects with {@link RelayProviderError}.
 * @returns undefined when the instance is no longer wanted.
 */
export async function launchInstance(
  { config, sql, providers }: Deps,
  reserved: ReservedInstance,
  target: Pick<RelaySpec, 'sessionId' | 'region' | 'streamTokenHash' | 'binding' | 'ports' | 'addressId'>,
): Promise<RelayInstance | undefined> {
  const provider = providerOf(providers, target.region)
  let instance: ReservedInstance | undefined = reserved
  while (instance !== undefined) {
    const { instanceId, zone } = instance
    const spec = { ...relaySettings(config, instanceId), ...target, instanceId, zone }
    try {
      const launched = await withHeartbeat((signal) => provider.create(spec, signal))
      const { providerId, endpoint, addressId } = launched
      if (addressId !== undefined)
        await recordAddress(sql, {
          region: target.region,
          addressId,
          host: endpoint.host,
          canMove: provider.addresses?.move !== undefined,
          instanceId: launched.instanceId,
        })
      await recordLaunch(sql, instanceId, { instanceId: launched.instanceId, providerId, ...endpoint })
      return launched
    } catch (error) {
      if (!(error instanceof RelayProviderError && error.failure === 'try_other_zone')) throw error
      if (zone + 1 >= provider.zones)
        throw new RelayProviderError(error.message, 'give_up', { detail: 'capacity', cause: error })
      instance = await moveToNextZone(sql, instance, createInstanceId(regionOf(config, target.region).provider))
    }
  }
  return undefined
}

function relaySettings({ apiUrl, relayAuthSecrets, relay }: Config, instanceId: string) {
  const [masterSecret = ''] = relayAuthSecrets
  const { healthIntervalSeconds, engine, srtPassphrase, srtlaLatencyMillisMin, statsAddresses, streamWeakKbps, sls } =
    relay
  const relayAuthSecret = instanceSecret(masterSecret, instanceId)
  const stream = { engine, srtPassphrase, srtlaLatencyMillisMin, statsAddresses, streamWeakKbps, sls }
  return { apiUrl, relayAuthSecret, capMbps, healthIntervalSeconds, ...stream }
}

/**
 * Destroys an instance. Rejects while it is not proven that the instance does not exist: a provider may show an
 * instance only some time after its creation, whose reply may be lost.
 */
export async function destroyProven(provider: RelayProvider, instance: StoredInstance): Promise<void> {
  const { instanceId, providerId, attemptedSeconds } = instance
  await provider.destroy(instanceId, providerId)
  if (providerId === null && attemptedSeconds < provider.listLagSeconds)
    throw new RelayProviderError('the instance may have been created and is not shown by its provider yet')
}

/** What a workflow reads from a failed creation. */
export interface CreationFailure {
  readonly detail: RelayProviderError['detail'] | null
  readonly retryAfterSeconds: number | null
}

const failureTypes = {
  retry: 'provider_failed',
  try_other_zone: 'provider_failed',
  throttled: 'provider_throttled',
  give_up: 'provider_refused',
} as const

/**
 * The workflow counts the provider's failures and gives up after a number of them. All other errors, such as an outage
 * of Postgres, are retried by Temporal without being counted.
 */
export function failCreation(error: unknown): never {
  if (!(error instanceof RelayProviderError)) throw error
  const { message, failure, detail = null, retryAfterSeconds = null } = error
  const details: CreationFailure = { detail, retryAfterSeconds }
  throw ApplicationFailure.nonRetryable(message, failureTypes[failure], details)
}

/** Runs a provider call that can be cancelled, and sends heartbeats to Temporal until it ends. */
export async function withHeartbeat<Value>(call: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
  const { cancellationSignal, cancelled, heartbeat } = Context.current()
  const timer = setInterval(() => heartbeat(), heartbeatMillis)
  try {
    // A provider call that ignores its signal is abandoned. An instance that it still creates has a row and is
    // destroyed.
    return await Promise.race([call(cancellationSignal), cancelled])
  } finally {
    clearInterval(timer)
  }
}
