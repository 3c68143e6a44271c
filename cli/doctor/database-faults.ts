/** Why the database cannot be used, and what to do about it. */

/** The driver's, Node's or the server's error; its message names hosts, roles and databases, but no password. */
export type DatabaseError = Error & { readonly code?: string }

export const describeFault = ({ message, code, name }: DatabaseError): string =>
  message === '' ? (code ?? name) : message

interface Fault {
  readonly matches: (error: DatabaseError) => boolean
  readonly fix: string
}

const says = (pattern: RegExp) => (error: DatabaseError) => pattern.test(error.message)
const hasCode =
  (...codes: readonly string[]) =>
  ({ code }: DatabaseError) =>
    code !== undefined && codes.includes(code)

/** The first one that matches counts. */
const faults: readonly Fault[] = [
  {
    matches: says(/statement pooling mode/),
    fix: 'Use session or transaction mode of the pooler, or the server itself: the service needs transactions.',
  },
  {
    matches: says(/unsupported startup parameter/),
    fix: 'Let the pooler accept the parameter (ignore_startup_parameters), or connect to the server itself.',
  },
  {
    matches: says(/prepared statement "[^"]*" (does not exist|already exists)/),
    fix: 'Add pgbouncer=true to DATABASE_URL: a pooler shares its connections between transactions.',
  },
  {
    matches: says(/no pg_hba\.conf entry.*no encryption|SSL connection is required|SSL required|insecure connection/i),
    fix: 'Add sslmode=verify-full to DATABASE_URL, or sslmode=require where the certificate cannot be checked.',
  },
  {
    matches: says(/no pg_hba\.conf entry/),
    fix: 'Let the server accept this machine: pg_hba.conf, or the list of permitted addresses of its provider.',
  },
  {
    matches: hasCode('SSL_NOT_SUPPORTED'),
    fix: 'Enable TLS in the server (ssl = on), or use sslmode=disable in a private network.',
  },
  {
    matches: hasCode('ERR_TLS_CERT_ALTNAME_INVALID'),
    fix: 'Use the host that the certificate is for in DATABASE_URL, or sslmode=verify-ca with the sslrootcert of its authority.',
  },
  {
    matches: hasCode('CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'),
    fix: 'Renew the certificate of the server, or correct the clock of this machine.',
  },
  {
    matches: ({ code = '' }) => /SELF_SIGNED_CERT|UNABLE_TO_|^CERT_|^ERR_SSL_/.test(code),
    fix: "Add sslrootcert=<PEM file> with the authority of the server's certificate to DATABASE_URL; its provider offers it.",
  },
  {
    matches: ({ code = '', message }) =>
      code.startsWith('28') || /password|authentication|\brole\b|no such user/.test(message),
    fix: 'Correct the user and the password in DATABASE_URL.',
  },
  {
    matches: ({ code, message }) =>
      code === '3D000' || /database "[^"]*" does not exist|no such database/.test(message),
    fix: 'Create the database, or correct its name in DATABASE_URL.',
  },
  {
    matches: hasCode('ENOTFOUND', 'EAI_AGAIN'),
    fix: 'Correct the host in DATABASE_URL, or the name servers of this machine.',
  },
  {
    matches: hasCode('CONNECT_TIMEOUT', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'),
    fix: 'Correct the host in DATABASE_URL, or let firewalls and the provider permit this machine.',
  },
  {
    matches: hasCode('53300'),
    fix: 'Raise max_connections, or lower SVC_DATABASE_POOL of the programs.',
  },
  {
    matches: ({ code, message }) =>
      code === '08P01' && /max_client_conn|query_wait_timeout|no more connections/.test(message),
    fix: 'Raise max_client_conn and default_pool_size of the pooler, or lower SVC_DATABASE_POOL of the programs.',
  },
  {
    matches: hasCode('08P01'),
    fix: 'Start Postgres, or correct the server that the pooler leads to.',
  },
]

export function fixOf(error: DatabaseError, isEmbedded: boolean): string {
  const fault = faults.find(({ matches }) => matches(error))
  if (fault) return fault.fix
  return isEmbedded
    ? 'Run npm start again. Its log is postgres/postgres.log in the data folder.'
    : 'Start Postgres, or correct the host and port in DATABASE_URL.'
}
