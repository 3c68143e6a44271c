/** The schemas that several operations share, by their names in the OpenAPI document. */
import { z } from 'zod'
import { TokenSet } from '../identity/token-sets.ts'
import { EventView } from '../routes/billing/admin-events.ts'
import { OperatorSubscription } from '../routes/billing/admin-subscriptions.ts'
import { SubscriptionView as SandboxSubscription } from '../routes/billing/sandbox.ts'
import { SubscriptionView } from '../routes/billing/subscriptions.ts'
import { UsageView } from '../routes/billing/usage.ts'
import { InstanceView } from '../routes/fleet/admin-instances.ts'
import { RegionView } from '../routes/fleet/admin-regions.ts'
import { Image } from '../routes/fleet/regions.ts'
import { EntryView, OperatorEntryView } from '../routes/identity/audit.ts'
import { EntitlementView, UserView } from '../routes/identity/session-summary.ts'
import { JobView } from '../routes/operations/admin-jobs.ts'
import { OperatorSession } from '../routes/relay/admin-sessions.ts'
import { SessionRecord } from '../routes/relay/history.ts'
import { IngestSummaryView } from '../views/ingest-summary.ts'
import { SessionView } from '../views/relay-session.ts'
import { TransitionView } from '../views/relay-transition.ts'

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
