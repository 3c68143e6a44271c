/**
 * The subscription workflow decides what one account is entitled to. Its input is the account's billing inbox in
 * Postgres. Each time that it wakes up, for a signal or a deadline, it reads the whole inbox and only then decides, so
 * an event that was accepted before a deadline counts. Signals may be lost, repeated or reordered, and there is no
 * resume state to keep across continue-as-new.
 */

import {
  CancellationScope,
  condition,
  continueAsNew,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow'
import type { SubscriptionActivities } from '../activities/billing/subscriptions.ts'
import { type AccountEntitlement, entitlementAt, type UnresolvedPayment } from '../domain/billing/entitlement.ts'
import type { BillingEvent } from '../domain/billing/event.ts'
import type { Millis } from '../domain/millis.ts'
import * as messages from './messages.ts'
import { PlanStatusAttribute, PlanTierAttribute } from './search-attributes.ts'

const { readInbox, writeEntitlement } = proxyLocalActivities<SubscriptionActivities>({
  startToCloseTimeout: '10s',
  retry: { initialInterval: '100ms', maximumInterval: '5s' },
})

const { endRelays } = proxyActivities<SubscriptionActivities>({
  startToCloseTimeout: '15s',
  // A job repeats a failed attempt some seconds later. A retry here would delay the next events.
  retry: { maximumAttempts: 1 },
  summary: 'deliver the disconnect commands to relays',
})

/** What the workflow wrote last. */
interface WrittenEntitlement {
  readonly entitlement: AccountEntitlement
  /** When the newest relays beyond the limit end; null when there are none. */
  readonly surplusEndsAt: Millis | null
}

export async function subscription(input: messages.SubscriptionInput): Promise<void> {
  let written: WrittenEntitlement | null = null
  let wakeCount = 0
  setHandler(messages.wakeSubscription, () => {
    wakeCount += 1
  })
  setHandler(messages.subscriptionSnapshot, () => written && snapshotOf(written))

  // Cancellation is ignored: a "cancel workflow" in the Temporal UI must not end a plan that is paid for.
  await CancellationScope.nonCancellable(async () => {
    for (;;) {
      const wakeCountBefore = wakeCount
      const outcome = await updateEntitlement(input)
      if (outcome === 'account_deleted') return
      if (outcome === 'history_too_long') return continueAsNew<typeof subscription>(input)
      written = outcome
      publishDetails(written)
      if (wakeCount === wakeCountBefore) {
        if (isFinished(written)) return
        await waitForWakeOrDeadline(written, () => wakeCount > wakeCountBefore)
      }
      // Checked only after a wake or a deadline: a run whose history is long because of a long inbox alone would
      // otherwise continue as new for ever.
      if (shouldContinueAsNew(input)) return continueAsNew<typeof subscription>(input)
    }
  })
}

/**
 * Reads the inbox, decides by the present time, and writes the entitlement; repeats when the inbox changed in between.
 */
async function updateEntitlement(
  input: messages.SubscriptionInput,
): Promise<WrittenEntitlement | 'account_deleted' | 'history_too_long'> {
  const { userId } = input
  for (let attempts = 1; ; attempts += 1) {
    const inbox = await readWholeInbox(userId)
    if (inbox === 'account_deleted') return 'account_deleted'
    const { version, events, unappliedEventIds: eventIds, paymentGraceSeconds, unresolved } = inbox
    const at = Date.now()
    const entitlement = entitlementAt(events, at, paymentGraceSeconds, unresolved)
    const outcome = await writeEntitlement.executeWithOptions({ summary: describeEntitlement(entitlement) }, [
      { userId, version, eventIds, entitlement, at },
    ])
    if (outcome.type === 'gone') return 'account_deleted'
    if (outcome.type === 'outdated') {
      if (shouldContinueAsNew(input)) return 'history_too_long'
      // Lets events accumulate during a storm, so that the history of one workflow task stays short.
      if (attempts % 3 === 0) await sleep('1s', { summary: 'wait for more events' })
      continue
    }
    if (outcome.disconnectedRelays > 0) await endRelays({ userId }).catch(() => undefined)
    return { entitlement, surplusEndsAt: outcome.surplusEndsAt }
  }
}

interface WholeInbox {
  readonly events: readonly BillingEvent[]
  readonly unappliedEventIds: readonly string[]
  readonly unresolved: readonly UnresolvedPayment[]
  /** The account's version before the first page was read. A change after that makes the write outdated. */
  readonly version: number
  readonly paymentGraceSeconds: number
}

async function readWholeInbox(userId: string): Promise<WholeInbox | 'account_deleted'> {
  let whole: WholeInbox | undefined
  for (let afterSeq = 0; ; ) {
    const page = await readInbox.executeWithOptions({ summary: 'read the inbox' }, [{ userId, afterSeq }])
    if (page === null) return 'account_deleted'
    const { version, paymentGraceSeconds } = whole ?? page
    whole = {
      events: [...(whole?.events ?? []), ...page.events],
      unappliedEventIds: [...(whole?.unappliedEventIds ?? []), ...page.unappliedEventIds],
      unresolved: [...(whole?.unresolved ?? []), ...page.unresolved],
      version,
      paymentGraceSeconds,
    }
    if (page.nextSeq === null) return whole
    afterSeq = page.nextSeq
    // A timer ends the workflow task. The results of a task's local activities go to Temporal in one message of limited
    // size.
    await sleep('1ms', { summary: 'next page of the inbox' })
  }
}

/** Whether only a new event can change anything, and there is nothing to show: the workflow ends until then. */
const isFinished = (written: WrittenEntitlement): boolean =>
  written.entitlement.planTier === 'free' && written.entitlement.addons === 0 && nextDeadline(written) === null

const shouldContinueAsNew = ({ historyEventsMax }: messages.SubscriptionInput): boolean =>
  workflowInfo().continueAsNewSuggested || workflowInfo().historyLength > (historyEventsMax ?? Number.POSITIVE_INFINITY)

const nextDeadline = ({ entitlement, surplusEndsAt }: WrittenEntitlement): Millis | null => {
  const deadlines = [entitlement.changesAt, surplusEndsAt].filter((at) => at !== null)
  return deadlines.length === 0 ? null : Math.min(...deadlines)
}

async function waitForWakeOrDeadline(written: WrittenEntitlement, isWoken: () => boolean): Promise<void> {
  const deadline = nextDeadline(written)
  if (deadline === null) return condition(isWoken)
  await condition(isWoken, Math.max(1, deadline - Date.now()), { summary: describeDeadline(written) })
}

/** Shows the entitlement in the Temporal UI. */
function publishDetails(written: WrittenEntitlement): void {
  const { planTier, planStatus } = written.entitlement
  upsertSearchAttributes([
    { key: PlanTierAttribute, value: planTier },
    { key: PlanStatusAttribute, value: planStatus },
  ])
  setCurrentDetails(`**${describeEntitlement(written.entitlement)}** · ${describeDeadline(written)}`)
}

const isoTime = (at: Millis): string => new Date(at).toISOString()

function describeEntitlement(entitlement: AccountEntitlement): string {
  const { planTier, planStatus, addons, graceEndsAt, endsAt, periodEnd } = entitlement
  const suffix = addons > 0 ? `, add-ons: ${addons}` : ''
  if (graceEndsAt !== null) return `past due, downgrade at ${isoTime(graceEndsAt)}${suffix}`
  if (endsAt !== null) return `${planStatus === 'cancelled' ? 'cancelled, ' : ''}paid until ${isoTime(endsAt)}${suffix}`
  return `${planTier}${periodEnd === null ? '' : `, period until ${isoTime(periodEnd)}`}${suffix}`
}

function describeDeadline(written: WrittenEntitlement): string {
  const deadline = nextDeadline(written)
  if (deadline === null) return 'waits for new events'
  if (deadline === written.surplusEndsAt) return `newest surplus relays end at ${isoTime(deadline)}`
  const { planStatus, graceEndsAt } = written.entitlement
  return planStatus === 'past_due' && deadline === graceEndsAt
    ? `payment grace period ends at ${isoTime(deadline)}`
    : `wakes up at ${isoTime(deadline)}`
}

const snapshotOf = (written: WrittenEntitlement): messages.SubscriptionSnapshot => {
  const { planTier, planStatus, addons, graceEndsAt, endsAt } = written.entitlement
  return { planTier, planStatus, addons, graceEndsAt, endsAt, wakesAt: nextDeadline(written) }
}
