/** Replays by an api process that can't reach Temporal: what follows from them must be found in Postgres alone. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { type GivenUser, startApi, type TestApi } from '../../support/api.ts'
import { type EventView, findEvent } from '../../support/billing.ts'
import {
  sendAccepted,
  stripeSubscriptionDelivery,
  stripeVariables,
  waitForPlanStatus,
} from '../../support/billing-deliveries.ts'
import { stripeSubscription } from '../../support/billing-stripe.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { eventually, freePort, operator, operatorPassword } from '../../support/relays.ts'

let api: TestApi
let withoutTemporal: TestApi
beforeAll(async () => {
  api = (await startFakeRelayService({ variables: stripeVariables })).api
  withoutTemporal = await startApi({
    ...stripeVariables,
    SVC_OPERATOR_PASSWORD: operatorPassword,
    DATABASE_URL: api.services.config.database.url,
    TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}`,
  })
})

const now = Math.floor(Date.now() / 1000)

/** An account with a plan that one applied event gives it. */
async function paidAccount(): Promise<{ user: GivenUser; event: EventView }> {
  const user = await api.given.user()
  const subscriptionId = `sub_${randomUUID()}`
  await sendAccepted(api, stripeSubscriptionDelivery('created', subscriptionId, user, now))
  await waitForPlanStatus(api, user, 'active')
  const key = `evt_${subscriptionId}_created_${now}`
  const event = await eventually(
    () => findEvent(api, key),
    (seen) => seen?.status === 'applied',
  )
  if (!event) throw new Error('applied, but not to be seen')
  return { user, event }
}

const replay = async ({ id }: EventView): Promise<EventView> => {
  const path = `/admin/billing/events/${id}/replay`
  const { status, body } = await withoutTemporal.post<{ event: EventView }>(path, {}, { headers: operator })
  expect(status).toBe(200)
  return body.event
}

const replaceBody = async ({ id }: EventView, content: { type: string; data: object }) => {
  const body = Buffer.from(JSON.stringify({ id: 'evt_1', created: now, ...content }))
  await api.sql`update billing_events set body = ${body} where id = ${id}`
}

describe('the replay of an applied event ends its effect, also without a signal, if it is now', () => {
  test('parked', async () => {
    const { user, event } = await paidAccount()
    await replaceBody(event, { type: 'customer.subscription.created', data: { object: { status: 'lost' } } })
    expect(await replay(event)).toMatchObject({ status: 'parked', user_id: null })
    await waitForPlanStatus(api, user, 'none')
  })

  test('ignored', async () => {
    const { user, event } = await paidAccount()
    await replaceBody(event, { type: 'customer.created', data: { object: {} } })
    expect(await replay(event)).toMatchObject({ status: 'ignored', user_id: null })
    await waitForPlanStatus(api, user, 'none')
  })

  test("another account's", async () => {
    const [{ user, event }, other] = [await paidAccount(), await api.given.user()]
    const metadata = { user_id: other.userId, kind: 'plan' }
    const object = stripeSubscription(`sub_${randomUUID()}`, {}, { metadata })
    await replaceBody(event, { type: 'customer.subscription.created', data: { object } })
    expect(await replay(event)).toMatchObject({ status: 'pending', user_id: other.userId })
    await waitForPlanStatus(api, user, 'none')
    await waitForPlanStatus(api, other, 'active')
  })
})
