/** Reads the configuration of the api and the worker from environment variables, checks it, and freezes it. */
import { resolve } from 'node:path'
import { getDomain } from 'tldts'
import type { z } from 'zod'
import type { SlsServer } from '../../domain/relay/engines.ts'
import { billingConfig, findBillingConflicts } from './billing.ts'
import { deepFreeze, type Environment, readVariables } from './environment.ts'
import { findLegalConflicts, legalPages } from './legal.ts'
import { findMailConflicts, mailConfig } from './mail.ts'
import { retentionConfig } from './retention.ts'
import { type Values, Variables } from './variables.ts'

/** Reads and checks all variables. Throws `ConfigError`. */
export const readConfig = (env: Environment = process.env) =>
  deepFreeze(configOf(readVariables(Variables, env, findConflicts)))

/**
 * The same for the worker, which alone calls the providers of relays and needs their credentials. Throws `ConfigError`.
 */
export const readWorkerConfig = (env: Environment = process.env) =>
  deepFreeze(configOf(readVariables(Variables, env, findConflictsOfWorker)))

/** Reads `DATABASE_URL` alone, for migrations. Throws `ConfigError`. */
export const readDatabaseUrl = (env: Environment = process.env): string =>
  readVariables(Variables.pick({ DATABASE_URL: true }), env).DATABASE_URL

/** Reads the variables of the Temporal server alone. Throws `ConfigError`. */
export const readTemporalConfig = (env: Environment = process.env) =>
  deepFreeze(temporalConfig(readVariables(TemporalVariables, env)))

/** Values that are valid by themselves, but not together. */
function* findConflicts(v: Values): Iterable<string> {
  if (v.SVC_RELAY_HEALTH_TIMEOUT_SECONDS < 2 * v.SVC_RELAY_HEALTH_INTERVAL_SECONDS) {
    yield 'SVC_RELAY_HEALTH_TIMEOUT_SECONDS is less than two times SVC_RELAY_HEALTH_INTERVAL_SECONDS: one late report would end the health of a relay'
  }
  if ((v.TEMPORAL_TLS_CERT === undefined) !== (v.TEMPORAL_TLS_KEY === undefined)) {
    yield 'TEMPORAL_TLS_CERT and TEMPORAL_TLS_KEY go together: set both or none'
  }
  for (const name of ['TWITCH', 'GOOGLE', 'DISCORD'] as const) {
    if ((v[`SVC_${name}_CLIENT_ID`] === undefined) !== (v[`SVC_${name}_CLIENT_SECRET`] === undefined)) {
      yield `SVC_${name}_CLIENT_ID and SVC_${name}_CLIENT_SECRET go together: set both or none`
    }
  }
  if (v.SVC_OBS_PROVIDER_ID !== undefined && v.SVC_OAUTH_SIGNING_KEYS === undefined)
    yield 'SVC_OAUTH_SIGNING_KEYS is required with SVC_OBS_PROVIDER_ID'
  if (v.SVC_RELAY_ENGINE === 'sls') yield* findMissingSlsVariables(v)
  yield* findLegalConflicts(v)
  yield* findBillingConflicts(v)
  yield* findMailConflicts(v)
}

function* findConflictsOfWorker(v: Values): Iterable<string> {
  yield* findConflicts(v)
  if (v.SVC_REGIONS.some(({ provider }) => provider === 'hetzner') && v.SVC_HETZNER_TOKEN === undefined)
    yield 'SVC_HETZNER_TOKEN is required for regions with "provider":"hetzner"'
  if (v.SVC_REGIONS.some(({ provider }) => provider !== 'local') && v.SVC_API_URL === undefined)
    yield 'SVC_API_URL is required for regions in a cloud, since their relays report to it'
  yield* findNameConflicts(v)
}

function* findNameConflicts(v: Values): Iterable<string> {
  if (v.SVC_RELAY_DOMAIN === undefined) return
  for (const name of ['SVC_DNS_SERVER', 'SVC_DNS_KEY', 'SVC_FLEET_NAME'] as const)
    if (v[name] === undefined) yield `${name} is required with SVC_RELAY_DOMAIN`
  // Browsers keep cookies apart below the suffixes of private domains too.
  const options = { allowPrivateDomains: true }
  const site = v.SVC_SITE_URL === undefined ? null : getDomain(v.SVC_SITE_URL, options)
  if (site !== null && site === getDomain(v.SVC_RELAY_DOMAIN, options))
    yield `SVC_RELAY_DOMAIN shares the domain ${site} with SVC_SITE_URL: a relay could set cookies of the site`
}

function* findMissingSlsVariables(v: Values): Iterable<string> {
  for (const name of ['API_URL', 'API_KEY', 'PUBLISH_PORT', 'PLAY_PORT'] as const) {
    if (v[`SVC_RELAY_SLS_${name}`] === undefined) yield `SVC_RELAY_SLS_${name} is required with SVC_RELAY_ENGINE=sls`
  }
}

export type Config = ReturnType<typeof readConfig>

const configOf = (v: Values) => ({
  logLevel: v.LOG_LEVEL,
  port: v.PORT,
  apiUrl: v.SVC_API_URL ?? `http://localhost:${v.PORT}`,
  siteUrl: siteUrlOf(v),
  brandName: v.SVC_BRAND_NAME,
  legal: legalPages(v),
  drainSeconds: v.SVC_DRAIN_SECONDS,
  dataDir: resolve(v.SVC_DATA_DIR),
  database: { url: v.DATABASE_URL, connectionsMax: v.SVC_DATABASE_POOL },
  temporal: temporalConfig(v),
  /** The file that the worker replaces every 5 s; undefined for none. */
  workerAliveFile: v.SVC_WORKER_ALIVE_FILE,
  /** Null for an unversioned worker. */
  workerVersion:
    v.SVC_WORKER_BUILD_ID === undefined
      ? null
      : { deploymentName: v.SVC_WORKER_DEPLOYMENT, buildId: v.SVC_WORKER_BUILD_ID },
  tracing: {
    isEnabled:
      !v.OTEL_SDK_DISABLED && (v.OTEL_EXPORTER_OTLP_ENDPOINT ?? v.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) !== undefined,
  },
  /** Where the worker serves the metrics of the Temporal SDK and of its process; undefined: nowhere. */
  workerMetricsAddress: v.SVC_WORKER_METRICS_ADDRESS,
  jwt: {
    secret: v.SVC_JWT_SECRET,
    previousSecret: v.SVC_JWT_SECRET_PREVIOUS,
    ttlSeconds: v.SVC_JWT_TTL_SECONDS,
  },
  /** The first key encrypts, and all of them decrypt. There are two while the key is being rotated. */
  oauthEncryptionKeys: v.OAUTH_ENCRYPTION_KEY,
  /** The providers that users can sign in with; undefined for a provider without a client id and secret. */
  oauth: {
    twitch: oauthClient(v.SVC_TWITCH_CLIENT_ID, v.SVC_TWITCH_CLIENT_SECRET, v.SVC_TWITCH_ISSUER_URL),
    google: oauthClient(v.SVC_GOOGLE_CLIENT_ID, v.SVC_GOOGLE_CLIENT_SECRET, v.SVC_GOOGLE_ISSUER_URL),
    discord: oauthClient(v.SVC_DISCORD_CLIENT_ID, v.SVC_DISCORD_CLIENT_SECRET, v.SVC_DISCORD_ISSUER_URL),
  },
  /** Null where no apps can be connected. */
  apps: appsOf(v),
  /** Whether the log mail provider writes the links of emails to the log. */
  logLinks: v.SVC_LOG_LINKS,
  operatorPassword: v.SVC_OPERATOR_PASSWORD,
  operatorSessionSeconds: v.SVC_OPERATOR_SESSION_SECONDS,
  /** Relays get the first secret, and all of them are accepted. There are two while the secret is being rotated. */
  relayAuthSecrets: v.SVC_RELAY_AUTH_SECRET,
  requireEmailVerification: v.SVC_REQUIRE_EMAIL_VERIFICATION,
  accountDeletionSeconds: v.SVC_ACCOUNT_DELETION_SECONDS,
  regions: v.SVC_REGIONS,
  fleet: {
    /**
     * Separates the instances of this control plane from those of others in the same accounts; undefined when it is the
     * only one.
     */
    name: v.SVC_FLEET_NAME,
    /** A new value begins an epoch of the database. */
    epoch: v.SVC_EPOCH,
    hetzner: { token: v.SVC_HETZNER_TOKEN, apiUrl: v.SVC_HETZNER_API_URL },
  },
  /** Of the names of relays, also for processes that do not write them. */
  relayDomain: v.SVC_RELAY_DOMAIN,
  /** Null without names of relays, or in a process that does not write them. */
  relayNames: relayNamesOf(v),
  relay: {
    provisionTimeoutSeconds: v.SVC_RELAY_PROVISION_TIMEOUT_SECONDS,
    healthIntervalSeconds: v.SVC_RELAY_HEALTH_INTERVAL_SECONDS,
    healthTimeoutSeconds: v.SVC_RELAY_HEALTH_TIMEOUT_SECONDS,
    graceSeconds: v.SVC_RELAY_GRACE_SECONDS,
    replacementSeconds: v.SVC_RELAY_REPLACEMENT_SECONDS,
    stopGraceSeconds: v.SVC_RELAY_STOP_GRACE_SECONDS,
    maxSessionSeconds: v.SVC_RELAY_MAX_SESSION_SECONDS,
    engine: v.SVC_RELAY_ENGINE,
    /** Where relays on this machine find their engine. */
    searchPath: v.PATH,
    srtPassphrase: v.SVC_RELAY_SRT_PASSPHRASE,
    srtlaLatencyMillisMin: v.SVC_RELAY_SRTLA_LATENCY_MS_MIN,
    statsAddresses: v.SVC_RELAY_STATS_ADDRESSES,
    streamWeakKbps: v.SVC_STREAM_WEAK_KBPS,
    sls: slsServer(v),
  },
  billing: billingConfig(v),
  mail: mailConfig(v, siteUrlOf(v)),
  retention: retentionConfig(v),
  timeBank: {
    hoursPerRelay: v.SVC_TIME_BANK_HOURS_PER_RELAY,
    enforcement: v.SVC_TIME_BANK_ENFORCEMENT,
    trialSeconds: v.SVC_TRIAL_SECONDS,
  },
  trustedProxyHops: v.SVC_TRUSTED_PROXY_HOPS,
  rateLimits: v.SVC_RATE_LIMITS,
})

const appsOf = ({ SVC_OBS_PROVIDER_ID: providerId, SVC_OAUTH_SIGNING_KEYS: signingKeys }: Values) =>
  providerId === undefined || signingKeys === undefined ? null : { providerId, signingKeys }

const relayNamesOf = ({ SVC_RELAY_DOMAIN: domain, SVC_DNS_SERVER: server, SVC_DNS_KEY: key }: Values) =>
  domain === undefined || server === undefined || key === undefined ? null : { domain, server, key }

const TemporalVariables = Variables.pick({
  TEMPORAL_ADDRESS: true,
  TEMPORAL_NAMESPACE: true,
  SVC_TEMPORAL_TASK_QUEUE: true,
  SVC_TEMPORAL_UI_URL: true,
  TEMPORAL_API_KEY: true,
  TEMPORAL_TLS: true,
  TEMPORAL_TLS_CA: true,
  TEMPORAL_TLS_CERT: true,
  TEMPORAL_TLS_KEY: true,
})

const temporalConfig = (v: z.infer<typeof TemporalVariables>) => ({
  address: v.TEMPORAL_ADDRESS,
  namespace: v.TEMPORAL_NAMESPACE,
  taskQueue: v.SVC_TEMPORAL_TASK_QUEUE,
  uiUrl: v.SVC_TEMPORAL_UI_URL,
  apiKey: v.TEMPORAL_API_KEY,
  tls: v.TEMPORAL_TLS || v.TEMPORAL_TLS_CA !== undefined || v.TEMPORAL_TLS_CERT !== undefined,
  tlsCa: v.TEMPORAL_TLS_CA,
  tlsCert: v.TEMPORAL_TLS_CERT,
  tlsKey: v.TEMPORAL_TLS_KEY,
})

const siteUrlOf = (v: Values): string => v.SVC_SITE_URL ?? `http://localhost:${v.SVC_SITE_PORT}`

function slsServer(v: Values): SlsServer | undefined {
  const { SVC_RELAY_SLS_API_URL: apiUrl, SVC_RELAY_SLS_API_KEY: apiKey } = v
  const { SVC_RELAY_SLS_PUBLISH_PORT: publishPort, SVC_RELAY_SLS_PLAY_PORT: playPort } = v
  return v.SVC_RELAY_ENGINE === 'sls' && apiUrl && apiKey && publishPort && playPort
    ? { apiUrl, apiKey, publishPort, playPort }
    : undefined
}

export interface OAuthClientConfig {
  readonly clientId: string
  readonly clientSecret: string
  /** The URL of the provider; of a local server in tests. */
  readonly issuerUrl: string
}

const oauthClient = (
  clientId: string | undefined,
  clientSecret: string | undefined,
  issuerUrl: string,
): OAuthClientConfig | undefined => (clientId && clientSecret ? { clientId, clientSecret, issuerUrl } : undefined)
