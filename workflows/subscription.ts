/**
 * The subscription actor: what an account has paid for, and until when. Its inbox is in Postgres and its state is the sum of
 * everything there, so signals only wake it, and nothing depends on their order. Each time it wakes, for news or for a
 * deadline, it reads its inbox first and only then judges: what was accepted before the deadline counts.
 */
import { defineSearchAttributeKey } from '@temporalio/common'
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
import type { SubscriptionActivities } from '../activities/subscriptions.ts'
import * as messages from './messages.ts'
import {
  learn,
  type Millis,
  nothingKnown,
  type Standing,
  type SubscriptionState,
  standingAt,
  type UnresolvedPayment,
} from './subscription-state.ts'

const PlanTier = defineSearchAttributeKey('PlanTier', 'KEYWORD')

const { readInbox, writeEntitlement } = proxyLocalActivities<SubscriptionActivities>({
  startToCloseTimeout: '10s',
  retry: { initialInterval: '100ms', maximumInterval: '5s' },
})

const { endRelays } = proxyActivities<SubscriptionActivities>({
  startToCloseTimeout: '15s',
  // Not again and again: what fails here a job does some seconds later, and news must not wait for it.
  retry: { maximumAttempts: 1 },
  summary: 'tell the relays that they are to end',
})

/** An account as its actor last judged it. */
interface Account {
  /** Null as long as the inbox has not been read. */
  readonly standing: Standing | null
  readonly surplusEndsAt: Millis | null
}

export async function subscription(input: messages.SubscriptionInput): Promise<void> {
  let account: Account = { standing: null, surplusEndsAt: null }
  let told = 0
  setHandler(messages.news, () => {
    told += 1
  })
  setHandler(messages.standing, () => snapshotOf(account))

  // It can't be cancelled: a plan that was paid for does not end because somebody pressed a button in the Temporal UI.
  await CancellationScope.nonCancellable(async () => {
    for (;;) {
      const heard = told
      const settled = await settle(input)
      if (settled === 'gone') return
      if (settled === 'too_long') return continueAsNew<typeof subscription>(input)
      account = settled
      show(account)
      if (told === heard) {
        if (isOver(account)) return
        await untilNewsOrDeadline(account, () => told > heard)
      }
      // Only when there is a reason to look again: a run that a long inbox alone makes long would hand on for ever. Each look
      // reads the whole inbox, so nothing has to be handed on.
      if (mayHandOn(input)) return continueAsNew<typeof subscription>(input)
    }
  })
}

/**
 * Reads everything, judges it by the time it is now, and writes the judgement; looks again when something came between, in
 * another run when this one is long by then.
 */
async function settle(input: messages.SubscriptionInput): Promise<Account | 'gone' | 'too_long'> {
  const { userId } = input
  for (let looks = 1; ; looks += 1) {
    const inbox = await readWholeInbox(userId)
    if (inbox === 'gone') return 'gone'
    const at = Date.now()
    const standing = standingAt(inbox.state, at, inbox.paymentGraceSeconds, inbox.unresolved)
    const outcome = await writeEntitlement.executeWithOptions({ summary: inWords(standing) }, [
      { userId, version: inbox.version, taken: inbox.taken, entitlement: standing, at },
    ])
    if (outcome.type === 'gone') return 'gone'
    if (outcome.type === 'look_again') {
      if (mayHandOn(input)) return 'too_long'
      // In a storm of events it waits for more of them together, or one task's history would grow without bound.
      if (looks % 3 === 0) await sleep('1s', { summary: 'lets a storm of events pass' })
      continue
    }
    if (outcome.ended > 0) await endRelays({ userId }).catch(() => undefined)
    return { standing, surplusEndsAt: outcome.surplusEndsAt }
  }
}

interface WholeInbox {
  readonly state: SubscriptionState
  readonly taken: readonly string[]
  readonly unresolved: readonly UnresolvedPayment[]
  /** The account's when the reading began: whatever is written meanwhile makes our own write look again. */
  readonly version: number
  readonly paymentGraceSeconds: number
}

async function readWholeInbox(userId: string): Promise<WholeInbox | 'gone'> {
  let whole: WholeInbox | undefined
  for (let afterSeq = 0; ; ) {
    const page = await readInbox.executeWithOptions({ summary: 'read the inbox' }, [{ userId, afterSeq }])
    if (page === null) return 'gone'
    const { version, paymentGraceSeconds } = whole ?? page
    const state = page.facts.reduce(learn, whole?.state ?? nothingKnown)
    const taken = [...(whole?.taken ?? []), ...page.taken]
    const unresolved = [...(whole?.unresolved ?? []), ...(page.unresolved ?? [])]
    whole = { state, taken, unresolved, version, paymentGraceSeconds }
    if (page.nextSeq === null) return whole
    afterSeq = page.nextSeq
    // What one task has read goes to Temporal in one message, and a message has a greatest size: each page has a task of its own.
    await sleep('1ms', { summary: 'turns a page of the inbox' })
  }
}

const isOver = ({ standing, surplusEndsAt }: Account): boolean =>
  standing?.isPlainlyFree === true && surplusEndsAt === null

const mayHandOn = ({ historyEventsMax }: messages.SubscriptionInput): boolean =>
  workflowInfo().continueAsNewSuggested || workflowInfo().historyLength > (historyEventsMax ?? Number.POSITIVE_INFINITY)

const wakesAt = ({ standing, surplusEndsAt }: Account): Millis | null => {
  const times = [standing?.changesAt ?? null, surplusEndsAt].filter((one) => one !== null)
  return times.length === 0 ? null : Math.min(...times)
}

async function untilNewsOrDeadline(account: Account, hasNews: () => boolean): Promise<void> {
  const at = wakesAt(account)
  if (at === null) return condition(hasNews)
  await condition(hasNews, Math.max(1, at - Date.now()), { summary: nextInWords(account) })
}

/** Makes the account's standing readable in the Temporal UI. */
function show(account: Account): void {
  if (account.standing === null) return
  upsertSearchAttributes([{ key: PlanTier, value: account.standing.planTier }])
  setCurrentDetails(`**${inWords(account.standing)}** · ${nextInWords(account)}`)
}

const moment = (at: Millis): string => new Date(at).toISOString()

function inWords({ planTier, planStatus, addons, graceEndsAt, endsAt, periodEnd }: Standing): string {
  const extra = addons > 0 ? `, add-ons: ${addons}` : ''
  if (graceEndsAt !== null) return `past due, downgrade at ${moment(graceEndsAt)}${extra}`
  if (endsAt !== null) return `${planStatus === 'cancelled' ? 'cancelled, ' : ''}paid until ${moment(endsAt)}${extra}`
  return `${planTier}${periodEnd === null ? '' : `, period until ${moment(periodEnd)}`}${extra}`
}

function nextInWords(account: Account): string {
  const at = wakesAt(account)
  if (at === null) return 'waits for news'
  if (at === account.surplusEndsAt) return `newest surplus relays end at ${moment(at)}`
  return account.standing?.planStatus === 'past_due' && at === account.standing.graceEndsAt
    ? `payment grace ends at ${moment(at)}`
    : `looks again at ${moment(at)}`
}

const snapshotOf = (account: Account): messages.SubscriptionSnapshot | null =>
  account.standing && {
    planTier: account.standing.planTier,
    planStatus: account.standing.planStatus,
    addons: account.standing.addons,
    graceEndsAt: account.standing.graceEndsAt,
    endsAt: account.standing.endsAt,
    wakesAt: wakesAt(account),
  }
