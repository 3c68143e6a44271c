/** Checks whether the credentials and the settings of each region's provider work. */
import type { Sql } from '../db/connection.ts'
import { recordProviderCheck } from '../db/provider-checks.ts'
import type { Config } from '../platform/config/config.ts'
import type { Logger } from '../platform/log.ts'
import { withTimeout } from '../platform/timeout.ts'
import { type RelayProvider, RelayProviderError } from '../providers/relay/provider.ts'
import type { RelayProviders } from './relay-providers.ts'

export const checkMillisMax = 20_000

/** @returns what is wrong, without secrets; null when the provider accepts the credentials and the settings. */
export async function checkProvider(provider: RelayProvider, millisMax = checkMillisMax): Promise<string | null> {
  try {
    await withTimeout(millisMax, noAnswer(millisMax), () => provider.check())
    return null
  } catch (error) {
    if (error instanceof RelayProviderError || (error as Error).message === noAnswer(millisMax))
      return (error as Error).message
    // Other messages come from libraries, and may contain what they were called with.
    return `the check failed with ${error instanceof Error ? error.name : 'an unknown error'}`
  }
}

const noAnswer = (millis: number): string => `the provider did not answer within ${millis / 1000} s`

interface Deps {
  readonly config: Pick<Config, 'regions'>
  readonly sql: Sql
  readonly log: Logger
  readonly providers: RelayProviders
  readonly millisMax?: number
}

export interface ProviderChecks {
  /** Checks all regions at the same time and records the results. Concurrent callers share one run. */
  run(signal?: AbortSignal): Promise<void>
}

/** A check of this process that ended less than this ago is not repeated. */
const repeatMillisMin = 60_000

export function createProviderChecks(deps: Deps): ProviderChecks {
  let running: Promise<void> | undefined
  let endedAt = Number.NEGATIVE_INFINITY
  return {
    run: (signal) => {
      if (running) return running
      if (performance.now() - endedAt < repeatMillisMin) return Promise.resolve()
      running = checkAll(deps, signal)
        .then(() => {
          endedAt = performance.now()
        })
        .finally(() => {
          running = undefined
        })
      return running
    },
  }
}

async function checkAll({ config, sql, log, providers, millisMax }: Deps, signal?: AbortSignal): Promise<void> {
  const checkRegion = async ({ region, provider: kind }: Config['regions'][number]) => {
    const provider = providers.get(region)
    if (!provider) return
    const error = await checkProvider(provider, millisMax)
    if (signal?.aborted) return
    const hadFailed = await recordProviderCheck(sql, region, error)
    if (error !== null)
      log.error(
        { region, provider: kind, problem: error },
        "relays cannot be created: a region's provider check failed",
      )
    else if (hadFailed) log.info({ region, provider: kind }, "a region's provider check succeeds again")
  }
  // A worker that stops does not wait for a provider that hangs.
  const stopped = new Promise<void>((resolve) => {
    signal?.addEventListener('abort', () => resolve(), { once: true })
    if (signal?.aborted) resolve()
  })
  const checked = Promise.all(config.regions.map(checkRegion))
  // Its failure has no other handler when the signal comes first.
  checked.catch((error: unknown) => {
    if (!signal?.aborted) return
    log.warn({ err: error }, 'the result of a provider check could not be stored')
  })
  await Promise.race([checked, stopped])
}
