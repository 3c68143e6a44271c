/** What handlers may ask. Put together once, in `server.ts`. */

import type { Client } from '@temporalio/client'
import type { Database } from '../db/connection.ts'
import type { Entitlement } from '../db/entitlements.ts'
import type { ProfileRow } from '../db/profiles.ts'
import type { HealthReport, ReportedSession } from '../db/relay-health.ts'
import type { LiveRelays } from '../db/relay-sessions.ts'
import type { Usage } from '../db/usage.ts'
import type { Config } from '../platform/config/config.ts'
import type { Logger } from '../platform/log.ts'
import type { Sealing } from '../platform/sealing.ts'
import type { Billing } from '../providers/billing/billing.ts'
import type { Mailer } from '../providers/mail/mail.ts'
import type { OAuthProvider, OAuthProviderName } from '../providers/oauth/provider.ts'
import type { RelaySessionWorkflows } from '../workflows/relay-session-client.ts'
import type { SubscriptionWorkflows } from '../workflows/subscription-client.ts'
import type { Deliveries } from './deliveries.ts'
import type { BillingMetrics } from './http/billing-metrics.ts'
import type { RateLimits } from './http/rate-limits.ts'
import type { AccessTokens } from './identity/access-tokens.ts'
import type { AuditAttempts } from './identity/audit-attempts.ts'
import type { Passwords } from './identity/passwords.ts'

export interface Glance {
  readonly profile: ProfileRow | undefined
  readonly entitlement?: Entitlement
  readonly usage?: Usage
  readonly live: LiveRelays
}

export interface Services {
  readonly config: Config
  readonly sql: Database
  readonly log: Logger
  readonly rateLimits: RateLimits
  readonly accessTokens: AccessTokens
  /** Counts what strangers can repeat without end in a bounded number of audit entries. */
  readonly auditAttempt: AuditAttempts
  readonly passwords: Passwords
  readonly mailer: Mailer
  /** Whom people may sign in with; a provider that is not configured is not among them. */
  readonly oauthProviders: ReadonlyMap<OAuthProviderName, OAuthProvider>
  /** For what must not be readable in the database: the tokens of providers, streams and relay sessions. */
  readonly sealing: Sealing
  readonly temporal: Client
  readonly relaySessions: RelaySessionWorkflows
  readonly subscriptions: SubscriptionWorkflows
  readonly billing: Billing
  readonly billingMetrics: BillingMetrics
  readonly deliveries: Deliveries
  /** A user's live relays; questions of many requests share a round trip. */
  readonly liveRelays: (userId: string) => Promise<LiveRelays>
  /** All that an account shows at a glance; questions of many requests share round trips. */
  readonly glance: (userId: string) => Promise<Glance>
  /** Keeps a relay's report, and answers its session; reports of many relays share a write. */
  readonly recordReport: (report: HealthReport) => Promise<ReportedSession | undefined>
}
