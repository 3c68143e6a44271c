/**
 * The configuration of `npm start`, of the other commands for a local service, and of the tests. No variable is
 * required.
 */
import { homedir } from 'node:os'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { z } from 'zod'
import { deepFreeze, type Environment, readVariables } from './environment.ts'
import { databaseUrl, nonEmpty, number } from './values.ts'
import { readBy, schemasOf } from './variable.ts'
import { Variables } from './variables.ts'

const optionalPort = number(1, 65_535).optional()

const local = readBy()
const anyPort = { default: 'any free port' }
const triedFirst = (port: number) => ({ default: `\`${port}\`, or any free port` })

/** The variables that the other programs do not have. */
export const localVariables = {
  SVC_EMBEDDED_PG_PORT: local(optionalPort, 'Port of the embedded Postgres.', anyPort),
  SVC_EMBEDDED_TEMPORAL_PORT: local(optionalPort, 'Port of the embedded Temporal.', triedFirst(7233)),
  SVC_EMBEDDED_TEMPORAL_UI_PORT: local(optionalPort, 'Port of the web UI of the embedded Temporal.', triedFirst(8233)),
  SVC_TEMPORAL_CLI: local(nonEmpty.optional(), 'Path of a Temporal CLI.'),
  SVC_DEMO_EMAIL: local(z.email().optional(), 'Address of the demo account.', { default: 'generated' }),
  SVC_DEMO_PASSWORD: local(nonEmpty.optional(), 'Password of the demo account.', { default: 'generated' }),
  TEST_DATABASE_URL: local(
    databaseUrl.optional(),
    'Postgres for the tests instead of an embedded one. It needs `max_connections` of at least 200.',
  ),
  TEST_TEMPORAL_ADDRESS: local(
    Variables.shape.TEMPORAL_ADDRESS.optional(),
    'Temporal server for the tests instead of an embedded one.',
  ),
}

const StackVariables = Variables.pick({
  SVC_DATA_DIR: true,
  SVC_API_URL: true,
  TEMPORAL_NAMESPACE: true,
  SVC_JWT_SECRET: true,
  SVC_RELAY_AUTH_SECRET: true,
  SVC_OPERATOR_PASSWORD: true,
  SVC_BILLING_WEBHOOK_SECRET: true,
})
  .partial({ SVC_JWT_SECRET: true, SVC_RELAY_AUTH_SECRET: true, SVC_BILLING_WEBHOOK_SECRET: true })
  .extend({
    PORT: optionalPort,
    SVC_SITE_PORT: optionalPort,
    SVC_SITE_URL: Variables.shape.SVC_SITE_URL,
    OAUTH_ENCRYPTION_KEY: nonEmpty.optional(),
    SVC_OBS_PROVIDER_ID: Variables.shape.SVC_OBS_PROVIDER_ID,
    SVC_OAUTH_SIGNING_KEYS: nonEmpty.optional(),
    DATABASE_URL: Variables.shape.DATABASE_URL.optional(),
    TEMPORAL_ADDRESS: Variables.shape.TEMPORAL_ADDRESS.optional(),
    SVC_TEMPORAL_UI_URL: z.string().optional(),
    ...schemasOf(localVariables),
  })

/**
 * Reads and checks the variables of the local stack. A variable that is not set is `undefined`. Throws `ConfigError`.
 */
export function readStackConfig(env: Environment = process.env) {
  const v = readVariables(StackVariables, env)
  const home = env.HOME || homedir()
  const cacheHome = env.XDG_CACHE_HOME && isAbsolute(env.XDG_CACHE_HOME) ? env.XDG_CACHE_HOME : join(home, '.cache')
  return deepFreeze({
    dataDir: resolve(v.SVC_DATA_DIR),
    cacheDir: join(cacheHome, 'relay-control-plane'),
    searchPath: (env.PATH ?? '').split(delimiter).filter(isAbsolute),
    port: v.PORT,
    apiUrl: v.SVC_API_URL,
    sitePort: v.SVC_SITE_PORT,
    siteUrl: v.SVC_SITE_URL,
    databaseUrl: v.DATABASE_URL,
    temporalAddress: v.TEMPORAL_ADDRESS,
    temporalNamespace: v.TEMPORAL_NAMESPACE,
    temporalUiUrl: v.SVC_TEMPORAL_UI_URL,
    embedded: {
      postgresPort: v.SVC_EMBEDDED_PG_PORT,
      temporalPort: v.SVC_EMBEDDED_TEMPORAL_PORT,
      temporalUiPort: v.SVC_EMBEDDED_TEMPORAL_UI_PORT,
      temporalCli: v.SVC_TEMPORAL_CLI,
    },
    /** Secrets that are not set are generated and stored in the data folder. */
    secrets: {
      SVC_JWT_SECRET: v.SVC_JWT_SECRET,
      SVC_RELAY_AUTH_SECRET: v.SVC_RELAY_AUTH_SECRET?.join(','),
      OAUTH_ENCRYPTION_KEY: v.OAUTH_ENCRYPTION_KEY,
      SVC_OPERATOR_PASSWORD: v.SVC_OPERATOR_PASSWORD,
      SVC_BILLING_WEBHOOK_SECRET: v.SVC_BILLING_WEBHOOK_SECRET?.join(','),
      SVC_OBS_PROVIDER_ID: v.SVC_OBS_PROVIDER_ID,
      SVC_OAUTH_SIGNING_KEYS: v.SVC_OAUTH_SIGNING_KEYS,
    },
    demo: { email: v.SVC_DEMO_EMAIL, password: v.SVC_DEMO_PASSWORD },
    /** Servers for the tests to use instead of starting embedded ones. */
    test: { databaseUrl: v.TEST_DATABASE_URL, temporalAddress: v.TEST_TEMPORAL_ADDRESS },
    /** Passed on to the processes that `npm start` runs. */
    environment: { ...env },
  })
}

/**
 * The servers that listen on this machine, each with the variable that fixes its port and with the one that replaces
 * it.
 */
const portsOfServers = [
  { server: 'the API', variable: 'PORT' },
  { server: 'the site', variable: 'SVC_SITE_PORT' },
  { server: 'the metrics of the worker', variable: 'SVC_WORKER_METRICS_ADDRESS' },
  { server: 'the embedded Postgres', variable: 'SVC_EMBEDDED_PG_PORT', unless: 'DATABASE_URL' },
  { server: 'the embedded Temporal', variable: 'SVC_EMBEDDED_TEMPORAL_PORT', unless: 'TEMPORAL_ADDRESS' },
  {
    server: 'the web UI of the embedded Temporal',
    variable: 'SVC_EMBEDDED_TEMPORAL_UI_PORT',
    unless: 'TEMPORAL_ADDRESS',
  },
] as const

/** The ports that variables fix. Leaves those out whose variable is wrong, which `readStackConfig` reports. */
export function readFixedPorts(env: Environment) {
  const isSet = (name: string) => Boolean(env[name] || env[`${name}_FILE`])
  return portsOfServers.flatMap((entry) => {
    if ('unless' in entry && isSet(entry.unless)) return []
    // An address has its port after the last colon.
    const port = optionalPort.safeParse(env[entry.variable]?.split(':').at(-1) || undefined).data
    return port === undefined ? [] : [{ server: entry.server, variable: entry.variable, port }]
  })
}

export type StackConfig = ReturnType<typeof readStackConfig>
