/** Migrations are SQL files, applied in the order of their numbers, each in its own transaction. An applied file never changes. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../platform/log.ts'
import { connectPostgres, type Database, isOutage, type Sql } from './connection.ts'

const directory = new URL('./migrations/', import.meta.url)
/** Key of the advisory lock that lets one process migrate at a time. */
export const migrationLock = 7_205_941

export interface Migration {
  readonly name: string
  readonly text: string
  readonly checksum: string
}

export async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => /^\d{4}_[a-z_]+\.sql$/.test(name)).sort()
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, directory), 'utf8')
      return { name, text, checksum: createHash('sha256').update(text).digest('hex') }
    }),
  )
}

/** A migration that waits for a lock blocks everything that wants the table after it, such as all requests behind a backup. */
const lockMillisMax = 2000
const pauseMillis = (attempt: number): number => Math.min(500 * 2 ** attempt, 15_000)

/** Called when a migration gave way, with the time until its next attempt. */
export type ReportWait = (wait: { readonly migration: string; readonly pauseMillis: number }) => void

/**
 * Applies the pending migrations and returns their names. Several processes may call it at the same time. Throws when an applied
 * file has changed, or when the database has a migration that this version lacks. One that cannot lock its tables within two
 * seconds, or ends in a deadlock, is tried again after a pause that grows.
 */
export async function migrate(sql: Database, reportWait: ReportWait = () => {}): Promise<string[]> {
  const migrations = await readMigrations()
  const connection = await sql.reserve()
  try {
    await connection`set lock_timeout = 0`
    await connection`set statement_timeout = 0`
    await connection`select pg_advisory_lock(${migrationLock})`
    await connection`create table if not exists schema_migrations (
      name text primary key, checksum text not null, applied_at timestamptz not null default now())`
    const applied = new Map(
      (await connection<{ name: string; checksum: string }[]>`select name, checksum from schema_migrations`).map(
        (row) => [row.name, row.checksum] as const,
      ),
    )
    const checksums = new Map(migrations.map((one) => [one.name, one.checksum] as const))
    for (const [name, checksum] of applied) refuseDrift(name, checksum, checksums.get(name))
    const pending = migrations.filter((one) => !applied.has(one.name))
    await connection.unsafe(`set lock_timeout = ${lockMillisMax}`)
    for (const one of pending) await applyWithPauses(connection, one, reportWait)
    return pending.map((one) => one.name)
  } finally {
    await connection`select pg_advisory_unlock(${migrationLock})`.catch(() => {})
    await connection`reset all`.catch(() => {})
    connection.release()
  }
}

async function applyWithPauses(connection: Sql, migration: Migration, reportWait: ReportWait): Promise<void> {
  const { name, text, checksum } = migration
  for (let attempt = 0; ; attempt += 1) {
    try {
      await connection.unsafe(
        `begin;\n${text}\n;insert into schema_migrations (name, checksum) values ('${name}', '${checksum}');\ncommit;`,
      )
      return
    } catch (error) {
      await connection.unsafe('rollback')
      if (!isLockMissing(error))
        throw new Error(`migration ${name} failed: ${(error as Error).message}`, { cause: error })
    }
    reportWait({ migration: name, pauseMillis: pauseMillis(attempt) })
    await sleep(pauseMillis(attempt))
  }
}

/** lock_not_available, deadlock_detected. */
const isLockMissing = (error: unknown): boolean =>
  ['55P03', '40P01'].includes(String((error as { code?: unknown }).code))

/** How the database differs from the migrations of this version, by their names. */
export interface MigrationDifferences {
  readonly pending: readonly string[]
  /** Applied by a newer version. */
  readonly unknown: readonly string[]
  /** Changed after they were applied. */
  readonly changed: readonly string[]
}

/** Compares without waiting for a migration in progress. */
export async function findMigrationDifferences(sql: Sql): Promise<MigrationDifferences> {
  const [migrations, [table]] = await Promise.all([
    readMigrations(),
    sql<{ exists: boolean }[]>`select to_regclass('schema_migrations') is not null as exists`,
  ])
  const rows = table?.exists
    ? await sql<{ name: string; checksum: string }[]>`select name, checksum from schema_migrations order by name`
    : []
  const applied = new Map(rows.map(({ name, checksum }) => [name, checksum] as const))
  const names = new Set(migrations.map(({ name }) => name))
  return {
    pending: migrations.filter(({ name }) => !applied.has(name)).map(({ name }) => name),
    unknown: rows.filter(({ name }) => !names.has(name)).map(({ name }) => name),
    changed: migrations
      .filter(({ name, checksum }) => applied.has(name) && applied.get(name) !== checksum)
      .map(({ name }) => name),
  }
}

/**
 * Migrates as soon as the database is reachable. Uses a separate connection, since a migration may take longer than the limits
 * of the process's pool allow.
 */
export async function migrateWhenReachable(url: string, log: Logger): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const sql = connectPostgres(url, 1)
    try {
      const applied = await migrate(sql, (wait) => log.warn(wait, 'a migration waits for the locks of its tables'))
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

function refuseDrift(name: string, appliedChecksum: string, checksum: string | undefined): void {
  if (checksum === undefined)
    throw new Error(`the database has migration ${name}, which this version lacks: run the newer version`)
  if (checksum !== appliedChecksum)
    throw new Error(`migration ${name} was changed after it was applied: restore it and write a new one`)
}
