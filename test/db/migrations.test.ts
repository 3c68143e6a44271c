/** Migrations, and the databases that they begin from. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connectPostgres, type Database, type Sql } from '../../db/connection.ts'
import { findMigrationDifferences, migrate, migrateWhenReachable, readMigrations } from '../../db/migrations.ts'
import { schemaText } from '../../db/schema.ts'
import { nodeArguments } from '../../platform/launcher.ts'
import { createLog } from '../../platform/log.ts'
import { createEmptyDatabase } from '../support/api.ts'

async function emptyDatabase(): Promise<{ sql: Database; url: string; connect(): Database }> {
  const database = await createEmptyDatabase()
  const open: Database[] = []
  onTestFinished(async () => {
    await Promise.all(open.map((sql) => sql.end({ timeout: 5 })))
    await database.drop()
  })
  const connect = () => {
    const sql = connectPostgres(database.url, 2)
    open.push(sql)
    return sql
  }
  return { sql: connect(), url: database.url, connect }
}

const migrations = await readMigrations()
const names = migrations.map(({ name }) => name)
const [baseline] = migrations
if (!baseline) throw new Error('there is no migration')

test('each migration has its own number', () => {
  expect(new Set(names.map((name) => name.slice(0, 4))).size).toBe(names.length)
})

test('each migration says in its first line whether versions without it may run beside it', () => {
  const silent = migrations.filter(({ isCompatible }) => isCompatible === undefined)
  expect(
    silent.map(({ name }) => name),
    'begin with "-- compatible: REASON" or "-- incompatible: REASON" (docs/operating.md, "Upgrades")',
  ).toEqual([])
})

/** A database as version 0.1.0 left it, with rows in every table. */
async function databaseOfVersion010() {
  const database = await emptyDatabase()
  const rows = await readFile(new URL('databases/version-0.1.0.sql', import.meta.url), 'utf8')
  await database.sql.unsafe(`
    create table schema_migrations (
      name text primary key, checksum text not null, applied_at timestamptz not null default now(), compatible boolean);
    ${baseline?.text}; ${rows}`)
  return database
}

/** The rows of each table, as JSON in an order of its own. */
async function allRows(sql: Sql): Promise<Map<string, Record<string, unknown>[]>> {
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by relname`
  const rowsOf = ({ name }: { readonly name: string }) =>
    sql<{ row: Record<string, unknown> }[]>`select to_jsonb(t) as row from ${sql(name)} t order by to_jsonb(t)`
  return new Map(
    await Promise.all(tables.map(async (table) => [table.name, (await rowsOf(table)).map(({ row }) => row)] as const)),
  )
}

describe('a database of version 0.1.0', () => {
  test('is taken as the baseline: it keeps its rows in every table, and gets the schema of a new database', async () => {
    const { sql } = await databaseOfVersion010()
    const before = await allRows(sql)
    expect([...before].filter(([, rows]) => rows.length === 0)).toEqual([])
    expect(await migrate(sql)).toEqual(names)
    const after = await allRows(sql)
    before.delete('schema_migrations')
    for (const [table, rows] of before) {
      const dropped =
        table === 'users' ? ['stream_token'] : table === 'relay_sessions' ? ['pair_token', 'relay_ws_token'] : []
      const kept = rows.map((row) =>
        Object.fromEntries(Object.entries(row).filter(([name]) => !dropped.includes(name))),
      )
      // Not equal: later migrations add columns.
      expect(after.get(table), table).toMatchObject(kept)
    }
    expect(await schemaText(sql)).toBe(await readFile(new URL('../../db/schema.sql', import.meta.url), 'utf8'))
    expect(await migrate(sql)).toEqual([])
  })

  test('that still has a token in plain text is refused until that version has encrypted it', async () => {
    const { sql } = await databaseOfVersion010()
    await sql`update users set stream_token = 'Ab12Cd34', stream_token_sealed = null, stream_token_hash = null where email is null`
    await expect(migrate(sql)).rejects.toThrow('run version 0.1.0 until its job reseal_secrets has encrypted them')
    expect(await sql`select stream_token from users where email is null`).toEqual([{ streamToken: 'Ab12Cd34' }])
  })

  test('that it has not migrated itself is refused, and nothing changes', async () => {
    const { sql } = await databaseOfVersion010()
    await sql`delete from schema_migrations where name >= '0037'`
    await sql`alter table schema_migrations drop column compatible`
    const before = await allRows(sql)
    await expect(migrate(sql)).rejects.toThrow(
      'the database is from before version 0.1.0 (its last migration is 0012_relay_recovery.sql): start version 0.1.0 with it once',
    )
    expect(await allRows(sql)).toEqual(before)
    expect((await findMigrationDifferences(sql)).tooOld).toBe('0012_relay_recovery.sql')
  })
})

test('an empty database gets all migrations in order, and a second run applies none', async () => {
  const { sql } = await emptyDatabase()
  expect(await migrate(sql)).toEqual(names)
  expect(await migrate(sql)).toEqual([])
  const kept = await sql<{ name: string }[]>`select name from schema_migrations order by name`
  expect(kept.map((row) => row.name)).toEqual(names)
})

test('applying a migration a second time changes nothing', async () => {
  const { sql } = await emptyDatabase()
  for (const { text } of migrations) {
    await sql.unsafe(text)
    const once = await schemaText(sql)
    await sql.unsafe(text)
    expect(await schemaText(sql)).toBe(once)
  }
})

test('of processes that migrate at the same time, each migration is applied by one', async () => {
  const { connect } = await emptyDatabase()
  const applied = await Promise.all(Array.from({ length: 4 }, () => migrate(connect())))
  expect(applied.flat().toSorted()).toEqual(names)
})

test('a migration behind a backup blocks no reads for longer than two seconds, and is applied after the backup', async () => {
  const { sql, connect } = await emptyDatabase()
  await migrate(sql)
  const altering = migrations.findLast(({ text }) => /^alter table users\b/m.test(text))
  await sql`delete from schema_migrations where name = ${altering?.name ?? ''}`
  const backup = await connect().reserve()
  await backup.unsafe('begin; lock table users in access share mode')
  const waits: string[] = []
  let applied: Promise<string[]> = Promise.resolve([])
  await new Promise<void>((resolve) => {
    applied = migrate(sql, {
      onWait: ({ migration }) => {
        waits.push(migration)
        resolve()
      },
    })
  })
  expect(await connect()`select count(*)::int as count from users`).toEqual([{ count: 0 }])
  await backup.unsafe('commit')
  backup.release()
  expect(await applied).toEqual([altering?.name])
  expect(new Set(waits)).toEqual(new Set([altering?.name]))
})

test('a failed migration is rolled back, and the next run starts with it', async () => {
  const { sql } = await emptyDatabase()
  // A view with the name of a table that the baseline fills: it creates the tables before it and then fails.
  await sql`create view presence as select 1 as only_row`
  await expect(migrate(sql)).rejects.toThrow(`migration ${baseline.name} failed: `)
  expect(await sql`select from pg_class where relname = 'users'`).toHaveLength(0)
  await sql`drop view presence`
  expect(await migrate(sql)).toEqual(names)
})

test('npm run migrate exits with an error that names the failed migration', async () => {
  const database = await createEmptyDatabase()
  onTestFinished(() => database.drop())
  const sql = connectPostgres(database.url, 1)
  await sql`create view presence as select 1 as only_row`
  await sql.end({ timeout: 5 })
  const command = promisify(execFile)(process.execPath, nodeArguments('db/migrate.ts'), {
    env: { PATH: '/usr/bin:/bin', DATABASE_URL: database.url },
  })
  await expect(command).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`migration ${baseline.name} failed`),
  })
})

test('a migration that was changed after it was applied is refused by name', async () => {
  const { sql } = await emptyDatabase()
  await migrate(sql)
  await sql`update schema_migrations set checksum = 'another' where name = ${names[0] ?? ''}`
  await expect(migrate(sql)).rejects.toThrow(
    `migration ${names[0]} was changed after it was applied: restore it and write a new one`,
  )
})

/** As a newer version stores it. */
const insertNewer = async (sql: Sql, name: string, compatible: boolean | null) => {
  await sql`insert into schema_migrations (name, checksum, compatible) values (${name}, 'unknown', ${compatible})`
}

test.each([false, null])('a migration of a newer version whose mark is %s is refused by name', async (compatible) => {
  const { sql } = await emptyDatabase()
  await migrate(sql)
  await insertNewer(sql, '9998_beside.sql', true)
  await insertNewer(sql, '9999_the_future.sql', compatible)
  await expect(migrate(sql)).rejects.toThrow(
    'the database has migration 9999_the_future.sql, which this version lacks and cannot run beside: run the newer version',
  )
})

test('a version starts beside compatible migrations of a newer one, which it logs, and applies its own', async () => {
  const { sql, url } = await emptyDatabase()
  const own = await migrate(sql)
  const last = own.at(-1) ?? ''
  await insertNewer(sql, '9998_beside.sql', true)
  await insertNewer(sql, '9999_another.sql', true)
  await sql`delete from schema_migrations where name = ${last}`
  const lines: string[] = []
  await migrateWhenReachable(url, createLog('worker', 'info', { write: (line) => void lines.push(line) }))
  const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(logged.map(({ level, migrations, applied }) => ({ level, migrations, applied }))).toEqual([
    { level: 'warn', migrations: ['9998_beside.sql', '9999_another.sql'] },
    { level: 'info', applied: [last] },
  ])
})

test('npm run migrate of a version beside a newer one succeeds, and names the migrations', async () => {
  const { sql, url } = await emptyDatabase()
  await migrate(sql)
  await insertNewer(sql, '9999_beside.sql', true)
  const environment = { PATH: '/usr/bin:/bin', DATABASE_URL: url }
  const { stdout } = await promisify(execFile)(process.execPath, nodeArguments('db/migrate.ts'), { env: environment })
  expect(stdout).toBe(
    'A newer version, beside which this one may run, has applied 9999_beside.sql.\nThe database is up to date.\n',
  )
})

test('the mark of a migration is stored when it is applied', async () => {
  const { sql } = await emptyDatabase()
  await migrate(sql)
  const stored = await sql<{ name: string; compatible: boolean | null }[]>`
    select name, compatible from schema_migrations order by name`
  expect([...stored]).toEqual(migrations.map(({ name, isCompatible }) => ({ name, compatible: isCompatible })))
})

test('a refused migration releases the lock, so that other processes are refused instead of waiting', async () => {
  const { sql, connect } = await emptyDatabase()
  await migrate(sql)
  await sql`insert into schema_migrations (name, checksum) values ('9999_the_future.sql', 'unknown')`
  await expect(migrate(sql)).rejects.toThrow('9999_the_future.sql')
  await expect(migrate(connect())).rejects.toThrow('9999_the_future.sql')
})

test('every foreign key has an index that leads with its columns and covers every row that may reference', async () => {
  const { sql } = await emptyDatabase()
  await migrate(sql)
  const unindexed = await sql<{ key: string; columns: string }[]>`
    select c.conrelid::regclass::text as key,
      (select string_agg(a.attname, ', ' order by a.attnum) from pg_attribute a
        where a.attrelid = c.conrelid and a.attnum = any (c.conkey)) as columns
    from pg_constraint c
    where c.contype = 'f' and c.connamespace = 'public'::regnamespace and not exists (
      select from pg_index i where i.indrelid = c.conrelid and i.indisvalid
        -- As a set: an equality on each of the leading columns finds the rows, whatever their order.
        and (select array_agg(column_number order by column_number)
             from unnest((i.indkey::int2[])[0:cardinality(c.conkey) - 1]) as column_number)
          = (select array_agg(column_number order by column_number) from unnest(c.conkey) as column_number)
        and (i.indpred is null or exists (
          select from pg_attribute a where a.attrelid = c.conrelid and a.attnum = any (c.conkey)
            and pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', a.attname))))`
  expect([...unindexed]).toEqual([])
})
