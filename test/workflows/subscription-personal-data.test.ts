/**
 * What the history of a subscription workflow reveals about a person: Temporal keeps it after the account is erased.
 */
import { beforeAll, expect, test } from 'vitest'
import { maskEmail } from '../../domain/identity/masked-email.ts'
import { subscriptionWorkflowId } from '../../workflows/messages.ts'
import { streamTokenOf } from '../support/api.ts'
import { waitForPlanStatus } from '../support/billing-deliveries.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { newCustomer } from '../support/sandbox-customers.ts'
import { untilAtRest } from '../support/workflows.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService()
})

test('the history of a plan with a failed payment has the masked address, and neither the address nor a secret', async () => {
  const { api } = service
  const customer = await newCustomer(api)
  const plan = await customer.buy({ plan: 'paid' })
  expect((await customer.play(plan, 'fail')).status).toBe(200)
  await waitForPlanStatus(api, customer, 'past_due')
  const handle = api.services.temporal.workflow.getHandle(subscriptionWorkflowId(customer.userId))
  await untilAtRest(handle)
  const text = JSON.stringify(await handle.fetchHistory())
  const decoded = [...text.matchAll(/"data":"([A-Za-z0-9+/=]+)"/g)]
    .map(([, data = '']) => Buffer.from(data, 'base64').toString())
    .join('\n')
  expect(decoded).toContain(customer.userId)
  expect(decoded).toContain(maskEmail(customer.email))
  const [name = ''] = customer.email.split('@')
  expect(decoded).toContain(plan)
  const { webhookSecrets } = api.services.config.billing
  for (const value of [name, customer.bearer, await streamTokenOf(api, customer.userId), ...webhookSecrets])
    expect([value, (text + decoded).includes(value)]).toEqual([value, false])
})
