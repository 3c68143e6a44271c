/** Plain SQL files, applied in the order of their numbers, each in a transaction of its own and never changed afterwards. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../platform/log.ts'
import { connectPostgres, type Database, isOutage } from './connection.ts'

const directory = new URL('./migrations/', import.meta.url)
/** Any number, the same in every process: only one migrates at a time. */
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

/**
 * Brings the database up to date and answers the names of what was applied. Safe to run from many processes at once.
 * Throws when an applied file was changed since, or when the database is ahead of this program.
 */
export async function migrate(sql: Database): Promise<string[]> {
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
    const known = new Map(migrations.map((one) => [one.name, one.checksum] as const))
    for (const [name, checksum] of applied) refuseDrift(name, checksum, known.get(name))
    const pending = migrations.filter((one) => !applied.has(one.name))
    for (const { name, text, checksum } of pending) {
      await connection
        .unsafe(
          `begin;\n${text}\n;insert into schema_migrations (name, checksum) values ('${name}', '${checksum}');\ncommit;`,
        )
        .catch(async (error: unknown) => {
          await connection.unsafe('rollback')
          throw new Error(`migration ${name} failed: ${(error as Error).message}`, { cause: error })
        })
    }
    return pending.map((one) => one.name)
  } finally {
    await connection`select pg_advisory_unlock(${migrationLock})`.catch(() => {})
    await connection`reset all`.catch(() => {})
    connection.release()
  }
}

/**
 * The same, waiting for a database that is away for as long as it takes, and saying so. On a connection of its own, since a
 * migration may take longer than any query of the process's pool.
 */
export async function migrateWhenThere(url: string, log: Logger): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const sql = connectPostgres(url, 1)
    try {
      const applied = await migrate(sql)
      if (applied.length > 0) log.info({ applied }, 'migrated the database')
      return
    } catch (error) {
      if (!isOutage(error)) throw error
      if (attempt % 10 === 0) log.warn({ err: error }, 'the database is not there yet, trying again')
      await sleep(Math.min(250 * 2 ** attempt, 2000))
    } finally {
      await sql.end({ timeout: 1 })
    }
  }
}

function refuseDrift(name: string, applied: string, known: string | undefined): void {
  if (known === undefined)
    throw new Error(`the database has migration ${name}, which this version does not know: run the newer version`)
  if (known !== applied)
    throw new Error(`migration ${name} was changed after it was applied: restore it and write a new one`)
}
