/** The API process: its services, its listener, and what it says of itself. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Database } from '../db/connection.ts'
import { findEntitlementsWithUsage } from '../db/entitlements.ts'
import { migrateWhenReachable } from '../db/migrations.ts'
import { startPresence } from '../db/presence.ts'
import { findProfiles } from '../db/profiles.ts'
import { recordReports } from '../db/relay-health.ts'
import { findLiveRelays, noLiveRelays } from '../db/relay-sessions.ts'
import { createBillingDeps } from '../db/subscriptions.ts'
import { batch } from '../platform/batch.ts'
import type { Config } from '../platform/config/config.ts'
import type { Lifecycle } from '../platform/lifecycle.ts'
import { listen } from '../platform/listener.ts'
import type { Logger } from '../platform/log.ts'
import { createSealing } from '../platform/sealing.ts'
import { connectTemporal } from '../platform/temporal.ts'
import { createBilling } from '../providers/billing/billing.ts'
import { logMailer } from '../providers/mail/mail.ts'
import { createOAuthProviders } from '../providers/oauth/providers.ts'
import { createRelaySessionWorkflows } from '../workflows/relay-session-client.ts'
import { createSubscriptionWorkflows } from '../workflows/subscription-client.ts'
import { createDeliveries } from './deliveries.ts'
import { createApp, notHttp } from './http/app.ts'
import { type BillingMetrics, createBillingMetrics } from './http/billing-metrics.ts'
import { createIdentify } from './http/callers.ts'
import { createHttpMetrics } from './http/metrics.ts'
import { createPages } from './http/pages.ts'
import { createRateLimits } from './http/rate-limits.ts'
import { createAccessTokens } from './identity/access-tokens.ts'
import { createAuditAttempts } from './identity/audit-attempts.ts'
import { createPasswords } from './identity/passwords.ts'
import { routes } from './routes.ts'
import type { Glance, Services } from './services.ts'

interface Needs {
  readonly config: Config
  readonly log: Logger
  readonly sql: Database
  readonly life: Lifecycle
}

export interface RunningApi {
  readonly port: number
  readonly services: Services
  /** Resolves once the database is up to date; requests are answered with 503 before. */
  readonly ready: Promise<void>
}

/** Resolves once it listens, whether or not Postgres and Temporal are there. What it holds open ends with `life`. */
export async function startApi({ config, log, sql, life }: Needs): Promise<RunningApi> {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const services = await createServices({ config, log, sql, life }, createBillingMetrics(registry))
  let isUpToDate = false
  const isReady = () => isUpToDate
  const app = createApp({
    services,
    identify: createIdentify(services),
    httpMetrics: createHttpMetrics(registry),
    routes,
    pages: createPages({ services, registry, routes, isReady, isDraining: () => life.isStopping }),
    isReady,
  })
  const answer = app.callback()
  // The app itself refuses a request without a host, in the contract's words.
  const server = createServer(
    { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 65_000, requireHostHeader: false },
    answer,
  )
  // An expectation that nobody knows is passed over: Node's own 417 has no body.
  server.on('checkExpectation', answer)
  server.on('clientError', refuseUnreadable)
  const port = await listen(server, config.port, life)
  life.drainFor(config.drainSeconds * 1000)

  const ready = migrateWhenReachable(config.database.url, log).then(() => {
    isUpToDate = true
    // Relays can report from now on: silence before is not theirs.
    const limitSeconds = config.relay.healthTimeoutSeconds
    life.hold('presence', startPresence({ sql, log, role: 'api', limitSeconds, isAvailable: () => true }), (it) =>
      it.stop(),
    )
  })
  return { port, services, ready }
}

async function createServices({ config, log, sql, life }: Needs, billingMetrics: BillingMetrics): Promise<Services> {
  const { client: temporal } = life.hold('Temporal client', connectTemporal(config.temporal), (it) => it.close())
  const relaySessions = createRelaySessionWorkflows(temporal, {
    taskQueue: config.temporal.taskQueue,
    settings: config.relay,
    callMillisMax: 10_000,
  })
  const deliveries = life.hold('deliveries', createDeliveries({ sql, relaySessions, log }), (it) => it.drain())
  return {
    config,
    log,
    sql,
    temporal,
    relaySessions,
    subscriptions: createSubscriptionWorkflows(temporal, {
      taskQueue: config.temporal.taskQueue,
      callMillisMax: 10_000,
    }),
    billing: await createBilling(config, createBillingDeps(sql)),
    billingMetrics,
    deliveries,
    rateLimits: createRateLimits(sql, config.rateLimits),
    accessTokens: createAccessTokens(config),
    auditAttempt: createAuditAttempts(sql),
    passwords: createPasswords(),
    mailer: logMailer(log, config.logLinks),
    oauthProviders: createOAuthProviders(config.oauth),
    sealing: createSealing(config.oauthEncryptionKeys),
    liveRelays: batch((userIds: string[]) => findLiveRelays(sql, userIds)),
    glance: batch((userIds: string[]) => glancesOf(sql, config, userIds)),
    recordReport: batch((reports) => recordReports(sql, reports)),
  }
}

async function glancesOf(sql: Database, { timeBank }: Config, userIds: string[]): Promise<Glance[]> {
  const asked = [...new Set(userIds)]
  const [profiles, accounts, live] = await Promise.all([
    findProfiles(sql, asked),
    findEntitlementsWithUsage(sql, asked, timeBank),
    findLiveRelays(sql, userIds),
  ])
  return userIds.map((userId, index) => ({
    profile: profiles.get(userId),
    ...accounts.get(userId),
    live: live[index] ?? noLiveRelays,
  }))
}

/** What is no HTTP request at all still gets the contract's error body. */
function refuseUnreadable(_: Error, socket: Socket): void {
  if (!socket.writable) return
  const body = JSON.stringify(notHttp().body)
  const head = [
    'HTTP/1.1 400 Bad Request',
    `X-Request-Id: ${randomUUID()}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
