/** The schemas that several operations share, by their names in the OpenAPI document. */
import { z } from 'zod'
import { TokenSet } from '../identity/token-sets.ts'
import { IngestSummaryView } from '../ingest-summary-view.ts'
import { SessionView } from '../relay-session-view.ts'
import { TransitionView } from '../relay-transition-view.ts'
import { EventView } from '../routes/admin-billing.ts'
import { InstanceView } from '../routes/admin-instances.ts'
import { JobView } from '../routes/admin-jobs.ts'
import { RegionView } from '../routes/admin-regions.ts'
import { OperatorSession } from '../routes/admin-sessions.ts'
import { OperatorSubscription } from '../routes/admin-subscriptions.ts'
import { EntryView, OperatorEntryView } from '../routes/audit.ts'
import { SubscriptionView } from '../routes/billing-subscriptions.ts'
import { Image } from '../routes/regions.ts'
import { SessionRecord } from '../routes/relay-history.ts'
import { SubscriptionView as SandboxSubscription } from '../routes/sandbox.ts'
import { EntitlementView, UserView } from '../routes/session-summary.ts'
import { UsageView } from '../routes/usage.ts'

const components: Readonly<Record<string, z.ZodType>> = {
  AuditEntry: EntryView,
  BillingEvent: EventView,
  Entitlement: EntitlementView,
  IngestSummary: IngestSummaryView,
  Instance: InstanceView,
  Job: JobView,
  OperatorAuditEntry: OperatorEntryView,
  OperatorRegion: RegionView,
  OperatorRelaySession: OperatorSession,
  OperatorSubscription,
  RelayImage: Image,
  RelaySession: SessionView,
  RelaySessionRecord: SessionRecord,
  RelayTransition: TransitionView,
  SandboxSubscription,
  Subscription: SubscriptionView,
  TokenSet,
  Usage: UsageView,
  User: UserView,
}

/** Gives the schemas their names. The conversion to JSON Schema then refers to them instead of copying them. */
export function registerComponents(): void {
  for (const [id, schema] of Object.entries(components))
    z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), id })
}
