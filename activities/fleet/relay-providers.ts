/** The relay provider of each region, and metrics of its calls. */
import type { Sql } from '../../db/connection.ts'
import { storeRelayProgram } from '../../db/fleet/relay-programs.ts'
import { findHostProblem } from '../../platform/bindable-host.ts'
import type { Config } from '../../platform/config/config.ts'
import type { RegionConfig } from '../../platform/config/regions.ts'
import type { Logger } from '../../platform/log.ts'
import { createAwsRelayProvider } from '../../providers/relay/aws.ts'
import { createHetznerRelayProvider } from '../../providers/relay/hetzner.ts'
import { createLocalRelayProvider } from '../../providers/relay/local.ts'
import { type RelayProvider, RelayProviderError, type StableAddresses } from '../../providers/relay/provider.ts'
import { relayBundle } from '../../providers/relay/relay-bundle.ts'
import { createUserData } from '../../providers/relay/user-data.ts'
import type { WorkerMetrics } from '../worker/metrics.ts'

export type RelayProviders = ReadonlyMap<string, RelayProvider>

/** Stores the program that the user data of instances names, so that the api of any version serves it. */
export async function keepRelayProgram(sql: Sql, { regions }: Pick<Config, 'regions'>): Promise<void> {
  if (regions.some(({ provider }) => provider !== 'local')) await storeRelayProgram(sql, await relayBundle())
}

/** @returns providers by region. */
export async function createRelayProviders(config: Config, log: Logger): Promise<RelayProviders> {
  const userData = createUserData(config, await relayBundle())
  const local = createLocalProvider(config, log)
  const createProvider = (region: RegionConfig): RelayProvider => {
    const options = { region, fleetName: config.fleet.name, log, userData }
    if (region.provider === 'aws') return createAwsRelayProvider(options)
    if (region.provider === 'hetzner') return createHetznerRelayProvider({ ...options, ...hetznerAccess(config) })
    return { ...local, check: () => checkLocal(local, region) }
  }
  return new Map(config.regions.map((region) => [region.region, createProvider(region)] as const))
}

function createLocalProvider({ regions, dataDir, relay }: Config, log: Logger): RelayProvider {
  const byName = new Map(regions.map((region) => [region.region, region] as const))
  const hostOf = (region: string) => byName.get(region)?.host ?? '127.0.0.1'
  const publicHostOf = (region: string) => byName.get(region)?.public_host
  return createLocalRelayProvider({ dataDir, log, searchPath: relay.searchPath, hostOf, publicHostOf })
}

async function checkLocal(local: RelayProvider, region: RegionConfig): Promise<void> {
  await local.check()
  const problem = await findHostProblem(region)
  if (problem !== null) throw new RelayProviderError(problem, 'give_up', { detail: 'configuration' })
}

function hetznerAccess({ fleet }: Config): { token: string; apiUrl: string } {
  const { token, apiUrl } = fleet.hetzner
  if (token === undefined) throw new Error('SVC_HETZNER_TOKEN is not set')
  return { token, apiUrl }
}

/** Counts and times each call of the providers, and counts failures by their class. */
export function withCallMetrics(providers: RelayProviders, config: Config, metrics: WorkerMetrics): RelayProviders {
  const kinds = new Map(config.regions.map(({ region, provider }) => [region, provider] as const))
  return new Map(
    [...providers].map(([region, provider]) => {
      const names = { kind: kinds.get(region) ?? 'unknown', region }
      return [region, withMetrics(provider, names, metrics)] as const
    }),
  )
}

function withMetrics(
  provider: RelayProvider,
  { kind, region }: { readonly kind: string; readonly region: string },
  metrics: WorkerMetrics,
): RelayProvider {
  const measured =
    <Args extends unknown[], Value>(operation: string, call: (...args: Args) => Promise<Value>) =>
    async (...args: Args): Promise<Value> => {
      const startedAt = performance.now()
      const count = (outcome: 'ok' | 'failed') =>
        metrics.countOperation({ provider: kind, operation, outcome, seconds: (performance.now() - startedAt) / 1000 })
      try {
        const value = await call(...args)
        count('ok')
        return value
      } catch (error) {
        count('failed')
        if (error instanceof RelayProviderError)
          metrics.countFailure({ provider: kind, region, failure: error.failure })
        throw error
      }
    }
  const measuredAddresses = ({ move, ...addresses }: StableAddresses): StableAddresses => ({
    ...addresses,
    list: measured('list', () => addresses.list()),
    ...(move ? { move: measured('move_address', move) } : {}),
    release: measured('release_address', (addressId) => addresses.release(addressId)),
  })
  const { account, addresses } = provider
  return {
    zones: provider.zones,
    listLagSeconds: provider.listLagSeconds,
    create: measured('create', (spec, signal) => provider.create(spec, signal)),
    describe: measured('describe', (instanceId) => provider.describe(instanceId)),
    destroy: measured('destroy', (instanceId, providerId) => provider.destroy(instanceId, providerId)),
    hasEnded: measured('describe', (instanceId, providerId) => provider.hasEnded(instanceId, providerId)),
    ...(provider.hasSharedHost ? { hasSharedHost: true } : {}),
    list: measured('list', (filter) => provider.list(filter)),
    check: measured('check', () => provider.check()),
    ...(addresses ? { addresses: measuredAddresses(addresses) } : {}),
    ...(account ? { account: { ...account, listAll: measured('list', () => account.listAll()) } } : {}),
  }
}
