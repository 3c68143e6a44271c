/** The Postgres server and its schema. */
import { connectPostgres, type Database, isTransactionPooled } from '../../db/connection.ts'
import { findMigrationDifferences, tooOldTexts } from '../../db/migrations.ts'
import {
  listInactiveSlots,
  listStandbys,
  readServerStatus,
  type ServerStatus,
} from '../../db/operations/server-status.ts'
import { findPooling, type Pooling, undeclaredPooling } from '../../db/pooling.ts'
import { parseDatabaseUrl } from '../../platform/config/database-url.ts'
import { type Check, combine, type Finding, fail, notChecked, warn } from './check.ts'
import { type DatabaseError, describeFault, fixOf } from './database-faults.ts'
import type { Target } from './target.ts'

/** The tests run with this major version. */
const testedVersion = 18
/** The part of the connections above which the rest may not be enough for another process. */
const connectionsPartMax = 0.8
const standbyLagSecondsMax = 60
/** Shorter than that of a check, so that a server that hangs is named. */
const limits = { statementMillisMax: 8000, lockMillisMax: 3000, idleTransactionMillisMax: 0, answerMillisMax: 9000 }

/** A connection pool that all checks share, or why there is none. */
export interface DatabaseAccess {
  readonly sql: Database | undefined
  /** Undefined when the server answers. */
  readonly obstacle: Promise<DatabaseError | undefined>
}

/** Opens connections at their first use. */
export function openDatabase(url: string | undefined): DatabaseAccess {
  if (url === undefined)
    return { sql: undefined, obstacle: Promise.resolve(new Error('DATABASE_URL is missing or wrong')) }
  const sql = connectPostgres(url, 4, limits)
  const obstacle = sql`select 1`.then(
    () => undefined,
    (error: DatabaseError) => error,
  )
  return { sql, obstacle }
}

/** Runs a check that needs the database; a fault of the database itself is left to the check `postgres`. */
export async function withDatabase(
  { sql, obstacle }: DatabaseAccess,
  check: (sql: Database) => Promise<Finding>,
): Promise<Finding> {
  if ((await obstacle) !== undefined || !sql) return notChecked('Postgres is not usable')
  return check(sql)
}

export const postgresChecks = (target: Target, database: DatabaseAccess): Check[] => [
  { name: 'postgres', run: () => checkServer(target, database) },
  { name: 'migrations', run: () => withDatabase(database, checkMigrations) },
]

async function checkServer({ databaseUrl, running }: Target, { sql, obstacle }: DatabaseAccess): Promise<Finding> {
  if (databaseUrl === undefined || !sql) return notChecked('DATABASE_URL is missing or wrong')
  const problem = await obstacle
  const isEmbedded = running?.servers.DATABASE_URL === databaseUrl
  if (problem !== undefined)
    return fail(
      `Postgres at ${hostOf(databaseUrl)} is not usable: ${describeFault(problem)}`,
      fixOf(problem, isEmbedded),
    )
  const [status, standbys, slots, pooling] = await Promise.all([
    readServerStatus(sql),
    listStandbys(sql),
    listInactiveSlots(sql),
    findPooling(databaseUrl),
  ])
  const { version, connections, connectionsMax } = status
  const problems = [
    ...findSettingProblems(status, isEmbedded),
    ...findPoolingProblems(pooling, status, isTransactionPooled(sql)),
    ...standbys
      .filter(({ lagSeconds }) => (lagSeconds ?? 0) > standbyLagSecondsMax)
      .map(({ name, lagSeconds }) =>
        warn(
          `the standby ${name} is ${Math.round(lagSeconds ?? 0)} s behind`,
          'Check the load and the network of the standby.',
        ),
      ),
    ...slots.map(({ name, keptBytes }) =>
      warn(
        `no standby reads the replication slot ${name}, which keeps ${Math.round((keptBytes ?? 0) / 2 ** 20)} MiB of write-ahead log`,
        'Start its standby, or drop the slot with pg_drop_replication_slot.',
      ),
    ),
  ]
  const replication =
    standbys.length === 0
      ? 'no standby'
      : `standbys: ${standbys.map(({ name, state }) => `${name} (${state})`).join(', ')}`
  return combine(
    `Postgres ${version} at ${hostOf(databaseUrl)}, ${connections} of ${connectionsMax} connections in use, ${replication}`,
    problems,
  )
}

function findSettingProblems(status: ServerStatus, isEmbedded: boolean) {
  const { version, majorVersion, connections, connectionsMax } = status
  const findUnsafe = (name: string, value: string) =>
    value === 'off' &&
    fail(
      `${name} is off: a crash of the machine can destroy the database`,
      `Set ${name} = on in postgresql.conf and restart Postgres.`,
    )
  return [
    status.isReadOnly && fail('the server is a standby or read-only', 'Let DATABASE_URL name the primary server.'),
    findUnsafe('fsync', status.fsync),
    findUnsafe('full_page_writes', status.fullPageWrites),
    status.synchronousCommit === 'off' &&
      warn('synchronous_commit is off: a crash loses what was confirmed just before', 'Set synchronous_commit = on.'),
    // The embedded server has no standby and no archive.
    status.walLevel === 'minimal' &&
      !isEmbedded &&
      warn(
        'wal_level is minimal: neither a standby nor an archive is possible',
        'Set wal_level = replica and restart Postgres.',
      ),
    majorVersion < testedVersion &&
      warn(
        `the version is ${version}, and the service is tested with ${testedVersion}`,
        `Upgrade Postgres to ${testedVersion}.`,
      ),
    connections > connectionsPartMax * connectionsMax &&
      warn(
        `${connections} of ${connectionsMax} connections are in use`,
        'Raise max_connections, or lower SVC_DATABASE_POOL of the programs.',
      ),
  ]
}

function findPoolingProblems(pooling: Pooling, { statementTimeout }: ServerStatus, isDeclared: boolean) {
  if (!isDeclared) return [pooling === 'transactions' && fail(undeclaredPooling.fault, undeclaredPooling.fix)]
  return [
    warn(
      'the pooler passes no NOTIFY on: changes reach pages and warm instances late',
      'Use session mode of the pooler or the server itself where this matters (docs/operating.md).',
    ),
    statementTimeout === '0' &&
      warn(
        'statements outside of transactions have no limit of time',
        'Set one for the role of DATABASE_URL: alter role … set statement_timeout = 20000.',
      ),
  ]
}

async function checkMigrations(sql: Database): Promise<Finding> {
  const { pending, newer, refused, changed, tooOld } = await findMigrationDifferences(sql)
  if (tooOld !== undefined) {
    const { fault, fix } = tooOldTexts(tooOld)
    return fail(fault, `Nothing is changed yet: ${fix}.`)
  }
  return combine('the schema has every migration of this version, and no other', [
    pending.length > 0 &&
      fail(
        `missing: ${formatNames(pending)}`,
        'Apply them: npm run migrate (the next start of the api or a worker does it too).',
      ),
    refused.length > 0 &&
      fail(`of a newer version: ${formatNames(refused)}`, 'Run the newer version of the service with this database.'),
    newer.length > 0 &&
      warn(
        `of a newer version, beside which this one may run: ${formatNames(newer)}`,
        'Nothing for now: this version works with them. Run the newer version when its fault is mended.',
      ),
    changed.length > 0 &&
      fail(
        `changed after they were applied: ${formatNames(changed)}`,
        'Restore these files, and write a new migration.',
      ),
  ])
}

const formatNames = (names: readonly string[]): string =>
  names.length > 5 ? `${names.slice(0, 5).join(', ')} and ${names.length - 5} more` : names.join(', ')

const hostOf = (url: string): string => {
  const { target } = parseDatabaseUrl(url)
  const hosts = target?.hosts.map(({ name, port }) => `${name}:${port}`).join(',')
  return `${target?.socketPath ?? hosts}/${target?.database ?? ''}`
}
