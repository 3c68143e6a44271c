/** `npm run migrate`: applies the pending migrations to the database of `DATABASE_URL` and prints their names. */
import { readDatabaseUrl } from '../platform/config/config.ts'
import { ConfigError } from '../platform/config/environment.ts'
import { connectPostgres, type Database } from './connection.ts'
import { migrate } from './migrations.ts'
import { refuseUndeclaredPooling } from './pooling.ts'

let sql: Database | undefined
try {
  const url = readDatabaseUrl()
  sql = connectPostgres(url, 1)
  await refuseUndeclaredPooling(url)
  const applied = await migrate(sql, {
    onWait: ({ migration, pauseMillis }) =>
      process.stdout.write(
        `${migration} waits for a lock, which a backup may hold; the next attempt is in ${pauseMillis / 1000} s.\n`,
      ),
    onNewer: (names) =>
      process.stdout.write(`A newer version, beside which this one may run, has applied ${names.join(', ')}.\n`),
  })
  process.stdout.write(applied.length === 0 ? 'The database is up to date.\n' : `Applied ${applied.join(', ')}.\n`)
} catch (error) {
  const text =
    error instanceof ConfigError ? error.message : `The database could not be migrated: ${(error as Error).message}`
  process.stderr.write(`${text}\n`)
  process.exitCode = 1
} finally {
  // An open connection would keep the process alive for a minute.
  await sql?.end({ timeout: 5 })
}
