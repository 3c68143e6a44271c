/** Refunds of whole subscriptions at Stripe. */
import { expect, test } from 'vitest'
import { BillingProviderError } from '../../../providers/billing/provider.ts'
import { createStripe } from '../../../providers/billing/stripe.ts'
import { type ApiRequest, startBillingApiDouble } from '../../support/billing-api.ts'
import { createStripeAccount, stripeConfig, stripeSubscription } from '../../support/billing-stripe.ts'

const api = await startBillingApiDouble()
const provider = createStripe({ ...stripeConfig, apiUrl: api.url })

const writesSince = (from: number) =>
  api.requests.slice(from).flatMap(({ method, path }) => (method === 'GET' ? [] : [`${method} ${path}`]))

test('a refund ends the subscription before it pays back, and can be repeated', async () => {
  const account = createStripeAccount(stripeSubscription('sub_1'))
  api.answer = account.answer
  const from = api.requests.length
  await provider.refund('sub_1')
  expect(writesSince(from)).toEqual(['DELETE /v1/subscriptions/sub_1', 'POST /v1/refunds'])
  expect(account.subscriptions.get('sub_1')?.status).toBe('canceled')
  await provider.refund('sub_1')
  expect(account.refunds).toEqual(['pi_of_in_of_sub_1'])
})

test('a subscription without a payment is ended, and nothing is refunded', async () => {
  const account = createStripeAccount(stripeSubscription('sub_1'))
  const answerOthers = account.answer
  api.answer = (request: ApiRequest) =>
    request.path === '/v1/invoices'
      ? { json: { object: 'list', data: [{ id: 'in_1', amount_paid: 0 }], has_more: false } }
      : answerOthers(request)
  await provider.refund('sub_1')
  expect([account.subscriptions.get('sub_1')?.status, account.refunds]).toEqual(['canceled', []])
})

test('an invoice that was paid by other means fails with its name', async () => {
  const account = createStripeAccount(stripeSubscription('sub_1'))
  api.answer = (request: ApiRequest) =>
    request.path === '/v1/invoice_payments'
      ? { json: { object: 'list', data: [{ payment: { type: 'payment_record' } }] } }
      : account.answer(request)
  await expect(provider.refund('sub_1')).rejects.toThrow('stripe knows no payment of invoice in_of_sub_1')
})

test('an unknown subscription, and a refund that Stripe refuses, fail', async () => {
  const account = createStripeAccount(stripeSubscription('sub_1'))
  api.answer = account.answer
  await expect(provider.refund('sub_none')).rejects.toThrow(BillingProviderError)
  api.failWith('status 401', ({ path }) => path === '/v1/refunds')
  await expect(provider.refund('sub_1')).rejects.toThrow('stripe answered 401')
  api.recover()
  await provider.refund('sub_1')
  expect(account.refunds).toEqual(['pi_of_in_of_sub_1'])
})
