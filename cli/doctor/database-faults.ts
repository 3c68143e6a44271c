/** Why the database cannot be used, and what to do about it. */

/** The driver's, Node's or the server's error; its message names hosts, roles and databases, but no password. */
export type DatabaseError = Error & { readonly code?: string }

export const describeFault = ({ message, code, name }: DatabaseError): string =>
  message === '' ? (code ?? name) : message

/** What matches the code and the message, `53300: too many connections`, and what to do. The first match counts. */
const fixes: readonly (readonly [fault: RegExp, fix: string])[] = [
  [
    /statement pooling mode/,
    'Use session or transaction mode of the pooler, or the server itself: the service needs transactions.',
  ],
  [
    /unsupported startup parameter/,
    'Let the pooler accept the parameter (ignore_startup_parameters), or connect to the server itself.',
  ],
  [
    /prepared statement "[^"]*" (does not exist|already exists)/,
    'Add pgbouncer=true to DATABASE_URL: a pooler shares its connections between transactions.',
  ],
  [
    /no pg_hba\.conf entry.*no encryption|SSL connection is required|SSL required|insecure connection/i,
    'Add sslmode=verify-full to DATABASE_URL, or sslmode=require where the certificate cannot be checked.',
  ],
  [
    /no pg_hba\.conf entry/,
    'Let the server accept this machine: pg_hba.conf, or the list of permitted addresses of its provider.',
  ],
  [/^SSL_NOT_SUPPORTED:/, 'Enable TLS in the server (ssl = on), or use sslmode=disable in a private network.'],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID:/,
    'Use the host that the certificate is for in DATABASE_URL, or sslmode=verify-ca with the sslrootcert of its authority.',
  ],
  [
    /^(CERT_HAS_EXPIRED|CERT_NOT_YET_VALID):/,
    'Renew the certificate of the server, or correct the clock of this machine.',
  ],
  [
    /^\w*(SELF_SIGNED_CERT|UNABLE_TO_)|^CERT_|^ERR_SSL_/,
    "Add sslrootcert=<PEM file> with the authority of the server's certificate to DATABASE_URL; its provider offers it.",
  ],
  [/^28|password|authentication|\brole\b|no such user/, 'Correct the user and the password in DATABASE_URL.'],
  [
    /^3D000:|database "[^"]*" does not exist|no such database/,
    'Create the database, or correct its name in DATABASE_URL.',
  ],
  [/^(ENOTFOUND|EAI_AGAIN):/, 'Correct the host in DATABASE_URL, or the name servers of this machine.'],
  [
    /^(CONNECT_TIMEOUT|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH):/,
    'Correct the host in DATABASE_URL, or let firewalls and the provider permit this machine.',
  ],
  [/^53300:/, 'Raise max_connections, or lower SVC_DATABASE_POOL of the programs.'],
  [
    /^08P01:.*(max_client_conn|query_wait_timeout|no more connections)/s,
    'Raise max_client_conn and default_pool_size of the pooler, or lower SVC_DATABASE_POOL of the programs.',
  ],
  [/^08P01:/, 'Start Postgres, or correct the server that the pooler leads to.'],
]

export function fixOf({ code = '', message }: DatabaseError, isEmbedded: boolean): string {
  const found = fixes.find(([fault]) => fault.test(`${code}: ${message}`))
  if (found) return found[1]
  return isEmbedded
    ? 'Run npm start again. Its log is postgres/postgres.log in the data folder.'
    : 'Start Postgres, or correct the host and port in DATABASE_URL.'
}
