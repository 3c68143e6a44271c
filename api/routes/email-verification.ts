/** Verifying that an account's address is its owner's. */
import { z } from 'zod'
import { recordAuditEntry } from '../../db/audit.ts'
import { lockUser, verifyOwnEmail } from '../../db/users.ts'
import { accepted, noContent, route } from '../http/route.ts'
import { Nothing } from '../http/schemas.ts'
import { mailLink, ownerOfLink, useLink } from '../identity/mail-links.ts'
import type { Services } from '../services.ts'

export const verify = route({
  method: 'POST',
  path: '/auth/email/verify',
  summary: 'Verify the address of an account with the link from the mail',
  caller: 'none',
  body: z.object({ token: z.string() }),
  answers: { 204: null },
  refuses: ['token_invalid'],
  handle: async ({ body, ip }, { sql }) => {
    const userId = await ownerOfLink(sql, 'verify_email', body.token)
    await sql.begin(async (tx) => {
      const email = await useLink(tx, 'verify_email', body.token, userId)
      await verifyOwnEmail(tx, userId, email)
      await recordAuditEntry(tx, { initiator: 'user', action: 'email_verified', userId, ip })
    })
    return noContent()
  },
})

export const resend = route({
  method: 'POST',
  path: '/auth/email/resend',
  summary: 'Have the link that verifies the address sent again. Nothing is sent when it is verified already',
  caller: 'user',
  limit: 'forgot',
  answers: { 202: Nothing },
  refuses: [],
  handle: async ({ caller }, services) => {
    await sendVerification(services, caller.userId)
    return accepted()
  },
})

/** The id of no account. */
const noAccountId = '00000000-0000-0000-0000-000000000000'

/**
 * Mails the link once more, unless the address is verified or enough links are on their way.
 * @param userId undefined for no account, which takes the same steps.
 */
export async function sendVerification(
  services: Pick<Services, 'config' | 'mailer' | 'sql'>,
  userId: string | undefined,
): Promise<void> {
  await services.sql.begin(async (tx) => {
    await lockUser(tx, userId ?? noAccountId)
    await mailLink(tx, services, 'verify_email', userId)
  })
}
