/** Replays by an api process that can't reach Temporal: what follows from them must be found in Postgres alone. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { type GivenUser, startApi, type TestApi } from '../../../support/api.ts'
import { atEnd } from '../../../support/at-end.ts'
import { type EventView, findEvent } from '../../../support/billing.ts'
import {
  sendAccepted,
  stripeSubscriptionDelivery,
  stripeVariables,
  waitForPlanStatus,
} from '../../../support/billing-deliveries.ts'
import { stripeSubscription } from '../../../support/billing-stripe.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { eventually, operator, operatorPassword, passageTo } from '../../../support/relays.ts'

let api: TestApi
let withoutTemporal: TestApi
beforeAll(async () => {
  api = (await startFakeRelayService({ variables: stripeVariables })).api
  const passage = await passageTo(`http://${inject('temporalAddress')}`)
  await passage.block()
  withoutTemporal = await startApi({
    ...stripeVariables,
    SVC_OPERATOR_PASSWORD: operatorPassword,
    DATABASE_URL: api.services.config.database.url,
    TEMPORAL_ADDRESS: new URL(passage.url).host,
  })
  // Its last signals are waited for at its end.
  atEnd(() => passage.open())
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
  // The signal that follows a replay has some seconds to take effect, after which the job looks for its event.
  await api.sql`update users set inbox_changed_at = inbox_changed_at - interval '10 s' where inbox_changed_at is not null`
  await api.sql`update billing_events set received_at = received_at - interval '10 s' where id = ${id}`
  return body.event
}

const replaceBody = async ({ id }: EventView, content: { type: string; data: object }) => {
  const body = Buffer.from(JSON.stringify({ id: 'evt_1', created: now, ...content }))
  await api.sql`update billing_events set body = ${body} where id = ${id}`
}

describe.concurrent('the replay of an applied event ends its effect, also without a signal, if it is now', () => {
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
