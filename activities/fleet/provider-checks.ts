/** Checks whether the credentials and the settings of each region's provider work. */
import type { Sql } from '../../db/connection.ts'
import { recordProviderCheck } from '../../db/operations/provider-checks.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import { withTimeout } from '../../platform/timeout.ts'
import { type RelayProvider, RelayProviderError } from '../../providers/relay/provider.ts'
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
  /**
   * Checks all regions at the same time and records the results. Concurrent callers share one run.
   * @param signal resolves the call: a worker that stops does not wait for a provider that hangs.
   */
  run(signal?: AbortSignal): Promise<void>
}

/** A check of this process that ended less than this ago is not repeated. */
const repeatMillisMin = 60_000

export function createProviderChecks(deps: Deps): ProviderChecks {
  let running: Promise<void> | undefined
  let endedAt = Number.NEGATIVE_INFINITY
  const start = async () => {
    try {
      await checkAll(deps)
      endedAt = performance.now()
    } finally {
      running = undefined
    }
  }
  return {
    run: (signal) => {
      if (!running && performance.now() - endedAt < repeatMillisMin) return Promise.resolve()
      running ??= start()
      // Its failure has no other handler when all callers have stopped.
      running.catch(() => undefined)
      return Promise.race([running, aborted(signal)])
    },
  }
}

const aborted = (signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve) => {
    signal?.addEventListener('abort', () => resolve(), { once: true })
    if (signal?.aborted) resolve()
  })

async function checkAll({ config, sql, log, providers, millisMax }: Deps): Promise<void> {
  const checkRegion = async ({ region, provider: kind }: Config['regions'][number]) => {
    const provider = providers.get(region)
    if (!provider) return
    const error = await checkProvider(provider, millisMax)
    const hadFailed = await recordProviderCheck(sql, region, error)
    if (error !== null)
      log.error(
        { region, provider: kind, problem: error },
        "relays cannot be created: a region's provider check failed",
      )
    else if (hadFailed) log.info({ region, provider: kind }, "a region's provider check succeeds again")
  }
  await Promise.all(config.regions.map(checkRegion))
}
