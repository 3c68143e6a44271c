/** Password reset. */
import { z } from 'zod'
import { oauthProviderNames } from '../../../providers/oauth/provider.ts'
import { accepted, noContent, ok } from '../../http/replies.ts'
import { EmptyObject } from '../../http/schemas.ts'
import { previewPasswordReset, requestPasswordReset, resetPassword } from '../../identity/password-reset.ts'
import { NewPassword } from '../../identity/passwords.ts'
import { route } from '../route.ts'
import { EmailAddress } from '../schemas.ts'

export const forgot = route.none({
  id: 'requestPasswordReset',
  summary: 'Request a link to reset the password',
  description:
    'Mails a link that is valid for 30 minutes, if the address has an account. The reply is always 202 and does not reveal whether it has one. Safe to repeat; each request replaces the previous link.',
  body: z.object({ email: EmailAddress }),
  answers: { 202: EmptyObject },
  refuses: [],
  examples: { requests: { owner: { summary: 'The address of an account', value: { email: 'streamer@example.com' } } } },
  handle: async ({ body, ip }, services) => {
    await requestPasswordReset(services, body.email, ip)
    return accepted()
  },
})

export const preview = route.none({
  id: 'previewPasswordReset',
  summary: 'Show what a password reset changes',
  description:
    'Shows what the reset changes besides the password, so that a page can say so before it asks for one. The link stays valid. Refused with `token_invalid` for a used, expired or unknown token.',
  secret: true,
  body: z.object({ token: z.string() }),
  answers: {
    200: z.object({
      linked_accounts: z
        .array(z.object({ provider: z.enum(oauthProviderNames), stays: z.boolean() }))
        .describe(
          'The linked provider accounts. One stays linked if its provider has verified the address of the account.',
        ),
      replaces_stream_token: z
        .boolean()
        .describe(
          'Whether the stream token is replaced and the relays end: at the first reset by the owner of the address, if another person may have created the account.',
        ),
    }),
  },
  refuses: ['token_invalid'],
  handle: async ({ body }, services) => {
    const { linkedIdentities, replacesStreamToken } = await previewPasswordReset(services, body.token)
    return ok({ linked_accounts: linkedIdentities, replaces_stream_token: replacesStreamToken })
  },
})

export const reset = route.none({
  id: 'resetPassword',
  summary: 'Set a new password with a mailed link',
  description:
    'Sets the password with the token of a mailed link, and ends every auth session of the account. The token works once, within 30 minutes.',
  body: z.object({ token: z.string(), password: NewPassword }),
  answers: { 204: null },
  refuses: ['token_invalid'],
  handle: async ({ body, ip, incoming: { socket } }, services) => {
    await resetPassword(services, body, { ip, socket })
    return noContent()
  },
})
