/** Erasure of an account by an operator. */
import { z } from 'zod'
import { id, storableText } from '../../http/schemas.ts'
import { requestAccountErasure } from '../../identity/account-erasure.ts'
import { route } from '../route.ts'
import { EmailAddress } from '../schemas.ts'

const State = <Name extends string>(name: Name) => z.object({ state: z.literal(name) })

export const erase = route.operator({
  id: 'eraseUser',
  summary: 'Erase an account',
  description:
    'Erases an account for good, as its owner asks under data protection law. `email` confirms it: the address of the account, or null if it has none. Disables the account, ends its relays and auth sessions, and cancels its subscriptions at their provider; then a job erases it, within seconds unless one of these takes longer. Billing events stay without the account. Safe to repeat: 202 until the account is erased, then 200 for 400 days.',
  params: z.object({ id }),
  body: z.object({
    email: EmailAddress.nullable(),
    reason: storableText(500).describe('Stays in the audit after the account is erased, so do not name the person.'),
  }),
  answers: { 200: State('erased'), 202: State('scheduled') },
  refuses: ['not_found'],
  handle: async ({ params, body, ip }, services) => {
    const state = await requestAccountErasure(services, { userId: params.id, ...body, ip })
    return { status: state === 'erased' ? 200 : 202, body: { state } }
  },
})
