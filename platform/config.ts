/**
 * What every process is told from outside. This file alone reads the environment: it reports every mistake at once, each
 * with its fix, and hands on one frozen value. Every variable can also be given as a file, `NAME_FILE=/run/secrets/name`.
 */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { z } from 'zod'
import { billingContradictions, billingOf } from './config-billing.ts'
import {
  defaultRegions,
  encryptionKeys,
  flag,
  httpsUrl,
  port,
  rateLimits,
  regions,
  seconds,
  secret,
  secretPair,
  url,
  webhookSecrets,
} from './config-values.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const Variables = z.object({
  NODE_ENV: z.string().optional(),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  PORT: port(8080),
  SVC_SITE_PORT: port(8081),
  SVC_API_URL: url.optional(),
  SVC_SITE_URL: url.optional(),
  SVC_DRAIN_SECONDS: seconds(0, 300, 0),
  SVC_DATA_DIR: z.string().min(1).default('.svc'),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/, error: 'is no postgres:// URL' }),
  SVC_DATABASE_POOL: z.coerce.number().int().min(2).max(200).default(10),
  TEMPORAL_ADDRESS: z.string().regex(/^[^\s/]+:\d+$/, 'is not host:port'),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  TEMPORAL_API_KEY: z.string().min(1).optional(),
  TEMPORAL_TLS_CA: z.string().min(1).optional(),
  TEMPORAL_TLS_CERT: z.string().min(1).optional(),
  TEMPORAL_TLS_KEY: z.string().min(1).optional(),
  TEMPORAL_TLS: flag.default(false),
  SVC_TEMPORAL_TASK_QUEUE: z.string().min(1).default('relay-control-plane'),
  SVC_TEMPORAL_UI_URL: url.default('http://localhost:8233'),
  SVC_JWT_SECRET: secret,
  SVC_JWT_SECRET_PREVIOUS: secret.optional(),
  SVC_JWT_TTL_SECONDS: seconds(600, 900, 720),
  OAUTH_ENCRYPTION_KEY: encryptionKeys,
  SVC_TWITCH_CLIENT_ID: z.string().min(1).optional(),
  SVC_TWITCH_CLIENT_SECRET: z.string().min(1).optional(),
  SVC_TWITCH_ISSUER_URL: url.default('https://id.twitch.tv/oauth2'),
  SVC_GOOGLE_CLIENT_ID: z.string().min(1).optional(),
  SVC_GOOGLE_CLIENT_SECRET: z.string().min(1).optional(),
  SVC_GOOGLE_ISSUER_URL: url.default('https://accounts.google.com'),
  SVC_DISCORD_CLIENT_ID: z.string().min(1).optional(),
  SVC_DISCORD_CLIENT_SECRET: z.string().min(1).optional(),
  SVC_DISCORD_ISSUER_URL: url.default('https://discord.com'),
  SVC_LOG_LINKS: flag.default(true),
  SVC_OPERATOR_PASSWORD: z.string().min(12, 'is shorter than 12 characters').optional(),
  SVC_RELAY_AUTH_SECRET: secretPair,
  SVC_REQUIRE_EMAIL_VERIFICATION: flag.default(false),
  SVC_REGIONS: z.string().default(defaultRegions).pipe(regions),
  SVC_RELAY_PROVISION_TIMEOUT_SECONDS: seconds(1, 3600, 300),
  SVC_RELAY_HEALTH_INTERVAL_SECONDS: seconds(1, 300, 10),
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: seconds(1, 3600, 45),
  SVC_RELAY_GRACE_SECONDS: seconds(1, 3600, 120),
  SVC_RELAY_STOP_GRACE_SECONDS: seconds(0, 3600, 30),
  SVC_RELAY_MAX_SESSION_SECONDS: seconds(5, 30 * 86_400, 57_600),
  SVC_BILLING_PROVIDER: z.enum(['sandbox', 'lemonsqueezy', 'stripe']).optional(),
  SVC_BILLING_WEBHOOK_SECRET: webhookSecrets,
  SVC_BILLING_PORTAL_URL: httpsUrl.optional(),
  SVC_BILLING_TEST_MODE: flag.optional(),
  SVC_LEMONSQUEEZY_API_KEY: z.string().min(1).optional(),
  SVC_LEMONSQUEEZY_STORE_ID: z.string().regex(/^\d+$/, 'is no number').optional(),
  SVC_LEMONSQUEEZY_PLAN_VARIANT_ID: z.string().regex(/^\d+$/, 'is no number').optional(),
  SVC_LEMONSQUEEZY_ADDON_VARIANT_ID: z.string().regex(/^\d+$/, 'is no number').optional(),
  SVC_STRIPE_API_KEY: z.string().min(1).optional(),
  SVC_STRIPE_API_URL: url.optional(),
  SVC_STRIPE_PLAN_PRICE_ID: z.string().min(1).optional(),
  SVC_STRIPE_ADDON_PRICE_ID: z.string().min(1).optional(),
  SVC_PAYMENT_GRACE_SECONDS: seconds(1, 30 * 86_400, 172_800),
  SVC_ADDON_NOTICE_SECONDS: seconds(1, 86_400, 1800),
  SVC_TIME_BANK_ENFORCEMENT: z.enum(['report', 'enforce']).default('report'),
  SVC_TIME_BANK_HOURS_PER_RELAY: z.coerce.number().int().min(0).max(100_000).default(200),
  SVC_TRUSTED_PROXY_HOPS: z.coerce.number().int().min(0).max(10).default(0),
  SVC_RATE_LIMITS: z.string().default('').pipe(rateLimits),
})

/** The variables as they were read, each by itself. */
export type Values = z.infer<typeof Variables>

/** Every mistake in the environment, one line each, ready to be shown to the person who started the process. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  constructor(readonly problems: readonly string[]) {
    super(
      `The configuration has ${problems.length} mistake${problems.length === 1 ? '' : 's'}:\n${problems.map((line) => `  - ${line}`).join('\n')}`,
    )
  }
}

/** The environment with each `NAME_FILE` replaced by what its file holds. Empty values count as unset. */
export function withFiles(
  env: Environment,
  names: readonly string[],
): { values: Record<string, string>; problems: string[] } {
  const values: Record<string, string> = {}
  const problems: string[] = []
  for (const name of names) {
    const direct = env[name]
    const file = env[`${name}_FILE`]
    if (direct && file) problems.push(`${name} and ${name}_FILE are both set: keep one`)
    else if (direct) values[name] = direct
    else if (file) {
      try {
        values[name] = readFileSync(file, 'utf8').replace(/\r?\n$/, '')
      } catch (error) {
        problems.push(`${name}_FILE names ${file}, which can't be read: ${(error as Error).message}`)
      }
    }
  }
  return { values, problems }
}

/** Checks all variables at once. Throws {@link ConfigError}. */
export function readConfig(env: Environment = process.env) {
  const { values, problems } = withFiles(env, Object.keys(Variables.shape))
  const read = Variables.safeParse(values)
  if (!read.success) {
    for (const issue of read.error.issues) {
      const name = String(issue.path[0])
      if (problems.some((line) => line.startsWith(`${name}_FILE `))) continue
      problems.push(values[name] === undefined ? `${name} is not set` : `${name} ${issue.message}`)
    }
  }
  if (read.success) problems.push(...contradictions(read.data))
  if (problems.length > 0 || !read.success) throw new ConfigError(problems)
  return freeze(shape(read.data))
}

/** What each variable allows by itself, but not together with another. */
function* contradictions(v: Values): Iterable<string> {
  if (v.SVC_RELAY_HEALTH_TIMEOUT_SECONDS < 2 * v.SVC_RELAY_HEALTH_INTERVAL_SECONDS) {
    yield 'SVC_RELAY_HEALTH_TIMEOUT_SECONDS is less than two times SVC_RELAY_HEALTH_INTERVAL_SECONDS: one late report would cost a relay its health'
  }
  if ((v.TEMPORAL_TLS_CERT === undefined) !== (v.TEMPORAL_TLS_KEY === undefined)) {
    yield 'TEMPORAL_TLS_CERT and TEMPORAL_TLS_KEY go together: set both or none'
  }
  for (const name of ['TWITCH', 'GOOGLE', 'DISCORD'] as const) {
    if ((v[`SVC_${name}_CLIENT_ID`] === undefined) !== (v[`SVC_${name}_CLIENT_SECRET`] === undefined)) {
      yield `SVC_${name}_CLIENT_ID and SVC_${name}_CLIENT_SECRET go together: set both or none`
    }
  }
  yield* billingContradictions(v)
}

/** Only where the database is, for the command that needs nothing else. Throws {@link ConfigError}. */
export function readDatabaseUrl(env: Environment = process.env): string {
  const { values, problems } = withFiles(env, ['DATABASE_URL'])
  const read = Variables.shape.DATABASE_URL.safeParse(values.DATABASE_URL)
  if (read.success) return read.data
  throw new ConfigError(problems.length > 0 ? problems : ['DATABASE_URL is not set to a postgres:// URL'])
}

export type Config = ReturnType<typeof readConfig>

const shape = (v: Values) => ({
  logLevel: v.LOG_LEVEL,
  port: v.PORT,
  apiUrl: v.SVC_API_URL ?? `http://localhost:${v.PORT}`,
  siteUrl: v.SVC_SITE_URL ?? `http://localhost:${v.SVC_SITE_PORT}`,
  drainSeconds: v.SVC_DRAIN_SECONDS,
  dataDir: resolve(v.SVC_DATA_DIR),
  database: { url: v.DATABASE_URL, connectionsMax: v.SVC_DATABASE_POOL },
  temporal: {
    address: v.TEMPORAL_ADDRESS,
    namespace: v.TEMPORAL_NAMESPACE,
    taskQueue: v.SVC_TEMPORAL_TASK_QUEUE,
    uiUrl: v.SVC_TEMPORAL_UI_URL,
    apiKey: v.TEMPORAL_API_KEY,
    tls: v.TEMPORAL_TLS || v.TEMPORAL_TLS_CA !== undefined || v.TEMPORAL_TLS_CERT !== undefined,
    tlsCa: v.TEMPORAL_TLS_CA,
    tlsCert: v.TEMPORAL_TLS_CERT,
    tlsKey: v.TEMPORAL_TLS_KEY,
  },
  jwt: {
    secret: v.SVC_JWT_SECRET,
    previousSecret: v.SVC_JWT_SECRET_PREVIOUS,
    ttlSeconds: v.SVC_JWT_TTL_SECONDS,
  },
  /** The first seals, all of them open: two while the key is being rotated. */
  oauthEncryptionKeys: v.OAUTH_ENCRYPTION_KEY,
  /** The providers that people may sign in with; one without a client is not offered. */
  oauth: {
    twitch: oauthClient(v.SVC_TWITCH_CLIENT_ID, v.SVC_TWITCH_CLIENT_SECRET, v.SVC_TWITCH_ISSUER_URL),
    google: oauthClient(v.SVC_GOOGLE_CLIENT_ID, v.SVC_GOOGLE_CLIENT_SECRET, v.SVC_GOOGLE_ISSUER_URL),
    discord: oauthClient(v.SVC_DISCORD_CLIENT_ID, v.SVC_DISCORD_CLIENT_SECRET, v.SVC_DISCORD_ISSUER_URL),
  },
  /** Whether links of mails are written to the log, where nothing else sends them. */
  logLinks: v.SVC_LOG_LINKS,
  operatorPassword: v.SVC_OPERATOR_PASSWORD,
  /** The first signs, all are believed: two while the secret is being rotated. */
  relayAuthSecrets: v.SVC_RELAY_AUTH_SECRET,
  requireEmailVerification: v.SVC_REQUIRE_EMAIL_VERIFICATION,
  regions: v.SVC_REGIONS,
  relay: {
    provisionTimeoutSeconds: v.SVC_RELAY_PROVISION_TIMEOUT_SECONDS,
    healthIntervalSeconds: v.SVC_RELAY_HEALTH_INTERVAL_SECONDS,
    healthTimeoutSeconds: v.SVC_RELAY_HEALTH_TIMEOUT_SECONDS,
    graceSeconds: v.SVC_RELAY_GRACE_SECONDS,
    stopGraceSeconds: v.SVC_RELAY_STOP_GRACE_SECONDS,
    maxSessionSeconds: v.SVC_RELAY_MAX_SESSION_SECONDS,
  },
  billing: billingOf(v),
  timeBank: { hoursPerRelay: v.SVC_TIME_BANK_HOURS_PER_RELAY, enforcement: v.SVC_TIME_BANK_ENFORCEMENT },
  trustedProxyHops: v.SVC_TRUSTED_PROXY_HOPS,
  rateLimits: v.SVC_RATE_LIMITS,
})

export interface OAuthClientConfig {
  readonly clientId: string
  readonly clientSecret: string
  /** Where the provider is; another one in tests. */
  readonly issuerUrl: string
}

const oauthClient = (
  clientId: string | undefined,
  clientSecret: string | undefined,
  issuerUrl: string,
): OAuthClientConfig | undefined => (clientId && clientSecret ? { clientId, clientSecret, issuerUrl } : undefined)

const freeze = <T extends object>(value: T): Readonly<T> => {
  for (const inner of Object.values(value)) if (typeof inner === 'object' && inner !== null) freeze(inner)
  return Object.freeze(value)
}

/** What the site needs: it keeps no data and no secret of its own. */
const SiteVariables = Variables.pick({
  LOG_LEVEL: true,
  SVC_SITE_PORT: true,
  SVC_SITE_URL: true,
  SVC_DRAIN_SECONDS: true,
  SVC_TRUSTED_PROXY_HOPS: true,
}).extend({ SVC_API_URL: url.default('http://localhost:8080') })

/** Checks the site's variables, all at once. Throws {@link ConfigError}. */
export function readSiteConfig(env: Environment = process.env) {
  const { values, problems } = withFiles(env, Object.keys(SiteVariables.shape))
  const read = SiteVariables.safeParse(values)
  for (const issue of read.error?.issues ?? []) problems.push(`${String(issue.path[0])} ${issue.message}`)
  if (problems.length > 0 || !read.success) throw new ConfigError(problems)
  const v = read.data
  return freeze({
    logLevel: v.LOG_LEVEL,
    port: v.SVC_SITE_PORT,
    /** Where browsers see the site. */
    siteUrl: v.SVC_SITE_URL ?? `http://localhost:${v.SVC_SITE_PORT}`,
    /** Where the site reaches the api. */
    apiUrl: v.SVC_API_URL,
    drainSeconds: v.SVC_DRAIN_SECONDS,
    trustedProxyHops: v.SVC_TRUSTED_PROXY_HOPS,
  })
}

export type SiteConfig = ReturnType<typeof readSiteConfig>

const wantedPort = z.coerce.number().int().min(1).max(65535).optional()

/** What `npm start` and the tests need to know before there is a database: nothing here is required. */
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
    PORT: wantedPort,
    SVC_SITE_PORT: wantedPort,
    SVC_SITE_URL: Variables.shape.SVC_SITE_URL,
    OAUTH_ENCRYPTION_KEY: z.string().min(1).optional(),
    DATABASE_URL: Variables.shape.DATABASE_URL.optional(),
    TEMPORAL_ADDRESS: Variables.shape.TEMPORAL_ADDRESS.optional(),
    SVC_TEMPORAL_UI_URL: z.string().optional(),
    SVC_EMBEDDED_PG_PORT: wantedPort,
    SVC_EMBEDDED_TEMPORAL_PORT: wantedPort,
    SVC_EMBEDDED_TEMPORAL_UI_PORT: wantedPort,
    SVC_TEMPORAL_CLI: z.string().min(1).optional(),
    SVC_DEMO_EMAIL: z.email().optional(),
    SVC_DEMO_PASSWORD: z.string().min(1).optional(),
    TEST_DATABASE_URL: Variables.shape.DATABASE_URL.optional(),
    TEST_TEMPORAL_ADDRESS: Variables.shape.TEMPORAL_ADDRESS.optional(),
  })

/** Reads what the embedded stack is started from; a value left out is `undefined`. Throws {@link ConfigError}. */
export function readStackConfig(env: Environment = process.env) {
  const { values, problems } = withFiles(env, Object.keys(StackVariables.shape))
  const read = StackVariables.safeParse(values)
  for (const issue of read.error?.issues ?? []) problems.push(`${String(issue.path[0])} ${issue.message}`)
  if (problems.length > 0 || !read.success) throw new ConfigError(problems)
  const v = read.data
  const home = env.HOME || homedir()
  const cacheHome = env.XDG_CACHE_HOME && isAbsolute(env.XDG_CACHE_HOME) ? env.XDG_CACHE_HOME : join(home, '.cache')
  return freeze({
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
    /** Only those that were given: the embedded stack makes and keeps the others. */
    secrets: {
      SVC_JWT_SECRET: v.SVC_JWT_SECRET,
      SVC_RELAY_AUTH_SECRET: v.SVC_RELAY_AUTH_SECRET?.join(','),
      OAUTH_ENCRYPTION_KEY: v.OAUTH_ENCRYPTION_KEY,
      SVC_OPERATOR_PASSWORD: v.SVC_OPERATOR_PASSWORD,
      SVC_BILLING_WEBHOOK_SECRET: v.SVC_BILLING_WEBHOOK_SECRET?.join(','),
    },
    demo: { email: v.SVC_DEMO_EMAIL, password: v.SVC_DEMO_PASSWORD },
    /** Servers that the tests use instead of starting their own. */
    test: { databaseUrl: v.TEST_DATABASE_URL, temporalAddress: v.TEST_TEMPORAL_ADDRESS },
    /** Handed on to the processes that `npm start` runs. */
    environment: { ...env },
  })
}

export type StackConfig = ReturnType<typeof readStackConfig>
