/** Compares the instances that a provider lists with the rows, and destroys those without an owner. */
import pLimit from 'p-limit'
import type { Database } from '../../db/connection.ts'
import { markInstanceGone } from '../../db/fleet/instances.ts'
import { recordObservations } from '../../db/fleet/orphans.ts'
import { hasAddresses, recordListedAddresses } from '../../db/fleet/relay-addresses.ts'
import { listNamedInstances } from '../../db/fleet/relay-names.ts'
import { planSweep } from '../../domain/fleet/orphan-sweep.ts'
import type { Logger } from '../../platform/log.ts'
import { withTimeout } from '../../platform/timeout.ts'
import type { ListedAddress, RelayInstance, RelayProvider } from '../../providers/relay/provider.ts'

/** A call that hangs is given up, and the next sweep repeats it. */
export interface SweepLimits {
  /** Shorter than the time after which an instance that is not listed counts as gone. */
  readonly listMillisMax: number
  readonly destroyMillisMax: number
  /** No destruction starts after this time. The next sweep continues. */
  readonly regionMillisMax: number
}

export const sweepLimits: SweepLimits = { listMillisMax: 45_000, destroyMillisMax: 60_000, regionMillisMax: 120_000 }

const concurrentDestructionsMax = 5

export interface SweepDeps {
  readonly sql: Database
  readonly log: Logger
  readonly provider: RelayProvider
  readonly region: string
  readonly limits?: SweepLimits
  /** Aborted when nothing more may be destroyed. */
  readonly signal?: AbortSignal | undefined
}

export interface SweepOutcome {
  readonly destroyed: readonly string[]
  /** Instances that could not be destroyed, with the reason. */
  readonly failed: ReadonlyMap<string, Error>
  readonly waiting: readonly string[]
  /** Instances that may carry a stream of an earlier epoch. */
  readonly kept: readonly string[]
  /** Nothing was destroyed, since so many instances seem to have no owner. */
  readonly isBlocked: boolean
}

/** The region's instances. Rejects when the provider does not answer in time. */
export const listRegion = ({
  provider,
  region,
  limits = sweepLimits,
}: Pick<SweepDeps, 'provider' | 'region' | 'limits'>): Promise<RelayInstance[]> =>
  withTimeout(limits.listMillisMax, `the list of region ${region} took too long`, async () =>
    (await provider.list()).filter((instance) => instance.region === region),
  )

/**
 * The region's stable addresses. Regions without any ask no provider, whose credentials may not permit it.
 * Rejects when the provider does not answer in time.
 */
export async function listAddresses({
  sql,
  provider: { addresses },
  region,
  limits = sweepLimits,
}: SweepDeps): Promise<ListedAddress[]> {
  if (!addresses?.areReserved && !(await hasAddresses(sql, region))) return []
  const list = async () => (await addresses?.list()) ?? []
  return withTimeout(limits.listMillisMax, `the list of addresses of region ${region} took too long`, list)
}

/** Stores what the list of addresses shows. The job `update_addresses` releases those that are unused. */
export const sweepAddresses = ({ sql, region, provider: { addresses } }: SweepDeps, listed: readonly ListedAddress[]) =>
  recordListedAddresses(sql, { region, listed, canMove: addresses?.move !== undefined })

/**
 * Stores what the list shows, and destroys the instances that are due. Safe to repeat and to run twice at the same
 * time.
 * @param options.force also destroys when most instances seem to have no owner.
 */
export async function sweepRegion(
  deps: SweepDeps,
  listed: readonly RelayInstance[],
  options: { readonly force?: boolean } = {},
): Promise<SweepOutcome> {
  const { sql, log, provider, region } = deps
  const unowned = await recordObservations(sql, { region, listed, listLagSeconds: provider.listLagSeconds })
  const plan = planSweep(unowned, listed.length, options)
  if (plan.isBlocked)
    log.error(
      { region, unowned: plan.due, listed: listed.length },
      'most instances of a region seem to have no owner, so none was destroyed: check that the database is the right one, and see docs/operating.md ("The fleet")',
    )
  // The next tenant of their address would get the stream.
  const named = await listNamedInstances(sql, plan.destroy)
  const due = plan.destroy.filter((instanceId) => !named.has(instanceId))
  const { destroyed, failed } = await destroyAll(deps, listed, due)
  return { destroyed, failed, waiting: plan.waiting, kept: plan.kept, isBlocked: plan.isBlocked }
}

async function destroyAll(
  { sql, log, provider, region, limits = sweepLimits, signal }: SweepDeps,
  listed: readonly RelayInstance[],
  instanceIds: readonly string[],
): Promise<Pick<SweepOutcome, 'destroyed' | 'failed'>> {
  const providerIds = new Map(listed.map(({ instanceId, providerId }) => [instanceId, providerId]))
  const destroyed: string[] = []
  const failed = new Map<string, Error>()
  const until = performance.now() + limits.regionMillisMax
  const destroy = async (instanceId: string) => {
    if (signal?.aborted || performance.now() >= until) return
    log.warn({ region, instance_id: instanceId }, 'destroying an instance without an owner')
    try {
      await withTimeout(limits.destroyMillisMax, `the destruction of ${instanceId} took too long`, () =>
        provider.destroy(instanceId, providerIds.get(instanceId)),
      )
      await markInstanceGone(sql, instanceId)
      destroyed.push(instanceId)
    } catch (error) {
      log.warn({ err: error, region, instance_id: instanceId }, 'an instance without an owner could not be destroyed')
      failed.set(instanceId, error instanceof Error ? error : new Error(String(error)))
    }
  }
  await pLimit(concurrentDestructionsMax).map(instanceIds, destroy)
  return { destroyed, failed }
}
