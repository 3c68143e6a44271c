/** A transition in the replies to a session's owner and to operators. */
import { z } from 'zod'
import type { TransitionRow } from '../../db/relay/sessions.ts'
import { relayStates } from '../../domain/relay/session.ts'
import { timestamp } from '../http/schemas.ts'

export const TransitionView = z
  .object({
    from: z.enum(relayStates),
    to: z.enum(relayStates),
    reason: z.string(),
    initiator: z.string(),
    public_reason: z.string().nullable().describe('What an operator who caused it says to the owner.'),
    at: timestamp,
  })
  .meta({ id: 'RelayTransition' })

export const presentTransition = (row: TransitionRow): z.infer<typeof TransitionView> => ({
  from: row.fromState,
  to: row.toState,
  reason: row.reason,
  initiator: row.initiator,
  public_reason: row.publicReason,
  at: row.at.toISOString(),
})
