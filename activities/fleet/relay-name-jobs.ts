/** The job that makes the names of relays lead to the present instances of their connections. */
import pLimit from 'p-limit'
import type { Database } from '../../db/connection.ts'
import {
  beginWriting,
  type DueName,
  deleteName,
  hasRetiredInstance,
  isUnownedForLong,
  listDueNames,
  recordFailedName,
  recordShownName,
} from '../../db/fleet/relay-names.ts'
import { triggerJob } from '../../db/operations/jobs.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { RelayNames } from '../../providers/dns/dynamic-updates.ts'
import { createRelayNames } from '../../providers/dns/relay-names.ts'
import type { Job } from '../worker/jobs.ts'

interface Deps {
  readonly config: Pick<Config, 'relayNames' | 'fleet'>
  readonly sql: Database
  readonly log: Logger
}

/** The most names of one run. The next run takes the rest, the longest due first. */
const namesMax = 500
const concurrentUpdatesMax = 8

/** No job without a domain. */
export function relayNameJobs({ config, sql, log }: Deps): readonly Job[] {
  const names = createRelayNames(config)
  if (names === undefined) return []
  const run = async () => {
    const due = await listDueNames(sql, namesMax)
    await pLimit(concurrentUpdatesMax).map(due, (name) => updateName(name, names, { sql, log }))
  }
  return [{ name: 'update_names', everySeconds: 1, runSecondsMax: 120, run }]
}

async function updateName(due: DueName, names: RelayNames, { sql, log }: Pick<Deps, 'sql' | 'log'>): Promise<void> {
  const { label, v4, v6, isUnowned } = due
  try {
    if (isUnowned) {
      if (!(await isUnownedForLong(sql, label))) return
      await names.remove(label)
      await deleteName(sql, label)
    } else if (await beginWriting(sql, due)) {
      await names.point(label, { v4, v6 })
      await recordShownName(sql, due, names.domain)
      // A name that led to a replaced machine has kept that from its end, and it may still take streams.
      if (due.sessionId !== null && (await hasRetiredInstance(sql, due.sessionId)))
        await triggerJob(sql, 'sweep_orphans')
    }
  } catch (error) {
    log.warn({ err: error, label }, 'the name of a relay could not be written')
    await recordFailedName(sql, due, (error as Error).message)
  }
}
