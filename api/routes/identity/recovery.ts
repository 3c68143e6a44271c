/** Password reset. */
import { z } from 'zod'
import { oauthProviderNames } from '../../../providers/oauth/provider.ts'
import { accepted, noContent, ok, route } from '../../http/route.ts'
import { EmailAddress, EmptyObject } from '../../http/schemas.ts'
import { previewPasswordReset, requestPasswordReset, resetPassword } from '../../identity/password-reset.ts'
import { NewPassword } from '../../identity/passwords.ts'

export const forgot = route.none({
  summary: 'Request a link to reset the password',
  body: z.object({ email: EmailAddress }),
  answers: { 202: EmptyObject },
  refuses: [],
  handle: async ({ body, ip }, services) => {
    await requestPasswordReset(services, body.email, ip)
    return accepted()
  },
})

export const preview = route.none({
  summary: 'Show what a password reset changes',
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
  summary: 'Set a new password with a mailed link',
  body: z.object({ token: z.string(), password: NewPassword }),
  answers: { 204: null },
  refuses: ['token_invalid'],
  handle: async ({ body, ip, incoming: { socket } }, services) => {
    await resetPassword(services, body, { ip, socket })
    return noContent()
  },
})
