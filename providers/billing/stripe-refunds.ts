/** Refunds of whole subscriptions at Stripe. */
import Stripe from 'stripe'
import { z } from 'zod'
import { storableText } from './payload.ts'
import { BillingProviderError } from './provider.ts'

type Call = <Shape extends z.ZodType>(
  shape: Shape,
  call: (stripe: Stripe) => Promise<unknown>,
) => Promise<z.infer<Shape>>

const id = storableText(200)
const reference = z.union([id, z.object({ id }).transform((object) => object.id)])

const Ended = z.object({ id, status: z.string() })
const PaidInvoices = z.object({
  data: z.array(z.object({ id, amount_paid: z.int() })),
  has_more: z.boolean(),
})
const InvoicePayments = z.object({
  data: z.array(z.object({ payment: z.object({ payment_intent: reference.nullish(), charge: reference.nullish() }) })),
})
const Refund = z.object({ id })

type Payment = { readonly payment_intent: string } | { readonly charge: string }

/** More than a subscription of two weeks has. */
const listedMax = 100

/**
 * Ends the subscription at once, so that nothing is charged any more, and then refunds each payment of its invoices in
 * full. Safe to repeat: what is ended or refunded already stays so. Rejects with {@link BillingProviderError}; a part
 * may be refunded then.
 */
export async function refundSubscription(callApi: Call, subscriptionId: string): Promise<void> {
  await callApi(Ended, (api) => endAtOnce(api, subscriptionId))
  const params = { subscription: subscriptionId, status: 'paid', limit: listedMax } as const
  const { data: invoices, has_more: hasMore } = await callApi(PaidInvoices, (api) => api.invoices.list(params))
  if (hasMore) throw new BillingProviderError('stripe has too many invoices of this subscription: refund it there')
  for (const invoice of invoices.filter((paid) => paid.amount_paid > 0)) await refundInvoice(callApi, invoice.id)
}

async function endAtOnce(api: Stripe, subscriptionId: string): Promise<unknown> {
  const subscription = await api.subscriptions.retrieve(subscriptionId)
  if (subscription.status === 'canceled' || subscription.status === 'incomplete_expired') return subscription
  return api.subscriptions.cancel(subscriptionId).catch((error: unknown) => {
    // A concurrent request ended it.
    if (error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing')
      return subscription
    throw error
  })
}

async function refundInvoice(callApi: Call, invoice: string): Promise<void> {
  const params = { invoice, status: 'paid', limit: listedMax } as const
  const { data } = await callApi(InvoicePayments, (api) => api.invoicePayments.list(params))
  const payments = data.flatMap<Payment>(({ payment: { payment_intent: intent, charge } }) =>
    intent != null ? [{ payment_intent: intent }] : charge != null ? [{ charge }] : [],
  )
  if (payments.length === 0)
    throw new BillingProviderError(`stripe knows no payment of invoice ${invoice}: refund it there`)
  for (const payment of payments) await callApi(Refund, (api) => refundPayment(api, payment))
}

const refundPayment = (api: Stripe, payment: Payment): Promise<unknown> =>
  api.refunds.create({ ...payment, reason: 'requested_by_customer' }).catch((error: unknown) => {
    if (error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'charge_already_refunded')
      return { id: 'refunded already' }
    throw error
  })
