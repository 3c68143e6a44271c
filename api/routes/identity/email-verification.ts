/** Verification of an account's email address. */
import { z } from 'zod'
import { accepted, noContent, ok, route } from '../../http/route.ts'
import { EmptyObject } from '../../http/schemas.ts'
import { previewVerification, resendVerificationLink, verifyEmail } from '../../identity/email-verification.ts'

export const preview = route({
  method: 'POST',
  path: '/auth/email/verify/preview',
  summary: 'Show whether an address is verified already',
  caller: 'none',
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

export const verify = route({
  method: 'POST',
  path: '/auth/email/verify',
  summary: 'Verify an email address with a mailed link',
  caller: 'none',
  body: z.object({ token: z.string() }),
  answers: { 204: null },
  refuses: ['token_invalid'],
  handle: async ({ body, ip }, services) => {
    await verifyEmail(services, body.token, ip)
    return noContent()
  },
})

export const resend = route({
  method: 'POST',
  path: '/auth/email/resend',
  summary: 'Mail the verification link again',
  caller: 'user',
  limit: 'forgot',
  answers: { 202: EmptyObject },
  refuses: [],
  handle: async ({ caller }, services) => {
    await resendVerificationLink(services, caller.userId)
    return accepted()
  },
})
