/**
 * The sandbox: a billing provider that works offline and takes no money. It keeps its own side of each subscription,
 * and tells of changes as a real one does, by webhooks that it signs and that may get lost.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { listed } from './payload.ts'
import { type BillingProvider, BillingProviderError, type ListedSubscription } from './provider.ts'
import { parseSandboxEvent } from './sandbox-events.ts'
import {
  type Outcome,
  outcomeOf,
  type SandboxOptions,
  type SandboxOutcome,
  type SandboxSubscription,
  versionOf,
} from './sandbox-outcomes.ts'
import { isStandardWebhook, signStandardWebhook } from './signatures.ts'

/** Where the sandbox keeps its side. */
export interface SandboxStore {
  open(subscription: SandboxSubscription): Promise<void>
  find(id: string): Promise<SandboxSubscription | undefined>
  /** False, and nothing saved, when somebody else has changed it since it was `seenAt`, its `updatedAt` of then. */
  save(subscription: SandboxSubscription, seenAt: Date): Promise<boolean>
  all(): Promise<SandboxSubscription[]>
}

/** The subscription can't go there from where it is, or there is none. */
export class SandboxRefused extends Error {
  override name = 'SandboxRefused'
}

export interface SandboxBilling {
  readonly provider: BillingProvider
  /**
   * Plays what happens at a provider, and tells of it by a webhook. Resolves with the subscription once the webhook was
   * answered with 200. Rejects with {@link SandboxRefused} when this can't happen to it now, and with
   * {@link BillingProviderError} when nobody took the webhook: the sandbox's side stays changed, for reconciliation.
   * @param options `quantity` of add-ons: paying an open one buys so many, paying an active one changes to so many.
   *   `version`: refused unless the subscription still has it, so that a request that is sent twice acts once.
   */
  act(
    subscriptionId: string,
    outcome: SandboxOutcome,
    options?: SandboxOptions & { readonly version?: string | undefined },
  ): Promise<SandboxSubscription>
}

interface Needs {
  readonly store: SandboxStore
  /** `whsec_` each: all are believed, the first signs. */
  readonly secrets: readonly string[]
  readonly webhookUrl: string
  /** Where people pay. */
  readonly siteUrl: string
  readonly fetch?: typeof fetch
}

export function createSandboxBilling(needs: Needs): SandboxBilling {
  const { store, secrets, siteUrl } = needs
  const provider: BillingProvider = {
    name: 'sandbox',
    verify: (delivery, now) => isStandardWebhook(delivery, secrets, now),
    parse: async (delivery) => parseSandboxEvent(delivery),
    resolve: async (delivery) => parseSandboxEvent(delivery),
    checkout: async ({ userId, kind, quantity }) => {
      const [id, at] = [`sub_${randomUUID()}`, new Date()]
      const bare = { status: 'open', invoiceId: null, periodStart: null, periodEnd: null } as const
      await store.open({ id, userId, kind, quantity, ...bare, createdAt: at, updatedAt: at })
      return `${siteUrl}/sandbox/checkout/${id}`
    },
    // Its customers are the accounts themselves, and it has one page for all that they bought.
    customerIn: () => undefined,
    portal: async () => `${siteUrl}/sandbox/subscriptions`,
    cancel: (id) => cancel(id, store, act),
    list: async () => (await store.all()).flatMap(listedOf),
  }
  const act: SandboxBilling['act'] = async (id, outcome, options = {}) => {
    const seen = await store.find(id)
    if (!seen) throw new SandboxRefused('There is no such subscription.')
    if (options.version !== undefined && options.version !== versionOf(seen))
      throw new SandboxRefused('It has changed since this was asked for.')
    // Never the same time twice, so that its webhooks have an order whatever the clock does.
    const at = new Date(Math.max(Date.now(), seen.updatedAt.getTime() + 1))
    const done = outcomeOf(seen, outcome, at, `inv_${randomUUID()}`, options)
    if (!done) throw new SandboxRefused(`This can't happen to a subscription that is ${seen.status}.`)
    if (!(await store.save(done.next, seen.updatedAt))) throw new SandboxRefused('It has just changed.')
    await send(needs, bodyOf(done))
    return done.next
  }
  return { provider, act }
}

/** As Stripe does it: one with an outstanding payment is ended at once. */
async function cancel(id: string, store: SandboxStore, act: SandboxBilling['act']): Promise<void> {
  const seen = await store.find(id)
  if (!seen) throw new BillingProviderError('the sandbox has no such subscription')
  if (seen.status === 'cancelled' || seen.status === 'ended') return
  try {
    await act(id, seen.status === 'past_due' ? 'end' : 'cancel', { version: versionOf(seen) })
  } catch (error) {
    // Of several requests at once one cancels it, and the others find it done.
    if (!(error instanceof SandboxRefused)) throw error
    const { status } = (await store.find(id)) ?? {}
    if (status !== 'cancelled' && status !== 'ended') throw new BillingProviderError(`the sandbox: ${error.message}`)
  }
}

/** As the contract has it, with what each kind of event tells. */
function bodyOf({ type, next }: Outcome): Buffer {
  const isActivation = type === 'subscription.activated'
  const tellsInvoice = isActivation || type.startsWith('payment.')
  const body = {
    type,
    occurred_at: next.updatedAt,
    data: {
      user_id: next.userId,
      subscription_id: next.id,
      kind: next.kind,
      ...(next.kind === 'addon' && (isActivation || type === 'addon.updated') && { quantity: next.quantity }),
      ...(tellsInvoice && { invoice_id: next.invoiceId }),
      ...(type === 'payment.refunded' && { amount: 'full' }),
      // A payment is for its own time: told with the period of an older invoice, it could not be told from that one's.
      ...(!type.startsWith('payment.') && { period_start: next.periodStart, period_end: next.periodEnd }),
    },
  }
  return Buffer.from(JSON.stringify(body))
}

const triesMax = 3
const tryMillisMax = 5000
const pauseMillis = 250

async function send({ secrets: [secret = ''], webhookUrl, fetch: ask = fetch }: Needs, body: Buffer): Promise<void> {
  const id = `msg_${randomUUID()}`
  let failure = ''
  for (let count = 1; count <= triesMax; count += 1) {
    if (count > 1) await sleep(pauseMillis * (count - 1))
    const timestamp = String(Math.floor(Date.now() / 1000))
    const signature = `v1,${signStandardWebhook(secret, id, timestamp, body)}`
    try {
      const answer = await ask(webhookUrl, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': timestamp,
          'webhook-signature': signature,
        },
        body: new Uint8Array(body),
        redirect: 'manual',
        signal: AbortSignal.timeout(tryMillisMax),
      })
      await answer.body?.cancel()
      if (answer.status === 200) return
      failure = `was answered ${answer.status}`
    } catch {
      failure = 'could not be delivered'
    }
  }
  throw new BillingProviderError(`the sandbox's webhook ${failure}`)
}

const actionOf = { active: 'activate', past_due: 'payment_failed', cancelled: 'cancelled', ended: 'downgrade' } as const

function listedOf(one: SandboxSubscription): ListedSubscription[] {
  if (one.status === 'open') return []
  return [
    listed(one.userId, {
      action: actionOf[one.status],
      provider: 'sandbox',
      subscriptionId: one.id,
      kind: one.kind,
      at: one.updatedAt.getTime(),
      quantity: one.kind === 'addon' ? one.quantity : null,
      ...((one.status === 'active' || one.status === 'past_due') && { invoiceId: one.invoiceId }),
      periodStart: one.periodStart?.getTime() ?? null,
      periodEnd: one.periodEnd?.getTime() ?? null,
    }),
  ]
}
