/** The billing inbox as operators see it: what came, what became of it, and once more from the beginning. */
import { z } from 'zod'
import { recordAuditEntry } from '../../db/audit.ts'
import { type BillingEventRow, listEvents, type ReceivedBillingEvent } from '../../db/billing-events.ts'
import { findStoredEvent, type ReplacedEvent, replaceEvent, type StoredEvent } from '../../db/billing-replays.ts'
import { dismissEvent } from '../../db/dismissed-events.ts'
import { billingEventActions } from '../../domain/billing-event.ts'
import { type BillingProvider, BillingProviderError } from '../../providers/billing/provider.ts'
import { rebuildReceivedEvent } from '../../providers/billing/received-event.ts'
import { Refusal } from '../http/refusals.ts'
import { ok, route } from '../http/route.ts'
import { id, Nothing, storable, timestamp } from '../http/schemas.ts'
import type { Services } from '../services.ts'

const Status = z.enum(['unresolved', 'pending', 'applied', 'ignored', 'parked', 'dead', 'dismissed'])

const EventView = z.object({
  id,
  event_key: z.string(),
  provider: z.enum(['sandbox', 'lemonsqueezy', 'stripe', 'operator']),
  type: z.string(),
  action: z.enum(billingEventActions).nullable(),
  user_id: id.nullable(),
  status: Status,
  received_at: timestamp,
  occurred_at: timestamp.nullable(),
  error: z.string().nullable(),
})

const presentEvent = (row: BillingEventRow): z.infer<typeof EventView> => ({
  id: row.id,
  event_key: row.eventKey,
  provider: row.provider,
  type: row.type,
  action: row.action,
  user_id: row.userId,
  status: row.status,
  received_at: row.receivedAt.toISOString(),
  occurred_at: row.occurredAt?.toISOString() ?? null,
  error: row.error,
})

const pageMax = 50

export const listBillingEvents = route({
  method: 'GET',
  path: '/admin/billing/events',
  summary: 'Billing events of providers and operators, newest first',
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
        throw new Refusal('invalid_transition', {
          message: `The event is ${was}: only one that is parked or dead can be dismissed.`,
        })
      if (was !== 'dismissed')
        await recordAuditEntry(tx, {
          initiator: 'operator',
          action: 'billing_event_dismissed',
          userId: row.userId ?? undefined,
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
    const { row, accounts } = await replay(params.id, ip, services)
    for (const userId of accounts) services.deliveries.signal(() => services.subscriptions.wake(userId))
    return ok({ event: presentEvent(row) })
  },
})

async function replay(eventId: string, ip: string, { sql, billing }: Services): Promise<ReplacedEvent> {
  const stored = await findStoredEvent(sql, eventId)
  if (!stored) throw new Refusal('not_found')
  // Before the transaction: a provider that has to be asked may take its time.
  const again = await readAgain(stored, billing.provider)
  return sql.begin(async (tx): Promise<ReplacedEvent> => {
    const replaced = await replaceEvent(tx, eventId, again)
    if (!replaced) throw new Refusal('not_found')
    await recordAuditEntry(tx, {
      initiator: 'operator',
      action: 'billing_event_replayed',
      userId: replaced.row.userId ?? undefined,
      ip,
      detail: { event_id: eventId },
    })
    return replaced
  }) as Promise<ReplacedEvent>
}

/**
 * The event as it is understood now. What has no bytes, or those of a provider that is not in use, stays as it was understood
 * before. Where the provider has to be asked and does not answer, an event that has an effect stays as it is, and any other one
 * is asked about again by the job.
 */
async function readAgain({ event, status }: StoredEvent, provider: BillingProvider): Promise<ReceivedBillingEvent> {
  const { body } = event
  if (event.provider !== provider.name || body === null || body.length === 0) return event
  const delivery = { headers: {}, body }
  const read = rebuildReceivedEvent(event, await provider.parse(delivery), body)
  if (!read.unresolved) return read
  try {
    return rebuildReceivedEvent(event, await provider.resolve(delivery), body)
  } catch (error) {
    if (!(error instanceof BillingProviderError)) throw error
    if (status === 'pending' || status === 'applied')
      throw new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '5' } })
    return read
  }
}
