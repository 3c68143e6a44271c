/** Operators' access to the billing inbox: list, dismiss and replay events. */
import { z } from 'zod'
import { recordAuditEntry } from '../../../db/audit.ts'
import { dismissEvent } from '../../../db/billing/dismissed-events.ts'
import { type BillingEventRow, listEvents } from '../../../db/billing/events.ts'
import { findStoredEvent, type ReplacedEvent, replaceEvent, type StoredEvent } from '../../../db/billing/replays.ts'
import { billingEventActions, billingEventStatuses, billingSources } from '../../../domain/billing/event.ts'
import type { ReceivedBillingEvent } from '../../../domain/billing/received-event.ts'
import { type BillingProvider, BillingProviderError } from '../../../providers/billing/provider.ts'
import { rebuildReceivedEvent } from '../../../providers/billing/received-event.ts'
import { pageOf, present } from '../../http/present.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import type { Services } from '../../services.ts'
import { route } from '../route.ts'
import { maskedEmail, ReasonOnly, reasonDetail } from '../schemas.ts'

const Status = z.enum(billingEventStatuses)

export const EventView = z
  .object({
    id,
    event_key: z.string(),
    provider: z.enum(billingSources),
    type: z.string(),
    action: z.enum(billingEventActions).nullable(),
    user_id: id.nullable(),
    masked_email: maskedEmail,
    status: Status,
    received_at: timestamp,
    occurred_at: timestamp.nullable(),
    error: z.string().nullable(),
  })
  .meta({ id: 'BillingEvent' })

const pageMax = 50

export const listBillingEvents = route.operator({
  id: 'listBillingEvents',
  summary: 'List billing events',
  description: 'Events of billing providers and operators, newest first, 50 a page.',
  query: z.object({
    status: Status.optional(),
    provider: z.enum(billingSources).optional(),
    user_id: id.optional(),
    cursor: id.optional(),
  }),
  answers: { 200: z.object({ events: z.array(EventView), next_cursor: id.nullable() }) },
  refuses: [],
  handle: async ({ query }, { sql }) => {
    const { status, provider, user_id: userId, cursor: before } = query
    const filter = { status, provider, userId, before }
    const rows = await listEvents(sql, filter, pageMax + 1)
    const presentRow = (row: BillingEventRow) => present(EventView, row)
    const { items: events, next_cursor } = pageOf(rows, { size: pageMax, presentRow, cursorOf: (row) => row.id })
    return ok({ events, next_cursor })
  },
})

export const dismissBillingEvent = route.operator({
  id: 'dismissBillingEvent',
  summary: 'Dismiss a billing event',
  description:
    'Marks a parked or dead event as one that needs no attention. Any other event is refused with `invalid_transition`. Safe to repeat.',
  params: z.object({ id }),
  body: ReasonOnly,
  answers: { 200: z.object({ event: EventView }) },
  refuses: ['not_found', 'invalid_transition'],
  handle: async ({ params, body, ip }, { sql }) => {
    const row = (await sql.begin(async (tx) => {
      const dismissal = await dismissEvent(tx, params.id)
      if (!dismissal) throw new Refusal('not_found')
      const { row, statusBefore } = dismissal
      if (row.status !== 'dismissed')
        throw new Refusal('invalid_transition', {
          message: `The event is ${statusBefore}. Only a parked or dead event can be dismissed.`,
        })
      if (statusBefore !== 'dismissed')
        await recordAuditEntry(tx, {
          initiator: 'operator',
          action: 'billing_event_dismissed',
          userId: row.userId ?? undefined,
          ip,
          detail: { event_id: row.id, status: statusBefore, ...reasonDetail(body) },
        })
      return row
    })) as BillingEventRow
    return ok({ event: present(EventView, row) })
  },
})

export const replayBillingEvent = route.operator({
  id: 'replayBillingEvent',
  summary: 'Replay a billing event',
  description:
    'Parses the stored bytes of an event again and applies the result, for example after a change of the configuration. Safe to repeat.',
  params: z.object({ id }),
  body: ReasonOnly,
  answers: { 200: z.object({ event: EventView }) },
  refuses: ['not_found', 'temporarily_unavailable'],
  handle: async ({ params, body, ip }, services) => {
    const { row, accounts } = await replay({ eventId: params.id, ip, ...body }, services)
    for (const userId of accounts) services.deliveries.signal(() => services.subscriptions.wake(userId))
    return ok({ event: present(EventView, row) })
  },
})

interface ReplayRequest {
  readonly eventId: string
  readonly ip: string
  readonly reason?: string | undefined
}

async function replay(request: ReplayRequest, { sql, billing }: Services): Promise<ReplacedEvent> {
  const { eventId, ip } = request
  const stored = await findStoredEvent(sql, eventId)
  if (!stored) throw new Refusal('not_found')
  // Requests to the provider may take long, so they are made outside the transaction.
  const event = await parseAgain(stored, billing.provider)
  return sql.begin(async (tx): Promise<ReplacedEvent> => {
    const replaced = await replaceEvent(tx, eventId, event)
    if (!replaced) throw new Refusal('not_found')
    await recordAuditEntry(tx, {
      initiator: 'operator',
      action: 'billing_event_replayed',
      userId: replaced.row.userId ?? undefined,
      ip,
      detail: { event_id: eventId, ...reasonDetail(request) },
    })
    return replaced
  }) as Promise<ReplacedEvent>
}

/**
 * Parses the stored bytes. An event without bytes, or of a provider that is not configured, stays as it is. If a
 * request to the provider fails, an event that has an effect stays as it is, and any other one is resolved by a job.
 */
async function parseAgain({ event, status }: StoredEvent, provider: BillingProvider): Promise<ReceivedBillingEvent> {
  const { body } = event
  if (event.provider !== provider.name || body === null || body.length === 0) return event
  const delivery = { headers: {}, body }
  const parsed = rebuildReceivedEvent(event, await provider.parse(delivery), body)
  if (!parsed.unresolved) return parsed
  try {
    return rebuildReceivedEvent(event, await provider.resolve(delivery), body)
  } catch (error) {
    if (!(error instanceof BillingProviderError)) throw error
    if (status === 'pending' || status === 'applied')
      throw new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '5' } })
    return parsed
  }
}
