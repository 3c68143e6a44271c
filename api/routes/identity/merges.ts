/** Confirmation of a merge: links a provider account to the account that has its email address. */
import { z } from 'zod'
import { ok, route } from '../../http/route.ts'
import { id } from '../../http/schemas.ts'
import { confirmMerge } from '../../identity/merges.ts'
import { createTokenSet, TokenSet } from '../../identity/token-sets.ts'

export const confirm = route.none({
  summary: 'Confirm a merge',
  secret: true,
  params: z.object({ merge_request_id: id }),
  body: z.object({
    merge_token: z.string(),
    password: z.string().optional().describe('Omit it after an OAuth round trip with intent `merge`.'),
  }),
  answers: { 200: TokenSet.extend({ status: z.literal('signed_in') }) },
  refuses: [
    'not_found',
    'token_invalid',
    'merge_expired',
    'invalid_credentials',
    'account_disabled',
    'provider_already_linked',
  ],
  handle: async ({ params, body, ip, userAgent, incoming: { socket } }, services) => {
    const opened = await confirmMerge(services, {
      mergeRequestId: params.merge_request_id,
      mergeToken: body.merge_token,
      password: body.password,
      ip,
      userAgent,
      socket,
    })
    return ok({ status: 'signed_in', ...(await createTokenSet(services, opened)) })
  },
})
