/** The URL of the database: what the service and the scripts for backups accept of it. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { driverTarget } from '../../../db/driver-target.ts'
import { readConfig } from '../../../platform/config/config.ts'
import {
  type DatabaseTarget,
  honouredParameters,
  leftOutParameters,
  parseDatabaseUrl,
} from '../../../platform/config/database-url.ts'
import { testEnvironment } from '../../support/environment.ts'

const base = 'postgres://svc:pw@db.example.com:5433/relays'

function targetOf(url: string): DatabaseTarget {
  const { target, problems } = parseDatabaseUrl(url)
  expect(problems, url).toEqual([])
  return target as DatabaseTarget
}

test.each([
  ['Neon', 'sslmode=require&channel_binding=require', { tls: 'checked', isTransactionPooled: false }],
  ['Supabase, transaction mode', 'pgbouncer=true&connection_limit=1', { isTransactionPooled: true, isPrepared: false }],
  ['Supabase by Vercel', 'sslmode=require&supa=base-pooler.x&pgbouncer=true', { tls: 'unchecked', isPrepared: false }],
  ['DigitalOcean, Aiven, Heroku', 'sslmode=require', { tls: 'unchecked' }],
  [
    'Amazon RDS',
    'sslmode=verify-full&sslrootcert=/etc/rds.pem',
    { tls: 'checked', files: { sslrootcert: '/etc/rds.pem' } },
  ],
  ['Azure', 'ssl=true', { tls: 'checked' }],
  ['Prisma', 'schema=public&connect_timeout=10&pool_timeout=10', { tls: 'off' }],
  [
    'libpq',
    'gssencmode=disable&keepalives=1&keepalives_idle=30&keepalives_interval=10&keepalives_count=3',
    { keepaliveSeconds: 30 },
  ],
  ['libpq without keepalives', 'keepalives=0', { keepaliveSeconds: 0 }],
  ['libpq with the authorities of the system', 'sslrootcert=system', { tls: 'checked', files: {} }],
  ['libpq with an own authority', 'sslmode=require&sslrootcert=/ca.pem', { tls: 'checked_without_host' }],
  [
    'libpq with an own authority for any host',
    'sslmode=verify-ca&sslrootcert=/ca.pem',
    { tls: 'checked_without_host' },
  ],
  ['libpq with a public authority for any host', 'sslmode=verify-ca', { tls: 'checked' }],
  ['libpq with TLS at once', 'sslmode=verify-full&sslnegotiation=direct', { isTlsDirect: true }],
  ['libpq with TLS where it is offered', 'sslmode=prefer', { tls: 'if_offered' }],
  ['libpq with a failover', 'target_session_attrs=read-write', { targetServer: 'read-write' }],
  ['libpq with any server', 'target_session_attrs=any', { targetServer: undefined }],
  ['a name for the list of connections', 'application_name=relays%20eu', { applicationName: 'relays eu' }],
  ['a driver behind a pooler', 'prepare=false', { isPrepared: false, isTransactionPooled: false }],
  ['nothing', '', { tls: 'off', isPrepared: true, isTransactionPooled: false, files: {}, keepaliveSeconds: undefined }],
] as const)('the parameters that %s prints are read: %s', (_provider, query, expected) => {
  const target = targetOf(`${base}?${query}`)
  expect(target).toMatchObject(expected)
  expect(target).toMatchObject({
    hosts: [{ name: 'db.example.com', port: 5433 }],
    user: 'svc',
    password: 'pw',
    database: 'relays',
  })
})

test.each([
  ['postgresql://svc:p%40ss%2Fword@[::1]:5433/relays', { hosts: [{ name: '::1', port: 5433 }], password: 'p@ss/word' }],
  ['postgres://svc:p@ss:word@db/relays', { hosts: [{ name: 'db', port: 5432 }], password: 'p@ss:word' }],
  [
    'postgres://a:1,b,c:3/relays',
    {
      hosts: [
        { name: 'a', port: 1 },
        { name: 'b', port: 5432 },
        { name: 'c', port: 3 },
      ],
    },
  ],
  [
    'postgres://svc:pw@/relays?host=/cloudsql/p:r:one',
    { hosts: [], socketPath: '/cloudsql/p:r:one/.s.PGSQL.5432', user: 'svc' },
  ],
  ['postgres://%2Fvar%2Frun:6432/relays', { hosts: [], socketPath: '/var/run/.s.PGSQL.6432' }],
  [
    'postgres://db?user=svc&password=a%26b&dbname=relays&port=6000',
    { user: 'svc', password: 'a&b', hosts: [{ name: 'db', port: 6000 }] },
  ],
  ['postgres://svc@db', { database: undefined, password: undefined }],
] as const)('%s names its server and its account', (url, expected) => {
  expect(targetOf(url)).toMatchObject(expected)
})

test.each([
  'mysql://db/svc',
  'postgres://svc:100%@db/svc',
  'postgres://db:70000/svc',
  'postgres://db:5432x/svc',
  'postgres://svc:a/b@db/svc',
])('%s is refused with the form of a URL', (url) => {
  expect(parseDatabaseUrl(url).problems).toEqual([
    expect.stringContaining('write postgres://user:password@host:port/database'),
  ])
})

const refused = [
  ['sslmode=mandatory', 'use one of disable, allow, prefer, require, no-verify, verify-ca, verify-full'],
  ['channel_binding=require&sslmode=disable', 'add sslmode=verify-full'],
  ['gssencmode=require', 'the service encrypts with TLS (sslmode)'],
  ['schema=relays', 'alter role … set search_path'],
  ['options=-c%20statement_timeout%3D0', 'alter role … set …'],
  ['statement_timeout=0', 'limits of its own'],
  ['target_session_attrs=standby', 'since the service writes'],
  ['max=50', 'set SVC_DATABASE_POOL'],
  ['sslpassword=secret-value', 'a key without a password'],
  ['sslcrl=/crl.pem', 'which the service does not know: remove it'],
  ['sslcert=/client.pem', 'sslcert without sslkey'],
  ['sslnegotiation=direct', 'add sslmode=require'],
  ['pgbouncer=true&prepare=true', 'remove one of them'],
  ['__proto__=secret-value', 'which the service does not know: remove it'],
] as const

test.each(refused)('%s is refused at boot by its name, with what to do', (query, fix) => {
  const read = () => readConfig(testEnvironment({ DATABASE_URL: `${base}?${query}` }))
  expect(read).toThrow(fix)
  expect(read).toThrow(`DATABASE_URL has the parameter`)
  expect(read).toThrow(query.split('=')[0])
  expect(read).not.toThrow('secret-value')
})

test('certificates that cannot be read, or that are none, are refused at boot', () => {
  const read = (query: string) => () =>
    readConfig(testEnvironment({ DATABASE_URL: `${base}?sslmode=verify-full&${query}` }))
  expect(read('sslrootcert=/nowhere/ca.pem')).toThrow(
    'sslrootcert, whose file cannot be read (ENOENT): correct its path',
  )
  expect(read(`sslrootcert=${fileURLToPath(import.meta.url)}`)).toThrow(
    'sslrootcert, whose file is no certificate in PEM',
  )
})

/** A value of each parameter that the service accepts. */
const samples: Readonly<Record<string, string>> = {
  sslmode: 'require',
  ssl: 'no-verify',
  sslnegotiation: 'direct',
  sslrootcert: 'system',
  sslcert: '/a',
  sslkey: '/a',
  channel_binding: 'prefer',
  host: 'db',
  port: '1',
  keepalives: '0',
  keepalives_idle: '9',
  pgbouncer: 'false',
  target_session_attrs: 'primary',
  prepare: 'false',
  gssencmode: 'disable',
  options: 'endpoint=ep-one-1',
  client_encoding: 'utf8',
  load_balance_hosts: 'disable',
  schema: 'public',
  search_path: 'public',
  currentSchema: '',
}
const accepted = [...Object.keys(honouredParameters), ...Object.keys(leftOutParameters)].map((name) => {
  const context = name === 'sslnegotiation' ? '&sslmode=require' : name === 'sslcert' ? '&sslkey=/a' : ''
  return `${name}=${samples[name] ?? 'any'}${context}`
})

test.each(accepted)('%s is never sent to the server as a setting', (query) => {
  const { connection } = driverTarget({ ...targetOf(`${base}?${query}`), files: {} })
  expect(Object.keys(connection)).toEqual(['application_name'])
})

/** The variables of libpq that deploy/databases.sh sets for a URL. */
async function libpqOf(url: string): Promise<Readonly<Record<string, string>>> {
  const script = fileURLToPath(new URL('../../../deploy/databases.sh', import.meta.url))
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-euc', `program=test; . ${script}; on "$1" env`, 'test', url],
    {
      env: { PATH: '/usr/bin:/bin' },
    },
  )
  return Object.fromEntries(stdout.split('\n').flatMap((line) => (/^PG/.test(line) ? [line.split(/=(.*)/s)] : [])))
}

test('the scripts for backups accept every parameter that the service accepts', async () => {
  const answers = await Promise.all(accepted.map((query) => libpqOf(`${base}?${query}`).catch(({ stderr }) => stderr)))
  expect(answers.filter((answer) => typeof answer === 'string')).toEqual([])
})

test('the scripts for backups refuse by their names what the service refuses, and a pooler that shares connections', async () => {
  const names = ['statement_timeout', 'max', 'sslpassword', 'sslcrl', 'sslaccept', '__proto__', 'options', 'schema']
  for (const name of names)
    await expect(libpqOf(`${base}?${name}=-c`)).rejects.toMatchObject({
      stderr: expect.stringContaining(`parameter ${name}`),
    })
  await expect(libpqOf(`${base}?pgbouncer=true`)).rejects.toMatchObject({
    stderr: expect.stringContaining('name the server itself'),
  })
})

test.each([
  [
    'postgresql://svc:p%40s:s@[::1]:5433/relays',
    { PGUSER: 'svc', PGPASSWORD: 'p@s:s', PGHOST: '::1', PGPORT: '5433', PGDATABASE: 'relays' },
  ],
  [
    'postgres://svc@a:1,b/relays?target_session_attrs=primary',
    { PGHOST: 'a,b', PGPORT: '1,5432', PGTARGETSESSIONATTRS: 'primary' },
  ],
  ['postgres://svc:pw@/relays?host=/cloudsql/one', { PGHOST: '/cloudsql/one', PGDATABASE: 'relays' }],
  [`${base}?sslmode=verify-ca`, { PGSSLMODE: 'verify-full', PGSSLROOTCERT: 'system' }],
  [`${base}?ssl=true`, { PGSSLMODE: 'verify-full', PGSSLROOTCERT: 'system' }],
  [`${base}?sslmode=verify-full&sslrootcert=%2Fca.pem`, { PGSSLMODE: 'verify-full', PGSSLROOTCERT: '/ca.pem' }],
])('the scripts for backups connect as the service does: %s', async (url, expected) => {
  expect(await libpqOf(url)).toMatchObject(expected)
})
