/** Starts the API: services, HTTP server, migrations. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { createBillingDeps } from '../db/billing/subscriptions.ts'
import { type Database, isTransactionPooled } from '../db/connection.ts'
import { findMaskedEmail } from '../db/identity/users.ts'
import { migrateWhenReachable } from '../db/migrations.ts'
import { startPresence } from '../db/presence.ts'
import { recordReports } from '../db/relay/health.ts'
import { lateReportSeconds } from '../domain/relay/health.ts'
import { summaryAgeSecondsMax } from '../domain/relay/ingest.ts'
import { batch } from '../platform/batch.ts'
import type { Config } from '../platform/config/config.ts'
import { serveUpgrades } from '../platform/http-upgrades.ts'
import type { Lifecycle } from '../platform/lifecycle.ts'
import { connectionLimits, listen } from '../platform/listener.ts'
import type { Logger } from '../platform/log.ts'
import { createSealing } from '../platform/sealing.ts'
import { connectTemporal } from '../platform/temporal.ts'
import type { Tracing } from '../platform/tracing.ts'
import { createBilling } from '../providers/billing/billing.ts'
import { createOAuthProviders } from '../providers/oauth/providers.ts'
import { createRelaySessionWorkflows } from '../workflows/relay-session-client.ts'
import { createSubscriptionWorkflows } from '../workflows/subscription-client.ts'
import { createAdmit } from './admission/admission.ts'
import { createAuthenticate } from './admission/authentication.ts'
import { createAppAccessTokens } from './apps/app-access-tokens.ts'
import { createAppProvider } from './apps/provider.ts'
import { createTokenMetrics } from './apps/token-metrics.ts'
import { createBillingEventRecorder } from './billing-event-recorder.ts'
import { createDeliveries } from './deliveries.ts'
import { basePath, createApp, invalidHttpRequest } from './http/app.ts'
import { createHttpMetrics } from './http/http-metrics.ts'
import { createRateLimits } from './http/rate-limits.ts'
import { createAccessTokens } from './identity/access-tokens.ts'
import { createRecordAuditAttempt } from './identity/audit-attempts.ts'
import { createMailer } from './identity/mailer.ts'
import { createPasswords } from './identity/passwords.ts'
import { registerAssignmentMetrics } from './live/assignment-metrics.ts'
import { createAssignments } from './live/assignments.ts'
import { createHeldReports, registerHeldReportMetrics } from './live/held-reports.ts'
import { createRelayFeed } from './live/relay-feed.ts'
import { createRelaySocketMetrics } from './live/relay-socket-metrics.ts'
import { createRelaySockets, type RelaySocketLimits, relaySocketLimits } from './live/relay-sockets.ts'
import { createWatchedSessions } from './live/watched-sessions.ts'
import { createBillingMetrics } from './metrics/billing-metrics.ts'
import { createStreamEventMetrics } from './metrics/stream-event-metrics.ts'
import { routes } from './routes.ts'
import { serveRoutes } from './served-routes.ts'
import type { Services } from './services.ts'
import { createSlateImages } from './slates/slate-images.ts'
import { createUnversionedRoutes } from './unversioned-routes.ts'
import { createFindOperatorOverview } from './views/operator-overview.ts'
import { createFindPublicIncidents } from './views/public-incidents.ts'
import { createFindRegionStatuses } from './views/region-statuses.ts'

interface Deps {
  readonly config: Config
  readonly log: Logger
  readonly sql: Database
  readonly life: Lifecycle
  /** Limits of WebSocket clients that differ from the defaults. */
  readonly socketLimits?: Partial<RelaySocketLimits>
  /** Limits of connections that differ from the defaults. */
  readonly httpLimits?: Partial<typeof connectionLimits>
  readonly tracing?: Tracing | undefined
}

export interface RunningApi {
  readonly port: number
  readonly services: Services
  /** Resolves once the database migrations have run. Until then requests are answered with 503. */
  readonly ready: Promise<void>
}

/** Resolves once the server listens, even if Postgres and Temporal are not reachable. `life` closes what this opens. */
export async function startApi(deps: Deps): Promise<RunningApi> {
  const { config, log, sql, life } = deps
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const services = await createServices(deps, registry)
  let isMigrated = false
  const isReady = () => isMigrated
  const app = createApp({
    config,
    log,
    httpMetrics: createHttpMetrics(registry),
    routes: serveRoutes(routes, services, createAdmit(services, createAuthenticate(services))),
    unversionedRoutes: createUnversionedRoutes({
      services,
      registry,
      routes,
      isReady,
      isDraining: () => life.isStopping,
    }),
    isReady,
    tracing: deps.tracing,
  })
  const handleRequest = app.callback()
  // The app refuses a request without a Host header itself, with the error body of the API.
  const server = createServer({ ...connectionLimits, ...deps.httpLimits, requireHostHeader: false }, handleRequest)
  // Ignores unknown expectations. Node would answer 417 without a body.
  server.on('checkExpectation', handleRequest)
  server.on('clientError', answerInvalidHttp)
  serveUpgrades(server, `${basePath}/relay/ws`, handleRequest)
  const port = await listen(server, config.port, life)
  // Before the listener, which waits for all connections.
  life.hold('relay sockets', services.relaySockets, (it) => it.stop())
  life.hold('assignments', services.assignments, (it) => it.stop())
  registerAssignmentMetrics(registry, services.assignments)
  life.hold('held reports', services.heldReports, (it) => it.stop())
  registerHeldReportMetrics(registry, services.heldReports)
  life.drainFor(config.drainSeconds * 1000)

  if (isTransactionPooled(sql))
    log.warn('the pooler in front of Postgres passes no NOTIFY on: changes reach pages and warm instances late')
  const ready = migrateWhenReachable(config.database.url, log).then(() => {
    isMigrated = true
    // From now on relays can report. Their silence before does not count.
    const limitSeconds = config.relay.healthTimeoutSeconds
    life.hold('presence', startPresence({ sql, log, role: 'api', limitSeconds, isAvailable: () => true }), (it) =>
      it.stop(),
    )
  })
  return { port, services, ready }
}

async function createServices(deps: Deps, registry: Registry): Promise<Services> {
  const { config, log, sql, life, socketLimits, tracing } = deps
  const { client: temporal } = life.hold('Temporal client', connectTemporal(config.temporal, tracing), (it) =>
    it.close(),
  )
  const maskedEmailOf = (userId: string) => findMaskedEmail(sql, userId)
  const relaySessions = createRelaySessionWorkflows(temporal, {
    taskQueue: config.temporal.taskQueue,
    settings: config.relay,
    callMillisMax: 10_000,
    findMaskedEmail: maskedEmailOf,
  })
  const deliveries = life.hold('deliveries', createDeliveries({ sql, relaySessions, log }), (it) => it.drain())
  const sealing = createSealing(config.oauthEncryptionKeys)
  const watched = createWatchedSessions(sql, log)
  const feed = life.hold('relay feed', createRelayFeed({ sql, log, limits: config.relay, watched }), (it) => it.stop())
  return {
    config,
    log,
    sql,
    temporal,
    relaySessions,
    subscriptions: createSubscriptionWorkflows(temporal, {
      taskQueue: config.temporal.taskQueue,
      callMillisMax: 10_000,
      findMaskedEmail: maskedEmailOf,
    }),
    billing: await createBilling(config, createBillingDeps(sql)),
    billingMetrics: createBillingMetrics(registry),
    streamEventMetrics: createStreamEventMetrics(registry),
    recordBillingEvent: createBillingEventRecorder(sql),
    deliveries,
    rateLimits: createRateLimits(sql, config.rateLimits),
    accessTokens: createAccessTokens(config),
    appAccessTokens: createAppAccessTokens(config),
    appProvider: await createAppProvider({ config, sql, log, sealing, metrics: createTokenMetrics(registry) }),
    recordAuditAttempt: createRecordAuditAttempt(sql),
    passwords: createPasswords(),
    mailer: createMailer({ config, log, sealing }),
    oauthProviders: createOAuthProviders(config.oauth),
    sealing,
    relaySockets: createRelaySockets({
      sql,
      log,
      feed,
      metrics: createRelaySocketMetrics(registry),
      limits: { ...relaySocketLimits, ...socketLimits },
    }),
    assignments: createAssignments({ sql, log }),
    heldReports: createHeldReports({
      sql,
      log,
      watched,
      lateSeconds: lateReportSeconds(config.relay.healthTimeoutSeconds),
    }),
    watched,
    slateImages: createSlateImages(),
    findRegionStatuses: createFindRegionStatuses(sql, config.regions),
    findPublicIncidents: createFindPublicIncidents(sql, config.regions),
    findOperatorOverview: createFindOperatorOverview(sql, config.regions),
    recordReport: batch((reports) =>
      recordReports(sql, reports, summaryAgeSecondsMax(config.relay.healthIntervalSeconds)),
    ),
  }
}

/** Answers bytes that are not a valid HTTP request with the error body of the API. */
function answerInvalidHttp(_: Error, socket: Socket): void {
  if (!socket.writable) return
  const body = JSON.stringify(invalidHttpRequest().body)
  const head = [
    'HTTP/1.1 400 Bad Request',
    `X-Request-Id: ${randomUUID()}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
