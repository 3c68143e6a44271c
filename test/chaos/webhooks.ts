/**
 * The billing provider: decides on the events of each account, and delivers each until it is accepted, some twice or
 * late.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import type { BillingEventBody, EventData } from '../support/billing.ts'
import type { DeliveryRecord } from './journal.ts'
import type { BillingStep } from './plan.ts'
import type { Plugin } from './plugins.ts'
import type { Requests } from './requests.ts'

interface Account {
  /** Null before the first subscription, and after the end of the last one. */
  subscriptionId: string | null
  /** The invoice whose payment failed last; null when it is settled. */
  openInvoiceId: string | null
  lastEventAt: number
}

interface Sending {
  /** How often the event is delivered, also after it was accepted. */
  readonly copies: number
  readonly delayMillis: number
}

export class BillingProvider {
  readonly #accounts = new Map<string, Account>()
  readonly #webhook: Webhook

  constructor(
    readonly requests: Requests,
    webhookSecret: string,
  ) {
    this.#webhook = new Webhook(webhookSecret)
  }

  /** Takes the next step of an account's subscription where the step is possible, and resolves when it is delivered. */
  async bill({ userId }: Plugin, step: BillingStep, addons: number, sending: Sending): Promise<void> {
    const account = this.#accounts.get(userId) ?? { subscriptionId: null, openInvoiceId: null, lastEventAt: 0 }
    this.#accounts.set(userId, account)
    const event = this.#decide(userId, account, step, addons)
    if (!event) return
    const record = { id: `msg_${randomUUID()}`, userId, body: event, firstSentAt: 0, acceptedAt: [] }
    this.requests.journal.deliveries.set(record.id, record)
    await this.#deliver(record, sending)
  }

  #decide(userId: string, account: Account, step: BillingStep, addons: number): BillingEventBody | undefined {
    const { subscriptionId, openInvoiceId } = account
    const create = (type: string, data: EventData): BillingEventBody => {
      // Two events of one moment would be ordered by their severity.
      account.lastEventAt = Math.max(Date.now(), account.lastEventAt + 1)
      return { type, occurred_at: new Date(account.lastEventAt).toISOString(), data: { user_id: userId, ...data } }
    }
    if (step === 'set_addons')
      return create('addon.updated', { subscription_id: `addon_${userId}`, kind: 'addon', quantity: addons })
    if (step === 'subscribe') {
      account.subscriptionId ??= `sub_${randomUUID()}`
      account.openInvoiceId = null
      return create('subscription.activated', { subscription_id: account.subscriptionId, kind: 'plan' })
    }
    if (subscriptionId === null) return undefined
    const plan = { subscription_id: subscriptionId, kind: 'plan' } as const
    if (step === 'fail') {
      account.openInvoiceId = openInvoiceId ?? `inv_${randomUUID()}`
      return create('payment.failed', { ...plan, invoice_id: account.openInvoiceId })
    }
    if (step === 'recover') {
      if (openInvoiceId === null) return undefined
      account.openInvoiceId = null
      return create('payment.recovered', { ...plan, invoice_id: openInvoiceId })
    }
    account.subscriptionId = null
    account.openInvoiceId = null
    return step === 'refund'
      ? create('payment.refunded', { ...plan, amount: 'full' })
      : create('subscription.downgraded', plan)
  }

  async #deliver(record: DeliveryRecord, { copies, delayMillis }: Sending): Promise<void> {
    await sleep(delayMillis)
    record.firstSentAt = Date.now()
    for (let copy = 0; copy < copies; copy++) await this.#deliverOnce(record)
  }

  /** Signs each attempt, since signatures expire. */
  async #deliverOnce({ id, body, acceptedAt }: DeliveryRecord): Promise<void> {
    const text = JSON.stringify(body)
    for (;;) {
      const at = new Date()
      const headers = {
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
        'webhook-signature': this.#webhook.sign(id, at, text),
      }
      const call = { kind: 'webhook', method: 'post', path: '/billing/webhook', text, headers } as const
      const reply = await this.requests.once(call)
      if (reply?.status === 200) acceptedAt.push(Date.now())
      if (reply || this.requests.signal.aborted) return
      await sleep(500)
    }
  }
}
