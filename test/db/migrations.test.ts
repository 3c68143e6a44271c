import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
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

const names = (await readMigrations()).map((one) => one.name)

test('each migration has its own number', () => {
  expect(new Set(names.map((name) => name.slice(0, 4))).size).toBe(names.length)
})

test('each migration from 0037 on says in its first line whether versions without it may run beside it', async () => {
  const silent = (await readMigrations()).filter(
    ({ name, isCompatible }) => name >= '0037' && isCompatible === undefined,
  )
  expect(
    silent.map(({ name }) => name),
    'begin with "-- compatible: REASON" or "-- incompatible: REASON" (docs/operating.md, "Upgrades")',
  ).toEqual([])
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
  for (const { text } of await readMigrations()) {
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
  const altering = (await readMigrations()).findLast(({ text }) => /^alter table users\b/m.test(text))
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
  // A view with the name of the table that the migration fills: it creates the other tables and then fails.
  await sql`create view reporting as select 1 as only_row`
  await expect(migrate(sql)).rejects.toThrow('migration 0003_processes.sql failed: ')
  expect(await sql`select from pg_class where relname = 'workers'`).toHaveLength(0)
  await sql`drop view reporting`
  expect(await migrate(sql)).toEqual(names.slice(names.indexOf('0003_processes.sql')))
})

test('npm run migrate exits with an error that names the failed migration', async () => {
  const database = await createEmptyDatabase()
  onTestFinished(() => database.drop())
  const sql = connectPostgres(database.url, 1)
  await sql`create view reporting as select 1 as only_row`
  await sql.end({ timeout: 5 })
  const command = promisify(execFile)(process.execPath, nodeArguments('db/migrate.ts'), {
    env: { PATH: '/usr/bin:/bin', DATABASE_URL: database.url },
  })
  await expect(command).rejects.toMatchObject({
    ...{ code: 1, stderr: expect.stringContaining('migration 0003_processes.sql failed') },
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

test('the mark of a migration is stored when it is applied, and those before the first mark have none', async () => {
  const { sql } = await emptyDatabase()
  await migrate(sql)
  const stored = await sql<{ name: string; compatible: boolean | null }[]>`
    select name, compatible from schema_migrations order by name`
  const marks = (await readMigrations()).map(({ name, isCompatible = null }) => ({
    name,
    compatible: name < '0037' ? null : isCompatible,
  }))
  expect(marks).toContainEqual({ name: '0037_compatible_migrations.sql', compatible: true })
  expect([...stored]).toEqual(marks)
})

test('a database whose table of migrations is older than the marks gets the pending ones, and is read by the checks', async () => {
  const { sql } = await emptyDatabase()
  await migrate(sql)
  await sql`alter table schema_migrations drop column compatible`
  await sql`delete from schema_migrations where name >= '0037'`
  await sql`insert into schema_migrations (name, checksum) values ('9999_the_future.sql', 'unknown')`
  await expect(migrate(sql)).rejects.toThrow('9999_the_future.sql')
  expect((await findMigrationDifferences(sql)).refused).toEqual(['9999_the_future.sql'])
  await sql`delete from schema_migrations where name = '9999_the_future.sql'`
  expect(await migrate(sql)).toEqual(names.filter((name) => name >= '0037'))
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
