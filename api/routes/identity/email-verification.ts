/** Verification of an account's email address. */
import { z } from 'zod'
import { accepted, noContent, ok, route } from '../../http/route.ts'
import { EmptyObject } from '../../http/schemas.ts'
import { previewVerification, resendVerificationLink, verifyEmail } from '../../identity/email-verification.ts'

export const preview = route.none({
  summary: 'Show whether an address is verified already',
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
  summary: 'Verify an email address with a mailed link',
  body: z.object({ token: z.string() }),
  answers: { 204: null },
  refuses: ['token_invalid'],
  handle: async ({ body, ip }, services) => {
    await verifyEmail(services, body.token, ip)
    return noContent()
  },
})

export const resend = route.user({
  summary: 'Mail the verification link again',
  answers: { 202: EmptyObject },
  refuses: [],
  handle: async ({ caller }, services) => {
    await resendVerificationLink(services, caller.userId)
    return accepted()
  },
})
