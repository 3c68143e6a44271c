/** One billing event for operators, and the list by provider. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startApi, statusAndCode } from '../../../support/api.ts'
import { billingEvent, type EventsReply, findEvent, sandboxSender } from '../../../support/billing.ts'
import { operator, operatorPassword } from '../../../support/relays.ts'

const api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword })
const provider = sandboxSender(api)

const show = (id: string) =>
  api.get<{ event: Record<string, unknown> }>(`/admin/billing/events/${id}`, { headers: operator })

test('an event is shown with its subscription and its normalised form, and without the bytes of the provider', async () => {
  const [key, userId] = [randomUUID(), randomUUID()]
  const sent = billingEvent('subscription.activated', { user_id: userId, subscription_id: 'sub_1' })
  expect((await provider.send(sent, { id: key })).status).toBe(200)
  const listed = await findEvent(api, key)
  const { status, body } = await show(listed?.id ?? '')
  expect(status).toBe(200)
  expect(body.event).toEqual({
    ...listed,
    status: 'parked',
    user_ref: userId,
    subscription_id: 'sub_1',
    attempts: 0,
    next_attempt_at: null,
    applied_at: null,
    normalised: expect.objectContaining({ key, action: 'activate', subscriptionId: 'sub_1' }),
  })
})

test('an event that could not be read has no normalised form', async () => {
  const [row] = await api.sql<{ id: string }[]>`
    insert into billing_events (provider, event_key, type, body, status, error)
    values ('stripe', ${randomUUID()}, 'x', 'secret', 'parked', 'is unreadable') returning id`
  const { body } = await show(row?.id ?? '')
  expect(body.event).toMatchObject({ normalised: null, subscription_id: null, error: 'is unreadable' })
  expect(JSON.stringify(body)).not.toContain('secret')
})

test('an unknown event is not found, and events are shown to operators only', async () => {
  const id = randomUUID()
  expect(statusAndCode(await show(id))).toEqual([404, 'not_found'])
  expect(statusAndCode(await api.get(`/admin/billing/events/${id}`))).toEqual([401, 'invalid_operator'])
})

test('the list has only the events of a provider when it is asked for', async () => {
  for (const name of ['stripe', 'lemonsqueezy'])
    await api.sql`
      insert into billing_events (provider, event_key, type, body, status)
      values (${name}, ${randomUUID()}, 'x', '', 'ignored')`
  const list = (query: string) => api.get<EventsReply>(`/admin/billing/events${query}`, { headers: operator })
  const { events } = (await list('?provider=lemonsqueezy')).body
  expect(events.map((event) => event.provider)).toEqual(['lemonsqueezy'])
  expect(statusAndCode(await list('?provider=unknown'))).toEqual([400, 'invalid_request'])
})
