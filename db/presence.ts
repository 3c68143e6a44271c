/**
 * When api and worker processes were available. Time without any of a role does not count against a relay's deadlines.
 */
import { absenceSeconds, type Presence, type ProcessRole, type Reception } from '../domain/relay/health.ts'
import type { Logger } from '../platform/log.ts'
import { type PeriodicTask, startPeriodicTask } from '../platform/periodic-task.ts'
import type { Database, Fragment, Sql } from './connection.ts'

type PresenceRow<Name extends string, Value = number> = Readonly<
  Record<`${Name}ForSeconds` | `${Name}LastSeenSeconds`, Value>
>

/**
 * The presence of a role, as columns of a query that joins the table `presence` under the role's name.
 * @param at the time that the durations end at; by default that of the query.
 */
export const presenceColumns = (sql: Sql, role: ProcessRole | 'path', at: Fragment = sql`clock_timestamp()`) => sql`
  extract(epoch from ${at} - ${sql(role)}.since)::float8 as ${sql(`${role}_for_seconds`)},
  extract(epoch from ${at} - ${sql(role)}.seen_at)::float8 as ${sql(`${role}_last_seen_seconds`)}`

export const toPresence = <Role extends ProcessRole>(row: PresenceRow<Role>, role: Role): Presence => ({
  forSeconds: row[`${role}ForSeconds`],
  lastSeenSeconds: row[`${role}LastSeenSeconds`],
})

export type ReceptionRow = PresenceRow<'api'> & PresenceRow<'path', number | null>

/** When reports could be received, as columns of a query that joins `presence api` and {@link joinPath}. */
export const receptionColumns = (sql: Sql, at?: Fragment) => sql`
  ${presenceColumns(sql, 'api', at)}, ${presenceColumns(sql, 'path', at)}`

/** @param region the region of the reports, as an expression. */
export const joinPath = (sql: Sql, region: Fragment) => sql`left join report_paths path on path.region = ${region}`

export const toReception = ({ pathForSeconds, pathLastSeenSeconds, ...row }: ReceptionRow): Reception => ({
  api: toPresence(row, 'api'),
  path:
    pathForSeconds === null || pathLastSeenSeconds === null
      ? null
      : { forSeconds: pathForSeconds, lastSeenSeconds: pathLastSeenSeconds },
})

/** Records that a process of the role is available now. After an absence the presence begins again. */
const confirmPresence = async (sql: Sql, role: ProcessRole, limitSeconds: number): Promise<void> => {
  await sql`
    update presence set seen_at = now(),
      since = case when seen_at < now() - make_interval(secs => ${absenceSeconds(role, limitSeconds)})
        then now() else since end
    where role = ${role}`
}

interface Options {
  readonly sql: Database
  readonly log: Logger
  readonly role: ProcessRole
  /** The time limit that the presence protects. */
  readonly limitSeconds: number
  /** Whether this process can do its work at this moment. */
  readonly isAvailable: () => boolean | Promise<boolean>
}

/** Confirms the presence of this process several times within the longest break. */
export const startPresence = ({ sql, log, role, limitSeconds, isAvailable }: Options): PeriodicTask =>
  startPeriodicTask({
    everySeconds: absenceSeconds(role, limitSeconds) / 4,
    log,
    failure: { message: 'the presence of this process could not be recorded', fields: { role } },
    run: async () => {
      if (await isAvailable()) await confirmPresence(sql, role, limitSeconds)
    },
  })
