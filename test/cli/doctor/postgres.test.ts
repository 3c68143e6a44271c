/** The doctor's checks of Postgres: durability, standbys, migrations, keys. */
import { expect, onTestFinished, test } from 'vitest'
import { runChecks } from '../../../cli/doctor/check.ts'
import { openDatabase, postgresChecks } from '../../../cli/doctor/postgres.ts'
import { secretChecks } from '../../../cli/doctor/secrets.ts'
import { readTarget } from '../../../cli/doctor/target.ts'
import { connectPostgres, type Database } from '../../../db/connection.ts'
import { startEmbeddedPostgres } from '../../../platform/embedded/postgres.ts'
import { createLog } from '../../../platform/log.ts'
import { createSealing } from '../../../platform/sealing.ts'
import { createDatabase } from '../../support/api.ts'
import { testEnvironment } from '../../support/environment.ts'
import { makeFolder, removeFolder } from '../../support/folders.ts'
import { startOwnPostgres } from '../../support/own-postgres.ts'

async function givenDatabase(): Promise<{ url: string; sql: Database }> {
  const database = await createDatabase()
  const sql = connectPostgres(database.url, 1)
  onTestFinished(async () => {
    await sql.end({ timeout: 5 })
    await database.drop()
  })
  return { url: database.url, sql }
}

/** The results by the name of the check. */
async function examine(url: string, variables: Readonly<Record<string, string>> = {}) {
  const target = await readTarget(
    testEnvironment({ DATABASE_URL: url, SVC_API_URL: 'http://127.0.0.1:1', ...variables }),
  )
  const database = openDatabase(target.databaseUrl)
  try {
    const results = await runChecks([...postgresChecks(target, database), ...secretChecks(target, database)])
    return Object.fromEntries(results.map((result) => [result.name, result] as const))
  } finally {
    await database.sql?.end({ timeout: 5 })
  }
}

test('settings that lose data in a crash have failed or are warnings', async () => {
  // Without fsync, and with the wal_level of the embedded server.
  const { url } = await startOwnPostgres()
  const sql = connectPostgres(url, 1)
  await sql`alter database svc set synchronous_commit = off`
  await sql.end()
  expect((await examine(url)).postgres).toMatchObject({
    status: 'fail',
    detail: expect.stringMatching(/^fsync is off.*synchronous_commit is off.*wal_level is minimal/),
    fix: expect.stringContaining('Set fsync = on in postgresql.conf'),
  })
})

test('a replication slot that no standby reads is a warning', async () => {
  const dir = await makeFolder()
  const settings = { fsync: 'off', wal_level: 'replica', max_wal_senders: '2' }
  const server = await startEmbeddedPostgres({ dir, log: createLog('postgres', 'silent'), settings })
  onTestFinished(async () => {
    await server.stop()
    await removeFolder(dir)
  })
  const sql = connectPostgres(server.url, 1)
  await sql`select pg_create_physical_replication_slot('standby_1', true)`
  await sql.end()
  const { postgres } = await examine(server.url)
  expect(postgres?.detail).toMatch(/no standby reads the replication slot standby_1, which keeps \d+ MiB/)
  expect(postgres?.detail).not.toContain('wal_level')
  expect(postgres?.fix).toContain('pg_drop_replication_slot')
})

test('a database that only permits reading has failed', async () => {
  const { url, sql } = await givenDatabase()
  const [name] = new URL(url).pathname.slice(1).split('?')
  await sql.unsafe(`alter database ${name} set default_transaction_read_only = on`)
  expect((await examine(url)).postgres).toMatchObject({
    status: 'fail',
    detail: expect.stringContaining('the server is a standby or read-only'),
  })
})

test('migrations of a newer version, and changed ones, have failed', async () => {
  const { url, sql } = await givenDatabase()
  expect((await examine(url)).migrations).toMatchObject({ status: 'ok' })
  await sql`insert into schema_migrations (name, checksum) values ('9999_newer.sql', 'none')`
  await sql`update schema_migrations set checksum = 'other' where name like '0046_%'`
  expect((await examine(url)).migrations).toMatchObject({
    status: 'fail',
    detail: expect.stringMatching(
      /^of a newer version: 9999_newer\.sql; changed after they were applied: 0046_baseline\.sql$/,
    ),
    fix: expect.stringContaining('Run the newer version'),
  })
  await sql`drop table schema_migrations`
  expect((await examine(url)).migrations?.detail).toMatch(/^missing: 0046_baseline\.sql, /)
  const columns = 'name text primary key, checksum text not null, applied_at timestamptz not null default now()'
  await sql.unsafe(`create table schema_migrations (${columns})`)
  await sql`insert into schema_migrations (name, checksum) values ('0041_old.sql', 'none')`
  expect((await examine(url)).migrations).toMatchObject({
    status: 'fail',
    detail: 'the database is from before version 0.1.0 (its last migration is 0041_old.sql)',
    fix: expect.stringContaining('start version 0.1.0 with it once'),
  })
})

test('a database that a newer version has migrated, and that this one may run beside, is a warning', async () => {
  const { url, sql } = await givenDatabase()
  await sql`insert into schema_migrations (name, checksum, compatible) values ('9999_newer.sql', 'none', true)`
  expect((await examine(url)).migrations).toMatchObject({
    status: 'warn',
    detail: 'of a newer version, beside which this one may run: 9999_newer.sql',
  })
})

test('an encryption key with the same id and another value has failed', async () => {
  const { url, sql } = await givenDatabase()
  const [first, second] = [
    'qJ3vTn8yW1kRz5mXc7Lb0sHd2gFa9uPe4iOtYw6NQxE=',
    'zX9cVb7nM5aSd3fGh1jKl8qWe6rTy4uIo2pAs0dFgHk=',
  ]
  const id = '0b0c4d5e-8a1e-4b7d-9c05-2f6e1a7b4d90'
  const sealing = createSealing([{ id: 'k1', key: first }])
  const [sealed, hash] = [sealing.seal('token', [id, 'stream_token']), sealing.hash('token', 'stream_token')]
  await sql`insert into users (id, email, stream_token_sealed, stream_token_hash) values (${id}, 'one@example.com', ${sealed}, ${hash})`
  expect((await examine(url, { OAUTH_ENCRYPTION_KEY: `k1:${first}` }))['encryption-key']).toMatchObject({
    status: 'ok',
    detail: 'OAUTH_ENCRYPTION_KEY opens all 1 stored secrets',
  })
  expect((await examine(url, { OAUTH_ENCRYPTION_KEY: `k1:${second}` }))['encryption-key']).toMatchObject({
    status: 'fail',
    detail: 'the key k1 in OAUTH_ENCRYPTION_KEY has another value than the stored secrets',
  })
  const rotated = await examine(url, { OAUTH_ENCRYPTION_KEY: `k2:${second},k1:${first}` })
  expect(rotated['encryption-key']?.status).toBe('ok')
})
