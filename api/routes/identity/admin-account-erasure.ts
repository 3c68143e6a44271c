/** Erasure of an account by an operator. */
import { z } from 'zod'
import { route } from '../../http/route.ts'
import { EmailAddress, id, storableText } from '../../http/schemas.ts'
import { requestAccountErasure } from '../../identity/account-erasure.ts'

const State = <Name extends string>(name: Name) => z.object({ state: z.literal(name) })

export const erase = route.operator({
  summary: 'Erase an account',
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
