/** The billing inbox as operators see it: what came, what became of it, and once more from the beginning. */
import { z } from 'zod'
import { audit } from '../db/audit.ts'
import {
  type BillingEvent,
  type BillingEventRow,
  type EventAsItCame,
  eventAsItCame,
  listEvents,
  replaceEvent,
  takeEventAgain,
} from '../db/billing-events.ts'
import { dismissEvent } from '../db/dismissed-events.ts'
import { billingActions } from '../platform/billing-fact.ts'
import type { BillingProvider } from '../providers/billing/provider.ts'
import { inboxEvent, tryAgain } from './billing-webhook.ts'
import { Refusal } from './refusals.ts'
import { ok, route } from './route.ts'
import { id, Nothing, storable, timestamp } from './schemas.ts'
import type { Services } from './services.ts'

const Status = z.enum(['pending', 'applied', 'ignored', 'parked', 'dead', 'dismissed'])

const EventView = z.object({
  id,
  event_key: z.string(),
  provider: z.enum(['sandbox', 'lemonsqueezy', 'stripe', 'operator']),
  type: z.string(),
  action: z.enum([...billingActions, 'grant', 'withdraw']).nullable(),
  user_id: id.nullable(),
  status: Status,
  received_at: timestamp,
  occurred_at: timestamp.nullable(),
  error: z.string().nullable(),
})

const presentEvent = (row: BillingEventRow): z.infer<typeof EventView> => ({
  id: row.id,
  event_key: row.event_key,
  provider: row.provider,
  type: row.type,
  action: row.action,
  user_id: row.user_id,
  status: row.status,
  received_at: row.received_at.toISOString(),
  occurred_at: row.occurred_at?.toISOString() ?? null,
  error: row.error,
})

const pageMax = 50

export const listBillingEvents = route({
  method: 'GET',
  path: '/admin/billing/events',
  summary: 'What providers and operators told about money, newest first',
  caller: 'operator',
  query: z.object({ status: Status.optional(), user_id: id.optional(), cursor: id.optional() }),
  answers: { 200: z.object({ events: z.array(EventView), next_cursor: id.nullable() }) },
  refuses: [],
  handle: async ({ query }, { sql }) => {
    const filter = { status: query.status, userId: query.user_id, before: query.cursor }
    const rows = await listEvents(sql, filter, pageMax + 1)
    const events = rows.slice(0, pageMax)
    return ok({
      events: events.map(presentEvent),
      next_cursor: rows.length > pageMax ? (events.at(-1)?.id ?? null) : null,
    })
  },
})

export const dismissBillingEvent = route({
  method: 'POST',
  path: '/admin/billing/events/{id}/dismiss',
  summary: 'Set a parked or dead event aside, so that nothing calls for attention to it. Safe to repeat',
  caller: 'operator',
  params: z.object({ id }),
  body: z.object({ reason: storable(200).optional() }),
  answers: { 200: z.object({ event: EventView }) },
  refuses: ['not_found', 'invalid_transition'],
  handle: async ({ params, body, ip }, { sql }) => {
    const row = (await sql.begin(async (tx) => {
      const dismissal = await dismissEvent(tx, params.id)
      if (!dismissal) throw new Refusal('not_found')
      const { row, was } = dismissal
      if (row.status !== 'dismissed')
        throw new Refusal(
          'invalid_transition',
          `The event is ${was}: only one that is parked or dead can be dismissed.`,
        )
      if (was !== 'dismissed')
        await audit(tx, {
          actor: 'operator',
          action: 'billing_event_dismissed',
          userId: row.user_id ?? undefined,
          ip,
          detail: { event_id: row.id, status: was, ...(body.reason !== undefined && { reason: body.reason }) },
        })
      return row
    })) as BillingEventRow
    return ok({ event: presentEvent(row) })
  },
})

export const replayBillingEvent = route({
  method: 'POST',
  path: '/admin/billing/events/{id}/replay',
  summary: 'Read an event again, as it came, and let its account take it. Safe to repeat',
  caller: 'operator',
  params: z.object({ id }),
  body: Nothing,
  answers: { 200: z.object({ event: EventView }) },
  refuses: ['not_found', 'temporarily_unavailable'],
  handle: async ({ params, ip }, services) => {
    const { row, owners } = await replay(params.id, ip, services)
    for (const userId of owners) services.deliveries.tell(() => services.subscriptions.tell(userId))
    return ok({ event: presentEvent(row) })
  },
})

interface Replayed {
  readonly row: BillingEventRow
  /** Whose judgement may change by it: whose it is, and whose it was. */
  readonly owners: ReadonlySet<string>
}

async function replay(eventId: string, ip: string, { sql, billing }: Services): Promise<Replayed> {
  const came = await eventAsItCame(sql, eventId)
  if (!came) throw new Refusal('not_found')
  // Only the adapter that is in use can read its own provider's events; others, and those that never had bytes, stay as they are.
  const isReadable = came.provider === billing.provider.name && came.body.length > 0
  // Before the transaction: a provider that has to be asked may take its time.
  const again = isReadable ? await readAgain(came, billing.provider) : undefined
  return sql.begin(async (tx): Promise<Replayed> => {
    const row = again ? await replaceEvent(tx, eventId, again) : await takeEventAgain(tx, eventId)
    if (!row) throw new Refusal('not_found')
    await audit(tx, {
      actor: 'operator',
      action: 'billing_event_replayed',
      userId: row.user_id ?? undefined,
      ip,
      detail: { event_id: eventId },
    })
    const owners = [came.userId, row.status === 'pending' ? row.user_id : null].filter((one) => one !== null)
    return { row, owners: new Set(owners) }
  }) as Promise<Replayed>
}

/** The event under the key that it was kept by: headers, which may have named it, are not kept. */
async function readAgain({ key, body }: EventAsItCame, provider: BillingProvider): Promise<BillingEvent> {
  const event = inboxEvent(provider.name, await provider.parse({ headers: {}, body }).catch(tryAgain), body)
  return { ...event, key, fact: event.fact && { ...event.fact, key } }
}
