/**
 * Reads a `postgres://` URL as providers of Postgres print it. Each parameter is honoured, or left out because the
 * service does without it, or refused by its name. None is sent to the server as a setting. `deploy/databases.sh` reads
 * the same parameters.
 */

/** How a connection is encrypted, and what is checked of the server's certificate. */
export type DatabaseTls = 'off' | 'if_offered' | 'unchecked' | 'checked' | 'checked_without_host'

export interface DatabaseTarget {
  /** Tried in this order. Empty for a Unix socket. */
  readonly hosts: readonly { readonly name: string; readonly port: number }[]
  /** The Unix socket; undefined for TCP. */
  readonly socketPath: string | undefined
  readonly user: string | undefined
  readonly password: string | undefined
  readonly database: string | undefined
  readonly applicationName: string | undefined
  readonly tls: DatabaseTls
  /** TLS without asking the server first. */
  readonly isTlsDirect: boolean
  /** PEM files, by the names of the parameters. */
  readonly files: { readonly sslrootcert?: string; readonly sslcert?: string; readonly sslkey?: string }
  /** 0 for none. */
  readonly keepaliveSeconds: number | undefined
  /** Which of several servers is used; undefined for any. */
  readonly targetServer: 'read-write' | 'primary' | undefined
  /** Whether a pooler gives each transaction a connection of its own choice. */
  readonly isTransactionPooled: boolean
  readonly isPrepared: boolean
}

interface Parameter {
  /** Undefined for any value. */
  readonly values?: RegExp
  /** What to do about another value. */
  readonly fix?: string
}

const oneOf = (...values: readonly string[]): Parameter => ({
  values: new RegExp(`^(${values.join('|')})$`),
  fix: `use one of ${values.join(', ')}`,
})
const any: Parameter = {}
const onlyInRole = (setting: string): Parameter => ({
  values: /^$/,
  fix: `remove it, and set it in the server where it is needed (alter role … set ${setting})`,
})
const onlyPublicSchema: Parameter = {
  values: /^(public)?$/,
  fix: 'remove it, and name the schema in the server (alter role … set search_path = …)',
}
const tlsModes = ['disable', 'allow', 'prefer', 'require', 'no-verify', 'verify-ca', 'verify-full'] as const

export const honouredParameters: Readonly<Record<string, Parameter>> = {
  sslmode: oneOf(...tlsModes),
  ssl: oneOf('true', 'false', '1', '0', ...tlsModes),
  sslnegotiation: oneOf('postgres', 'direct'),
  sslrootcert: { values: /./, fix: 'name a PEM file, or system' },
  sslcert: { values: /./, fix: 'name a PEM file' },
  sslkey: { values: /./, fix: 'name a PEM file' },
  channel_binding: oneOf('disable', 'prefer', 'require'),
  host: { values: /./, fix: 'name a host, or the folder of a Unix socket' },
  port: { values: /^\d{1,5}(,\d{1,5})*$/, fix: 'use a number' },
  user: any,
  password: any,
  dbname: any,
  application_name: any,
  keepalives: oneOf('0', '1'),
  keepalives_idle: { values: /^\d{1,6}$/, fix: 'use a number of seconds' },
  target_session_attrs: {
    values: /^(any|read-write|primary)$/,
    fix: 'use one of any, read-write, primary, since the service writes',
  },
  pgbouncer: oneOf('true', 'false'),
  prepare: oneOf('true', 'false'),
}

/** The service does without them, or has limits of its own. */
export const leftOutParameters: Readonly<Record<string, Parameter>> = {
  gssencmode: { values: /^(disable|prefer)$/, fix: 'remove it: the service encrypts with TLS (sslmode)' },
  schema: onlyPublicSchema,
  search_path: onlyPublicSchema,
  currentSchema: onlyPublicSchema,
  options: {
    values: /^((endpoint|project|reference)=[\w-]+)?$/,
    fix: 'remove it, and set it in the server where it is needed (alter role … set …)',
  },
  client_encoding: { values: /^(auto|utf-?8)$/i, fix: 'remove it: the service uses UTF-8' },
  load_balance_hosts: { values: /^disable$/, fix: 'remove it: the service writes, and uses one server' },
  ...Object.fromEntries(
    [
      'keepalives_interval',
      'keepalives_count',
      'tcp_user_timeout',
      'connect_timeout',
      'fallback_application_name',
      'sslsni',
      'sslcompression',
      'connection_limit',
      'pool_timeout',
      'socket_timeout',
      'statement_cache_size',
      'uselibpqcompat',
      'supa',
      'workaround',
    ].map((name) => [name, any]),
  ),
}

const refusedParameters: Readonly<Record<string, Parameter>> = Object.fromEntries([
  ...['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'].map((name) => [
    name,
    { values: /^$/, fix: 'remove it: the service has limits of its own' },
  ]),
  ...['timezone', 'work_mem', 'role'].map((name) => [name, onlyInRole(`${name} = …`)]),
  ['max', { values: /^$/, fix: 'remove it, and set SVC_DATABASE_POOL' }],
  ['sslpassword', { values: /^$/, fix: 'use a key without a password' }],
  ['sslaccept', { values: /^$/, fix: 'remove it, and set sslmode' }],
])

const known = { ...honouredParameters, ...leftOutParameters, ...refusedParameters }

/** The target of a URL, or what is wrong with it: clauses that follow the name of the variable, without values. */
export type DatabaseUrlReading =
  | { readonly target: DatabaseTarget; readonly problems: readonly [] }
  | { readonly target: undefined; readonly problems: readonly string[] }

const form = /^postgres(?:ql)?:\/\/(?:([^:/?#@]*)(?::([^/?#]*))?@)?([^/?#@]*)(?:\/([^/?#]*))?(?:\?([^#]*))?$/

const wrongForm =
  'is not a postgres:// URL: write postgres://user:password@host:port/database, and in the user and the password %2F for /, %3F for ?, %23 for # and %25 for %'

export function parseDatabaseUrl(text: string): DatabaseUrlReading {
  const match = form.exec(text)
  const [user, password, authority, database] = (match ?? []).slice(1, 5).map((part) => decode(part ?? ''))
  const parameters = readParameters(match?.[5] ?? '')
  const hosts = readHosts(parameters?.host ?? authority ?? '', parameters?.port)
  const isDecoded = ![user, password, authority, database].includes(null)
  if (!match || !isDecoded || !parameters || !hosts) return { target: undefined, problems: [wrongForm] }
  const problems = findProblems(parameters)
  if (problems.length > 0) return { target: undefined, problems }
  const [first] = hosts
  const socketPath = first?.name.startsWith('/') ? `${first.name}/.s.PGSQL.${first.port}` : undefined
  const target: DatabaseTarget = {
    hosts: socketPath === undefined ? hosts : [],
    socketPath,
    user: parameters.user || user || undefined,
    password: parameters.password || password || undefined,
    database: parameters.dbname || database || undefined,
    applicationName: parameters.application_name || undefined,
    tls: socketPath === undefined ? tlsOf(parameters) : 'off',
    isTlsDirect: parameters.sslnegotiation === 'direct',
    files: filesOf(parameters),
    keepaliveSeconds: keepaliveOf(parameters),
    targetServer: targetServerOf(parameters.target_session_attrs),
    isTransactionPooled: parameters.pgbouncer === 'true',
    isPrepared: parameters.pgbouncer !== 'true' && parameters.prepare !== 'false',
  }
  return { target, problems: [] }
}

type Values = Readonly<Record<string, string>>

function findProblems(values: Values): string[] {
  const problems = Object.entries(values).flatMap(([name, value]) => {
    if (!Object.hasOwn(known, name))
      return [`has the parameter ${name.slice(0, 64)}, which the service does not know: remove it`]
    const { values: valid, fix = '' } = known[name] ?? any
    if (valid === undefined || valid.test(value)) return []
    return [`has the parameter ${name} with a value that the service does not use: ${fix}`]
  })
  const hasTls = tlsOf(values) !== 'off'
  if (values.sslnegotiation === 'direct' && ['off', 'if_offered'].includes(tlsOf(values)))
    problems.push('has the parameter sslnegotiation=direct without sslmode: add sslmode=require or stronger')
  if (values.sslcert !== undefined && values.sslkey === undefined)
    problems.push('has the parameter sslcert without sslkey: name the PEM file of its key')
  if (values.channel_binding === 'require' && !hasTls)
    problems.push('has the parameter channel_binding=require without TLS: add sslmode=verify-full')
  if (values.pgbouncer === 'true' && values.prepare === 'true')
    problems.push('has the parameters pgbouncer=true and prepare=true: remove one of them')
  return problems
}

/**
 * With a certificate authority, `require` checks as `verify-ca` does, as in libpq. A public authority certifies
 * anybody, so its certificates are always compared with the host. `channel_binding=require` protects from a server in
 * between, which the driver cannot do by itself: checking the certificate does the same.
 */
function tlsOf({ sslmode, ssl, sslrootcert, channel_binding: binding }: Values): DatabaseTls {
  const aliases: Values = { true: 'verify-full', 1: 'verify-full', false: 'disable', 0: 'disable' }
  const written = sslmode ?? (ssl === undefined ? undefined : (aliases[ssl] ?? ssl))
  const mode = written ?? (sslrootcert === 'system' ? 'verify-full' : binding === 'require' ? 'require' : 'disable')
  if (mode === 'disable') return 'off'
  const hasOwnAuthority = sslrootcert !== undefined && sslrootcert !== 'system'
  if (mode === 'verify-full' || binding === 'require' || sslrootcert === 'system') return 'checked'
  if (mode === 'verify-ca') return hasOwnAuthority ? 'checked_without_host' : 'checked'
  if (mode === 'require') return hasOwnAuthority ? 'checked_without_host' : 'unchecked'
  return mode === 'no-verify' ? 'unchecked' : 'if_offered'
}

const filesOf = ({ sslrootcert, sslcert, sslkey }: Values): DatabaseTarget['files'] => ({
  ...(sslrootcert === undefined || sslrootcert === 'system' ? {} : { sslrootcert }),
  ...(sslcert === undefined ? {} : { sslcert }),
  ...(sslkey === undefined ? {} : { sslkey }),
})

function keepaliveOf({ keepalives, keepalives_idle: idle }: Values): number | undefined {
  if (keepalives === '0') return 0
  return idle === undefined || idle === '0' ? undefined : Number(idle)
}

const targetServerOf = (value: string | undefined): DatabaseTarget['targetServer'] =>
  value === 'read-write' || value === 'primary' ? value : undefined

/** Null for a text that is no percent-encoding. */
function decode(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** As libpq reads them: a plus sign is no space, and the last one of a name counts. */
function readParameters(query: string): Values | undefined {
  const entries = query
    .split('&')
    .filter(Boolean)
    .map((part) => {
      const [name = '', ...rest] = part.split('=')
      return [decode(name), decode(rest.join('='))] as const
    })
  if (entries.some((entry) => entry.includes(null))) return undefined
  return Object.fromEntries(entries as [string, string][])
}

function readHosts(names: string, ports: string | undefined): DatabaseTarget['hosts'] | undefined {
  const portsOf = ports?.split(',') ?? []
  const hosts = names.split(',').map((text, index) => {
    const match = /^(?:\[([^\]]+)\]|(\/.*?|[^:]*))(?::(\d{1,5}))?$/.exec(text)
    const port = Number(portsOf[index] ?? portsOf[0] ?? match?.[3] ?? 5432)
    return match && port >= 1 && port <= 65_535 ? { name: match[1] ?? (match[2] || 'localhost'), port } : undefined
  })
  return hosts.every((host) => host !== undefined) ? hosts : undefined
}
