/** When the API and the workers were available: a relay is not judged for time in which no process of a role was. */
import type { Logger } from '../platform/log.ts'
import { type PeriodicTask, startPeriodicTask } from '../platform/periodic-task.ts'
import type { Database, Sql } from './connection.ts'

/** `api`: health reports could be received. `worker`: workflows could run and instances be created. */
export type PresenceRole = 'api' | 'worker'

/** A role without a confirmation for this long counts as absent. */
const breakSecondsMax: Readonly<Record<PresenceRole, number>> = { api: 10, worker: 15 }

/**
 * The break after which a role counts as absent, in seconds. A small part of the time limit that it protects, so that shorter
 * breaks do not add up to the limit.
 */
export const presenceSeconds = (role: PresenceRole, limitSeconds: number): number =>
  Math.min(breakSecondsMax[role], limitSeconds / 3)

/** Records that a process of the role is available now. After a break the presence begins anew. */
export const confirmPresence = async (sql: Sql, role: PresenceRole, limitSeconds: number): Promise<void> => {
  await sql`
    update presence set seen_at = now(),
      since = case when seen_at < now() - make_interval(secs => ${presenceSeconds(role, limitSeconds)})
        then now() else since end
    where role = ${role}`
}

interface Options {
  readonly sql: Database
  readonly log: Logger
  readonly role: PresenceRole
  /** The time limit that the presence protects. */
  readonly limitSeconds: number
  /** Whether this process can do its work at this moment. */
  readonly isAvailable: () => boolean | Promise<boolean>
}

/** Confirms the presence of this process several times within the longest break. */
export const startPresence = ({ sql, log, role, limitSeconds, isAvailable }: Options): PeriodicTask =>
  startPeriodicTask({
    everySeconds: presenceSeconds(role, limitSeconds) / 4,
    log,
    failure: { message: 'the presence of this process could not be recorded', fields: { role } },
    run: async () => {
      if (await isAvailable()) await confirmPresence(sql, role, limitSeconds)
    },
  })
