/** Confirmation of a merge: links a provider account to the account that has its email address. */
import { z } from 'zod'
import { ok } from '../../http/replies.ts'
import { id } from '../../http/schemas.ts'
import { confirmMerge } from '../../identity/merges.ts'
import { createTokenSet, TokenSet } from '../../identity/token-sets.ts'
import { route } from '../route.ts'

export const confirm = route.none({
  id: 'confirmMerge',
  summary: 'Confirm a merge',
  description:
    'Links the provider account to the existing account, after its owner has proved to be it: by the password, or by an OAuth round trip with intent `merge` through a provider that is already linked. The request lasts 10 minutes.',
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
  examples: {
    requests: {
      password: {
        summary: 'With the password',
        value: { merge_token: 'merge_example_7dRx1vLp', password: 'correct horse battery staple' },
      },
      oauth: { summary: 'After an OAuth round trip', value: { merge_token: 'merge_example_7dRx1vLp' } },
    },
  },
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
