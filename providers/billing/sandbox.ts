/**
 * The sandbox: a billing provider that works offline and takes no money. It stores its own subscriptions and reports
 * changes like a real provider, by signed webhooks that may get lost.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SandboxSubscription } from '../../domain/billing/sandbox-subscription.ts'
import { createListedSubscription } from './payload.ts'
import { type BillingProvider, BillingProviderError, type ListedSubscription } from './provider.ts'
import { parseSandboxEvent } from './sandbox-events.ts'
import {
  applyOutcome,
  formatVersion,
  type SandboxChange,
  type SandboxOptions,
  type SandboxOutcome,
} from './sandbox-outcomes.ts'
import { isStandardWebhook, signStandardWebhook } from './signatures.ts'

export interface SandboxStore {
  insert(subscription: SandboxSubscription): Promise<void>
  find(id: string): Promise<SandboxSubscription | undefined>
  /** Returns false, without a change, if the stored `updatedAt` is not `expectedUpdatedAt`. */
  save(subscription: SandboxSubscription, expectedUpdatedAt: Date): Promise<boolean>
  list(): Promise<SandboxSubscription[]>
}

/** The subscription does not exist, its status does not allow the outcome, or it was changed concurrently. */
export class SandboxRefusedError extends Error {
  override name = 'SandboxRefusedError'
}

export interface SandboxBilling {
  readonly provider: BillingProvider
  /**
   * Plays an outcome and reports it by a webhook. Resolves with the subscription once the webhook was answered with
   * 200. Rejects with {@link SandboxRefusedError}, and with {@link BillingProviderError} if the webhook was not
   * accepted: the sandbox's subscription is changed nevertheless, and reconciliation finds it.
   * @param options `quantity` of add-ons: pays an open subscription for this many, or changes an active one to this
   *   many. `version`: refused unless the subscription still has it, so that a repeated request acts once.
   */
  act(
    subscriptionId: string,
    outcome: SandboxOutcome,
    options?: SandboxOptions & { readonly version?: string | undefined },
  ): Promise<SandboxSubscription>
}

interface Deps {
  readonly store: SandboxStore
  /** In the format `whsec_…`: all of them verify, the first one signs. */
  readonly secrets: readonly string[]
  readonly webhookUrl: string
  /** The site that has the payment pages. */
  readonly siteUrl: string
  readonly fetch?: typeof fetch
}

export function createSandboxBilling(deps: Deps): SandboxBilling {
  const { store, secrets, siteUrl } = deps
  const provider: BillingProvider = {
    name: 'sandbox',
    verify: (delivery, now) => isStandardWebhook(delivery, secrets, now),
    parse: async (delivery) => parseSandboxEvent(delivery),
    resolve: async (delivery) => parseSandboxEvent(delivery),
    checkout: async ({ userId, kind, quantity }) => {
      const [id, at] = [`sub_${randomUUID()}`, new Date()]
      const unpaid = { status: 'open', invoiceId: null, periodStart: null, periodEnd: null } as const
      await store.insert({ id, userId, kind, quantity, ...unpaid, createdAt: at, updatedAt: at })
      return `${siteUrl}/sandbox/checkout/${id}`
    },
    // The sandbox has no customers besides the accounts, and one page for all subscriptions.
    parseCustomer: () => undefined,
    portal: async () => `${siteUrl}/sandbox/subscriptions`,
    cancel: (id) => cancelSubscription(id, store, act),
    refund: (id) => refundSubscription(id, store, act),
    list: async () => (await store.list()).flatMap(toListedSubscriptions),
    // It has no credentials.
    check: async () => {},
  }
  const act: SandboxBilling['act'] = async (id, outcome, options = {}) => {
    const subscription = await store.find(id)
    if (!subscription) throw new SandboxRefusedError('This subscription does not exist.')
    if (options.version !== undefined && options.version !== formatVersion(subscription))
      throw new SandboxRefusedError('The subscription has changed since. Reload it and try again.')
    // The time increases with every change, so that the webhooks have an order even if the clock is set back.
    const at = new Date(Math.max(Date.now(), subscription.updatedAt.getTime() + 1))
    const change = applyOutcome(subscription, outcome, at, `inv_${randomUUID()}`, options)
    if (!change)
      throw new SandboxRefusedError(
        `The outcome ${outcome} is not possible for a subscription that is ${subscription.status}.`,
      )
    if (!(await store.save(change.next, subscription.updatedAt)))
      throw new SandboxRefusedError('The subscription was changed at the same time. Reload it and try again.')
    await sendWebhook(deps, buildWebhookBody(change))
    return change.next
  }
  return { provider, act }
}

/** Like at Stripe, a subscription with an outstanding payment ends at once. */
async function cancelSubscription(id: string, store: SandboxStore, act: SandboxBilling['act']): Promise<void> {
  const subscription = await requireSubscription(id, store)
  if (isCancelled(subscription)) return
  const outcome = subscription.status === 'past_due' ? 'end' : 'cancel'
  await actOnce(subscription, outcome, isCancelled, store, act)
}

/** A payment that is outstanding is not collected. */
async function refundSubscription(id: string, store: SandboxStore, act: SandboxBilling['act']): Promise<void> {
  const subscription = await requireSubscription(id, store)
  if (hasEnded(subscription)) return
  const outcome = subscription.status === 'past_due' ? 'end' : 'refund'
  await actOnce(subscription, outcome, hasEnded, store, act)
}

const hasEnded = ({ status }: SandboxSubscription): boolean => status === 'ended'
const isCancelled = (subscription: SandboxSubscription): boolean =>
  subscription.status === 'cancelled' || hasEnded(subscription)

async function requireSubscription(id: string, store: SandboxStore): Promise<SandboxSubscription> {
  const subscription = await store.find(id)
  if (!subscription) throw new BillingProviderError('the sandbox has no such subscription')
  return subscription
}

/** @param isDone whether a concurrent request, which changes the version, has had the same effect. */
async function actOnce(
  subscription: SandboxSubscription,
  outcome: SandboxOutcome,
  isDone: (subscription: SandboxSubscription) => boolean,
  store: SandboxStore,
  act: SandboxBilling['act'],
): Promise<void> {
  const { id } = subscription
  try {
    await act(id, outcome, { version: formatVersion(subscription) })
  } catch (error) {
    if (!(error instanceof SandboxRefusedError)) throw error
    if (!isDone(await requireSubscription(id, store))) throw new BillingProviderError(`the sandbox: ${error.message}`)
  }
}

function buildWebhookBody({ type, next }: SandboxChange): Buffer {
  const isActivation = type === 'subscription.activated'
  const hasInvoice = isActivation || type.startsWith('payment.')
  const body = {
    type,
    occurred_at: next.updatedAt,
    data: {
      user_id: next.userId,
      subscription_id: next.id,
      kind: next.kind,
      ...(next.kind === 'addon' && (isActivation || type === 'addon.updated') && { quantity: next.quantity }),
      ...(hasInvoice && { invoice_id: next.invoiceId }),
      ...(type === 'payment.refunded' && { amount: 'full' }),
      // A payment event has no period: the stored period may be that of an older invoice.
      ...(!type.startsWith('payment.') && { period_start: next.periodStart, period_end: next.periodEnd }),
    },
  }
  return Buffer.from(JSON.stringify(body))
}

const attemptsMax = 3
const attemptMillisMax = 5000
const pauseMillis = 250

async function sendWebhook(
  { secrets: [secret = ''], webhookUrl, fetch: send = fetch }: Deps,
  body: Buffer,
): Promise<void> {
  const id = `msg_${randomUUID()}`
  let failure = ''
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    if (attempt > 1) await sleep(pauseMillis * (attempt - 1))
    const timestamp = String(Math.floor(Date.now() / 1000))
    const signature = `v1,${signStandardWebhook(secret, id, timestamp, body)}`
    try {
      const response = await send(webhookUrl, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': timestamp,
          'webhook-signature': signature,
        },
        body: new Uint8Array(body),
        redirect: 'manual',
        signal: AbortSignal.timeout(attemptMillisMax),
      })
      await response.body?.cancel()
      if (response.status === 200) return
      failure = `was answered ${response.status}`
    } catch {
      failure = 'could not be delivered'
    }
  }
  throw new BillingProviderError(`the sandbox's webhook ${failure}`)
}

const actions = { active: 'activate', past_due: 'payment_failed', cancelled: 'cancelled', ended: 'downgrade' } as const

function toListedSubscriptions(subscription: SandboxSubscription): ListedSubscription[] {
  const { id, userId, kind, quantity, status, invoiceId, periodStart, periodEnd, updatedAt } = subscription
  if (status === 'open') return []
  return [
    createListedSubscription(userId, {
      action: actions[status],
      provider: 'sandbox',
      subscriptionId: id,
      kind,
      at: updatedAt.getTime(),
      quantity: kind === 'addon' ? quantity : null,
      ...((status === 'active' || status === 'past_due') && { invoiceId }),
      periodStart: periodStart?.getTime() ?? null,
      periodEnd: periodEnd?.getTime() ?? null,
    }),
  ]
}
