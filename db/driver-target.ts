/** Where and how the driver connects, from the URL of the database. */
import { type ConnectionOptions, checkServerIdentity } from 'node:tls'
import { readDatabaseFiles } from '../platform/config/database-files.ts'
import type { DatabaseTarget } from '../platform/config/database-url.ts'

/**
 * Every value is given, since the driver would read missing ones from the variables of libpq. Throws for a file that
 * cannot be read.
 */
export const driverTarget = (target: DatabaseTarget) => ({
  host: target.hosts.map(({ name }) => name),
  port: target.hosts.map(({ port }) => port),
  ...(target.socketPath === undefined ? {} : { path: target.socketPath }),
  ...(target.user === undefined ? {} : { user: target.user }),
  ...(target.password === undefined ? {} : { pass: target.password }),
  ...(target.database === undefined ? {} : { database: target.database }),
  ssl: tlsOf(target),
  sslnegotiation: target.isTlsDirect ? ('direct' as const) : null,
  prepare: target.isPrepared,
  keep_alive: target.keepaliveSeconds ?? 60,
  ...(target.targetServer === undefined ? {} : { target_session_attrs: target.targetServer }),
  connection: { application_name: target.applicationName ?? 'relay-control-plane' },
})

function tlsOf({ tls, files, hosts }: DatabaseTarget): false | 'prefer' | ConnectionOptions {
  if (tls === 'off') return false
  if (tls === 'if_offered') return 'prefer'
  const { sslrootcert, sslcert, sslkey } = readDatabaseFiles(files)
  const [host, ...otherHosts] = hosts
  return {
    rejectUnauthorized: tls !== 'unchecked',
    ...(sslrootcert && { ca: sslrootcert }),
    ...(sslcert && { cert: sslcert }),
    ...(sslkey && { key: sslkey }),
    ...(tls === 'checked_without_host' ? { checkServerIdentity: () => undefined } : {}),
    // Of a host that is an IP address, Node would compare the name localhost.
    ...(tls === 'checked' && host && otherHosts.length === 0
      ? { checkServerIdentity: (_name: string, certificate) => checkServerIdentity(host.name, certificate) }
      : {}),
  }
}
