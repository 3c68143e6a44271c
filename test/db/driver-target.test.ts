/** Connections by the URL of the database: TLS, certificates, settings. */
import { beforeAll, expect, inject, test } from 'vitest'
import { runChecks } from '../../cli/doctor/check.ts'
import { openDatabase, postgresChecks } from '../../cli/doctor/postgres.ts'
import { readTarget } from '../../cli/doctor/target.ts'
import { connectPostgres } from '../../db/connection.ts'
import { readDatabaseUrl } from '../../platform/config/config.ts'
import { testEnvironment } from '../support/environment.ts'
import { eventually } from '../support/relays.ts'
import { startTlsPostgres } from '../support/tls-postgres.ts'

let server: Awaited<ReturnType<typeof startTlsPostgres>>
beforeAll(async () => {
  server = await startTlsPostgres()
  await eventually(
    () => encryptionOf(at('localhost', 'sslmode=require')).catch(() => undefined),
    (isEncrypted) => isEncrypted === true,
  )
})

function at(host: string, query: string): string {
  const url = new URL(server.url)
  url.hostname = host
  url.search = query.replace('<file>', server.certificateFile)
  return url.href
}

/** Whether the server says that the connection is encrypted. */
async function encryptionOf(url: string): Promise<boolean | undefined> {
  const sql = connectPostgres(readDatabaseUrl({ DATABASE_URL: url }), 1)
  try {
    const [row] = await sql<{ ssl: boolean }[]>`select ssl from pg_stat_ssl where pid = pg_backend_pid()`
    return row?.ssl
  } finally {
    await sql.end({ timeout: 0 })
  }
}

async function adviceOf(url: string): Promise<string> {
  const target = await readTarget(testEnvironment({ DATABASE_URL: url }))
  const database = openDatabase(target.databaseUrl)
  try {
    const results = await runChecks(postgresChecks(target, database))
    const { status, detail, fix } = results.find(({ name }) => name === 'postgres') ?? {}
    return `${status}: ${detail} ${fix}`
  } finally {
    await database.sql?.end({ timeout: 0 })
  }
}

test.each([
  ['localhost', '', false],
  ['localhost', 'sslmode=disable', false],
  ['localhost', 'sslmode=prefer', true],
  ['localhost', 'sslmode=require&gssencmode=disable&keepalives_idle=30&connect_timeout=10&schema=public', true],
  ['localhost', 'ssl=no-verify', true],
  ['127.0.0.1', 'sslmode=require&sslrootcert=<file>', true],
  ['127.0.0.1', 'sslmode=verify-ca&sslrootcert=<file>', true],
  ['localhost', 'sslmode=verify-full&sslrootcert=<file>', true],
  ['localhost', 'sslmode=verify-full&sslnegotiation=direct&sslrootcert=<file>', true],
  ['localhost', 'sslmode=require&channel_binding=require&sslrootcert=<file>', true],
])('a connection to %s with %s is encrypted: %s', async (host, query, isEncrypted) => {
  expect(await encryptionOf(at(host, query))).toBe(isEncrypted)
})

test.each([
  ['localhost', 'sslmode=verify-full', 'Add sslrootcert='],
  ['localhost', 'sslrootcert=system', 'Add sslrootcert='],
  ['localhost', 'sslmode=require&channel_binding=require', 'Add sslrootcert='],
  ['127.0.0.1', 'sslmode=verify-full&sslrootcert=<file>', 'Use the host that the certificate is for'],
])(
  'a certificate of %s that fails the check of %s is refused, and the doctor says what to do',
  async (host, query, fix) => {
    await expect(encryptionOf(at(host, query))).rejects.toThrow(/certificate|altnames/)
    expect(await adviceOf(at(host, query))).toContain(fix)
  },
)

test.each([
  ['sslmode=require', 'Enable TLS in the server (ssl = on)'],
  ['user=stranger', 'Correct the user and the password'],
  ['dbname=none_such', 'Create the database, or correct its name'],
  ['host=nowhere.invalid', 'Correct the host in DATABASE_URL, or the name servers'],
  ['port=1', 'Start Postgres, or correct the host and port'],
])('of a server without TLS the doctor answers %s with a fitting advice', async (query, fix) => {
  const url = new URL(inject('postgresUrl'))
  url.search = query
  expect(await adviceOf(url.href)).toContain(fix)
})

test('only the name of the application is sent with the start of a connection', async () => {
  const sql = connectPostgres(at('localhost', 'application_name=relays%20eu&schema=public&gssencmode=disable'), 1)
  const rows = await sql<{ name: string; setting: string }[]>`
    select name, setting from pg_settings where source = 'client' and name not in ('DateStyle', 'client_encoding')`
  await sql.end({ timeout: 5 })
  expect(rows).toEqual([{ name: 'application_name', setting: 'relays eu' }])
})
