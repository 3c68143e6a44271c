/** The relay provider of each region, and metrics of its calls. */
import type { Config } from '../platform/config/config.ts'
import type { Logger } from '../platform/log.ts'
import { createLocalRelayProvider } from '../providers/relay/local.ts'
import type { RelayProvider } from '../providers/relay/provider.ts'
import type { WorkerMetrics } from './worker/metrics.ts'

export type RelayProviders = ReadonlyMap<string, RelayProvider>

/** @returns providers by region; regions of one kind share a provider. */
export function createRelayProviders(config: Config, log: Logger): RelayProviders {
  const hosts = new Map(config.regions.map(({ region, host }) => [region, host] as const))
  const local = createLocalRelayProvider({
    dataDir: config.dataDir,
    log,
    searchPath: config.relay.searchPath,
    hostOf: (region) => hosts.get(region) ?? '127.0.0.1',
  })
  return new Map(config.regions.map(({ region }) => [region, local] as const))
}

/** Counts and times each call of the providers. */
export function withCallMetrics(providers: RelayProviders, config: Config, metrics: WorkerMetrics): RelayProviders {
  const kinds = new Map(config.regions.map(({ region, provider }) => [region, provider] as const))
  return new Map(
    [...providers].map(
      ([region, provider]) => [region, withMetrics(provider, kinds.get(region) ?? 'unknown', metrics)] as const,
    ),
  )
}

function withMetrics(provider: RelayProvider, kind: string, metrics: WorkerMetrics): RelayProvider {
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
        throw error
      }
    }
  return {
    zones: provider.zones,
    listLagSeconds: provider.listLagSeconds,
    create: measured('create', (spec, signal) => provider.create(spec, signal)),
    describe: measured('describe', (instanceId) => provider.describe(instanceId)),
    destroy: measured('destroy', (instanceId, providerId) => provider.destroy(instanceId, providerId)),
    list: measured('list', (filter) => provider.list(filter)),
    check: measured('check', () => provider.check()),
  }
}
