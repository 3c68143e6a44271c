/** Verification of an account's email address. */
import { z } from 'zod'
import { accepted, noContent, ok } from '../../http/replies.ts'
import { EmptyObject } from '../../http/schemas.ts'
import { previewVerification, resendVerificationLink, verifyEmail } from '../../identity/email-verification.ts'
import { route } from '../route.ts'

export const preview = route.none({
  id: 'previewVerification',
  summary: 'Show whether an address is verified already',
  description:
    'Shows whether the address of a mailed link is verified already, so that a page of an old link can say so. Changes nothing.',
  body: z.object({ token: z.string() }),
  answers: {
    200: z.object({
      already_verified: z
        .boolean()
        .describe(
          'Whether the address is verified, by this link or otherwise. A used link is known for a day after it expires.',
        ),
    }),
  },
  refuses: ['token_invalid'],
  handle: async ({ body }, services) => ok({ already_verified: await previewVerification(services, body.token) }),
})

export const verify = route.none({
  id: 'verifyEmail',
  summary: 'Verify an email address with a mailed link',
  description: 'Proves that the user receives mail at the address. The token works once, within 24 hours.',
  body: z.object({ token: z.string() }),
  answers: { 204: null },
  refuses: ['token_invalid'],
  handle: async ({ body, ip }, services) => {
    await verifyEmail(services, body.token, ip)
    return noContent()
  },
})

export const resend = route.user({
  id: 'resendVerification',
  summary: 'Mail the verification link again',
  description:
    'Mails another verification link. Does nothing if the address is verified. Where the service offers a free test time, which needs a link of ours, it is also mailed to an address that only a sign-in provider verified. Safe to repeat.',
  answers: { 202: EmptyObject },
  refuses: [],
  handle: async ({ caller }, services) => {
    await resendVerificationLink(services, caller.userId)
    return accepted()
  },
})
