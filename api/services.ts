/** The services that route handlers use. Created once per process, in `start-api.ts`. */

import type { Client } from '@temporalio/client'
import type { Database } from '../db/connection.ts'
import type { HealthReport, ReportedSession } from '../db/relay/health.ts'
import type { Config } from '../platform/config/config.ts'
import type { Logger } from '../platform/log.ts'
import type { Sealing } from '../platform/sealing.ts'
import type { Billing } from '../providers/billing/billing.ts'
import type { OAuthProvider, OAuthProviderName } from '../providers/oauth/provider.ts'
import type { RelaySessionWorkflows } from '../workflows/relay-session-client.ts'
import type { SubscriptionWorkflows } from '../workflows/subscription-client.ts'
import type { RecordBillingEvent } from './billing-event-recorder.ts'
import type { Deliveries } from './deliveries.ts'
import type { RateLimits } from './http/rate-limits.ts'
import type { AccessTokens } from './identity/access-tokens.ts'
import type { RecordAuditAttempt } from './identity/audit-attempts.ts'
import type { Mailer } from './identity/mailer.ts'
import type { Passwords } from './identity/passwords.ts'
import type { Assignments } from './live/assignments.ts'
import type { RelaySockets } from './live/relay-sockets.ts'
import type { BillingMetrics } from './metrics/billing-metrics.ts'
import type { FindOperatorOverview } from './views/operator-overview.ts'
import type { FindRegionStatuses } from './views/region-statuses.ts'

export interface Services {
  readonly config: Config
  readonly sql: Database
  readonly log: Logger
  readonly rateLimits: RateLimits
  readonly accessTokens: AccessTokens
  /** For actions that unauthenticated callers can repeat without limit: counts them in a limited number of audit entries. */
  readonly recordAuditAttempt: RecordAuditAttempt
  readonly passwords: Passwords
  readonly mailer: Mailer
  /** The configured providers. */
  readonly oauthProviders: ReadonlyMap<OAuthProviderName, OAuthProvider>
  /** Encrypts tokens for storage: those of OAuth providers, streams and relay sessions. */
  readonly sealing: Sealing
  readonly temporal: Client
  readonly relaySessions: RelaySessionWorkflows
  readonly subscriptions: SubscriptionWorkflows
  readonly billing: Billing
  readonly billingMetrics: BillingMetrics
  readonly recordBillingEvent: RecordBillingEvent
  readonly deliveries: Deliveries
  readonly relaySockets: RelaySockets
  /** Takes the reports of relays without a session. */
  readonly assignments: Assignments
  /** How full the regions are, from at most a second ago. Concurrent calls share a query. */
  readonly findRegionStatuses: FindRegionStatuses
  /** From at most a second ago. Concurrent calls share the queries. */
  readonly findOperatorOverview: FindOperatorOverview
  /** Stores the health report of a relay and returns its session. Concurrent calls share a statement. */
  readonly recordReport: (report: HealthReport) => Promise<ReportedSession | undefined>
}
