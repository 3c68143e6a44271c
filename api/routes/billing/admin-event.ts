/** One billing event for operators, with its normalised form. */
import { z } from 'zod'
import { findEventDetail } from '../../../db/billing/event-detail.ts'
import { present } from '../../http/present.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import { route } from '../route.ts'
import { EventView } from './admin-events.ts'

const EventDetail = EventView.extend({
  user_ref: z.string().nullable().describe('The account that the event names, whether it exists or not.'),
  subscription_id: z.string().nullable(),
  attempts: z.int().describe('Failed requests to the provider for the state that the event refers to.'),
  next_attempt_at: timestamp.nullable(),
  applied_at: timestamp.nullable(),
  normalised: z
    .record(z.string(), z.union([z.string(), z.number(), z.null()]))
    .nullable()
    .describe('What the subscription workflow applies. Times are milliseconds since 1970.'),
})

export const showBillingEvent = route.operator({
  id: 'inspectBillingEvent',
  summary: 'Inspect a billing event',
  description: 'One billing event with its normalised form, as the subscription workflow reads it.',
  params: z.object({ id }),
  answers: { 200: z.object({ event: EventDetail }) },
  refuses: ['not_found'],
  handle: async ({ params }, { sql }) => {
    const row = await findEventDetail(sql, params.id)
    if (!row) throw new Refusal('not_found')
    return ok({ event: present(EventDetail, { ...row, normalised: row.event && { ...row.event } }) })
  },
})
