/** The services that route handlers use. Created once per process, in `start-api.ts`. */

import type { Client } from '@temporalio/client'
import type { ReportedSession } from '../db/relay/health.ts'
import type { HealthReport } from '../db/relay/report-records.ts'
import type { Billing } from '../providers/billing/billing.ts'
import type { RelaySessionWorkflows } from '../workflows/relay-session-client.ts'
import type { SubscriptionWorkflows } from '../workflows/subscription-client.ts'
import type { AppAccessTokens } from './apps/app-access-tokens.ts'
import type { AppProvider } from './apps/provider.ts'
import type { RecordBillingEvent } from './billing-event-recorder.ts'
import type { Services as IdentityServices } from './identity/services.ts'
import type { Assignments } from './live/assignments.ts'
import type { HeldReports } from './live/held-reports.ts'
import type { RelaySockets } from './live/relay-sockets.ts'
import type { WatchedSessions } from './live/watched-sessions.ts'
import type { BillingMetrics } from './metrics/billing-metrics.ts'
import type { StreamEventMetrics } from './metrics/stream-event-metrics.ts'
import type { SlateImages } from './slates/slate-images.ts'
import type { FindOperatorOverview } from './views/operator-overview.ts'
import type { FindPublicIncidents } from './views/public-incidents.ts'
import type { FindRegionStatuses } from './views/region-statuses.ts'

export interface Services extends IdentityServices {
  readonly temporal: Client
  readonly appAccessTokens: AppAccessTokens
  /** Undefined where no apps can be connected. */
  readonly appProvider: AppProvider | undefined
  readonly relaySessions: RelaySessionWorkflows
  readonly subscriptions: SubscriptionWorkflows
  readonly billing: Billing
  readonly billingMetrics: BillingMetrics
  readonly streamEventMetrics: StreamEventMetrics
  readonly recordBillingEvent: RecordBillingEvent
  readonly relaySockets: RelaySockets
  /** Takes the reports of relays without a session. */
  readonly assignments: Assignments
  /** Holds the reports of relays with a session open. */
  readonly heldReports: HeldReports
  /** Whose relays report often. */
  readonly watched: WatchedSessions
  readonly slateImages: SlateImages
  /** How full the regions are, from at most a second ago. Concurrent calls share a query. */
  readonly findRegionStatuses: FindRegionStatuses
  /** The incidents of the last days, from at most a second ago. Concurrent calls share the queries. */
  readonly findPublicIncidents: FindPublicIncidents
  /** From at most a second ago. Concurrent calls share the queries. */
  readonly findOperatorOverview: FindOperatorOverview
  /** Stores the health report of a relay and returns its session. Concurrent calls share a statement. */
  readonly recordReport: (report: HealthReport) => Promise<ReportedSession | undefined>
}
