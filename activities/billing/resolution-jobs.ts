/** The job that asks the billing provider for what unresolved events leave out. */
import pLimit from 'p-limit'
import { findDueEvents } from '../../db/billing/resolution.ts'
import type { Database } from '../../db/connection.ts'
import { createUnresolvedEvents } from '../../db/transactions/resolve-billing-event.ts'
import type { Logger } from '../../platform/log.ts'
import type { BillingProvider } from '../../providers/billing/provider.ts'
import { resolveEvent, type UnresolvedEvent } from '../../providers/billing/resolution.ts'
import type { SubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import type { Job } from '../worker/jobs.ts'

interface Deps {
  readonly sql: Database
  readonly log: Logger
  readonly provider: BillingProvider
  readonly subscriptions: SubscriptionWorkflows
}

/** While the provider hangs each takes half a minute: a run ends within its lease. */
const eventsMax = 40
const concurrentMax = 4

export const billingResolutionJobs = (deps: Deps): readonly Job[] => [
  {
    name: 'resolve_billing_events',
    everySeconds: 2,
    runSecondsMax: 330,
    run: async (signal) => {
      const due = await findDueEvents(deps.sql, eventsMax)
      await pLimit(concurrentMax).map(due, (event) => resolveAndSignal(event, deps, signal))
    },
  },
]

async function resolveAndSignal(event: UnresolvedEvent, deps: Deps, signal?: AbortSignal): Promise<void> {
  const { sql, log, provider, subscriptions } = deps
  if (signal?.aborted) return
  try {
    // A signal that is lost here is sent again by the job that delivers events.
    for (const userId of await resolveEvent(event, { provider, events: createUnresolvedEvents(sql) }))
      await subscriptions.wake(userId)
  } catch (error) {
    log.warn(
      { err: error, event_id: event.id },
      'a billing event could not be resolved, or its account not be signalled',
    )
  }
}
