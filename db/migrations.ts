/**
 * Migrations are SQL files, applied in the order of their numbers, each in its own transaction. An applied file never
 * changes. The first line of each says whether versions without it may run beside it: `-- compatible: REASON` or
 * `-- incompatible: REASON`. The first file is the baseline: it creates what the 40 migrations before it created. A
 * database that has them gets it without running it, and an older one is refused.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../platform/log.ts'
import { connectPostgres, type Database, isOutage, type Sql } from './connection.ts'
import { refuseUndeclaredPooling } from './pooling.ts'

const directory = new URL('./migrations/', import.meta.url)
const baseline = '0046_baseline.sql'
/** The last of the migrations that the baseline replaced, and the last version that has them. */
const replacedLast = '0045_relay_programs.sql'
const replacedIn = '0.1.0'
/** Key of the advisory lock that lets one process migrate at a time. */
export const migrationLock = 7_205_941

interface Migration {
  readonly name: string
  readonly text: string
  readonly checksum: string
  /** Whether a process of a version without it may start beside it. Undefined when its first line does not say. */
  readonly isCompatible: boolean | undefined
}

export async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => /^\d{4}_[a-z_]+\.sql$/.test(name)).sort()
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, directory), 'utf8')
      const checksum = createHash('sha256').update(text).digest('hex')
      return { name, text, checksum, isCompatible: readCompatibility(text) }
    }),
  )
}

function readCompatibility(text: string): boolean | undefined {
  const [, word] = /^-- (compatible|incompatible): \S/.exec(text) ?? []
  return word === undefined ? undefined : word === 'compatible'
}

/**
 * A migration that waits for a lock blocks everything that wants the table after it, such as all requests behind a
 * backup.
 */
const lockMillisMax = 2000
const pauseMillis = (attempt: number): number => Math.min(500 * 2 ** attempt, 15_000)

interface MigrationReports {
  /** Called when a migration gave way, with the time until its next attempt. */
  readonly onWait?: (wait: { readonly migration: string; readonly pauseMillis: number }) => void
  /** Called with the names of migrations of a newer version, when this one may run beside all of them. */
  readonly onNewer?: (names: readonly string[]) => void
}

/**
 * Applies the pending migrations and returns their names. Of several processes that call it at the same time, each
 * migration is applied by one. Throws when an applied file has changed, or when the database has a migration that this
 * version lacks and that is not marked as compatible. One that cannot lock its tables within two seconds, or ends in a
 * deadlock, is tried again after a pause that grows.
 */
export async function migrate(sql: Database, reports: MigrationReports = {}): Promise<string[]> {
  const migrations = await readMigrations()
  const applied: string[] = []
  let isNewerReported = false
  const reportNewer = (names: readonly string[]) => {
    if (names.length > 0 && !isNewerReported) reports.onNewer?.(names)
    isNewerReported = true
  }
  for (let attempt = 0; ; ) {
    try {
      const name = await applyNext(sql, migrations, reportNewer)
      if (name === undefined) return applied
      applied.push(name)
      attempt = 0
    } catch (error) {
      if (!(error instanceof MigrationError) || !isLockMissing(error.cause)) throw error
      reports.onWait?.({ migration: error.migration, pauseMillis: pauseMillis(attempt) })
      await sleep(pauseMillis(attempt))
      attempt += 1
    }
  }
}

class MigrationError extends Error {
  constructor(
    readonly migration: string,
    cause: Error,
  ) {
    super(`migration ${migration} failed: ${cause.message}`, { cause })
  }
}

/**
 * In one transaction, since a pooler may give the next one another connection.
 * @returns undefined when none is pending.
 */
const applyNext = (
  sql: Database,
  migrations: readonly Migration[],
  reportNewer: (names: readonly string[]) => void,
): Promise<string | undefined> =>
  sql.begin(async (tx) => {
    await tx.unsafe('set local lock_timeout = 0; set local statement_timeout = 0')
    await tx`select pg_advisory_xact_lock(${migrationLock})`
    await tx`create table if not exists schema_migrations (
      name text primary key, checksum text not null, applied_at timestamptz not null default now(), compatible boolean)`
    const differences = compare(migrations, await selectApplied(tx))
    const { pending, isAtBaseline } = differences
    refuseDifferences(differences)
    reportNewer(differences.newer)
    const next = migrations.find(({ name }) => name === pending[0])
    if (!next) return undefined
    const { name, text, checksum, isCompatible = null } = next
    try {
      if (name !== baseline || !isAtBaseline) await tx.unsafe(`set local lock_timeout = ${lockMillisMax};\n${text}`)
      await tx`insert into schema_migrations (name, checksum, compatible) values (${name}, ${checksum}, ${isCompatible})`
    } catch (error) {
      throw new MigrationError(name, error as Error)
    }
    return name
  }) as Promise<string | undefined>

/** lock_not_available, deadlock_detected. */
const isLockMissing = (error: unknown): boolean =>
  ['55P03', '40P01'].includes(String((error as { code?: unknown }).code))

/** How the database differs from the migrations of this version, by their names. */
interface MigrationDifferences {
  readonly pending: readonly string[]
  /** Applied by a newer version, beside which this one may run. */
  readonly newer: readonly string[]
  /** Applied by a newer version that this one cannot run beside. */
  readonly refused: readonly string[]
  /** Changed after they were applied. */
  readonly changed: readonly string[]
  /** The last migration of a database from before the baseline, which this version cannot migrate. */
  readonly tooOld: string | undefined
}

/** Compares without waiting for a migration in progress. */
export async function findMigrationDifferences(sql: Sql): Promise<MigrationDifferences> {
  const [migrations, [table]] = await Promise.all([
    readMigrations(),
    sql<{ exists: boolean }[]>`select to_regclass('schema_migrations') is not null as exists`,
  ])
  return compare(migrations, table?.exists ? await selectApplied(sql) : [])
}

interface AppliedMigration {
  readonly name: string
  readonly checksum: string
  readonly compatible: boolean | null
}

/** The column is read from the whole row, since the table of a database that is too old may have none. */
const selectApplied = (sql: Sql): Promise<AppliedMigration[]> =>
  sql<AppliedMigration[]>`
    select name, checksum, (to_jsonb(m) ->> 'compatible')::boolean as compatible from schema_migrations m order by name`

interface Comparison extends MigrationDifferences {
  /** Whether the database has what the baseline creates, from the migrations that it replaced. */
  readonly isAtBaseline: boolean
}

function compare(migrations: readonly Migration[], applied: readonly AppliedMigration[]): Comparison {
  const checksums = new Map(migrations.map(({ name, checksum }) => [name, checksum] as const))
  const appliedNames = new Set(applied.map(({ name }) => name))
  const isAtBaseline = appliedNames.has(replacedLast)
  const unknown = applied.filter(({ name }) => name > baseline && !checksums.has(name))
  const namesOf = (some: readonly { readonly name: string }[]) => some.map(({ name }) => name)
  return {
    pending: namesOf(migrations.filter(({ name }) => !appliedNames.has(name))),
    newer: namesOf(unknown.filter(({ compatible }) => compatible === true)),
    refused: namesOf(unknown.filter(({ compatible }) => compatible !== true)),
    changed: namesOf(applied.filter(({ name, checksum }) => (checksums.get(name) ?? checksum) !== checksum)),
    tooOld: isAtBaseline ? undefined : applied.findLast(({ name }) => name < baseline)?.name,
    isAtBaseline,
  }
}

/**
 * Migrates as soon as the database is reachable. Uses a separate connection, since a migration may take longer than the
 * limits of the process's pool allow.
 */
export async function migrateWhenReachable(url: string, log: Logger): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const sql = connectPostgres(url, 1)
    try {
      await refuseUndeclaredPooling(url)
      const applied = await migrate(sql, {
        onWait: (wait) => log.warn(wait, 'a migration waits for the locks of its tables'),
        onNewer: (migrations) =>
          log.warn({ migrations }, 'the database has migrations of a newer version, which this version may run beside'),
      })
      if (applied.length > 0) log.info({ applied }, 'applied migrations')
      return
    } catch (error) {
      if (!isOutage(error)) throw error
      if (attempt % 10 === 0) log.warn({ err: error }, 'the database is not reachable; trying again')
      await sleep(Math.min(250 * 2 ** attempt, 2000))
    } finally {
      await sql.end({ timeout: 1 })
    }
  }
}

function refuseDifferences({ refused: [refused], changed: [changed], tooOld }: MigrationDifferences): void {
  if (tooOld !== undefined) {
    const { fault, fix } = tooOldTexts(tooOld)
    throw new Error(`${fault}: ${fix}`)
  }
  if (refused !== undefined)
    throw new Error(
      `the database has migration ${refused}, which this version lacks and cannot run beside: run the newer version`,
    )
  if (changed !== undefined)
    throw new Error(`migration ${changed} was changed after it was applied: restore it and write a new one`)
}

/** What is wrong with a database from before the baseline, and what to do. */
export const tooOldTexts = (lastMigration: string) => ({
  fault: `the database is from before version ${replacedIn} (its last migration is ${lastMigration})`,
  fix: `start version ${replacedIn} with it once, which migrates it, and then this version`,
})
