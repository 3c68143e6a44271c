/** The job that makes stable addresses lead to the present instances of their sessions, and releases unused ones. */
import pLimit from 'p-limit'
import type { Database } from '../../db/connection.ts'
import {
  clearSettledFailures,
  type DueAddress,
  deleteAddress,
  listDueAddresses,
  recordFailedAddress,
  recordMovedAddress,
} from '../../db/fleet/relay-addresses.ts'
import type { Logger } from '../../platform/log.ts'
import type { Job } from '../worker/jobs.ts'
import type { RelayProviders } from './relay-providers.ts'

interface Deps {
  readonly sql: Database
  readonly log: Logger
  readonly providers: RelayProviders
}

/** The most addresses of one run. The next run takes the rest. */
const addressesMax = 100
/** Providers limit calls. */
const concurrentCallsMax = 5

/** No job without a region in a cloud. */
export function relayAddressJobs({ sql, log, providers }: Deps): readonly Job[] {
  if (![...providers.values()].some(({ addresses }) => addresses)) return []
  const run = async () => {
    await clearSettledFailures(sql)
    const due = await listDueAddresses(sql, [...providers.keys()], addressesMax)
    await pLimit(concurrentCallsMax).map(due, (address) => updateAddress(address, { sql, log, providers }))
  }
  return [{ name: 'update_addresses', everySeconds: 1, runSecondsMax: 120, run }]
}

async function updateAddress(due: DueAddress, { sql, log, providers }: Deps): Promise<void> {
  const { region, addressId, host, target, isNamed } = due
  const addresses = providers.get(region)?.addresses
  if (!addresses) return
  try {
    if (target !== null) {
      await addresses.move?.(addressId, target.providerId)
      await recordMovedAddress(sql, due)
      log.info({ region, host, instance_id: target.instanceId }, 'a stable address leads to the present relay')
    } else {
      if (isNamed) throw new Error('a name still leads to the address')
      await addresses.release(addressId)
      await deleteAddress(sql, due)
      log.info({ region, host }, 'a stable address was released')
    }
  } catch (error) {
    const action = target === null ? 'released' : 'moved'
    log.warn({ err: error, region, host }, `a stable address could not be ${action}`)
    await recordFailedAddress(sql, due, (error as Error).message)
  }
}
