/** Verification of an account's email address by a mailed link. */
import { recordAuditEntry } from '../../db/audit.ts'
import { proveTrialAddress } from '../../db/billing/trials.ts'
import { isOfVerifiedEmail } from '../../db/identity/mail-tokens.ts'
import { lockUser, verifyOwnEmail } from '../../db/identity/users.ts'
import { consumeMailLink, findMailLinkOwner, sendMailLink } from './mail-links.ts'
import { hashSecretToken } from './secret-tokens.ts'
import type { Services } from './services.ts'

/** Refuses with `token_invalid`. */
export async function verifyEmail(
  { sql, sealing }: Pick<Services, 'sql' | 'sealing'>,
  token: string,
  ip: string,
): Promise<void> {
  const userId = await findMailLinkOwner(sql, 'verify_email', token)
  await sql.begin(async (tx) => {
    const email = await consumeMailLink(tx, 'verify_email', token, userId)
    await verifyOwnEmail(tx, userId, email)
    await proveTrialAddress(tx, sealing, userId, email)
    await recordAuditEntry(tx, { initiator: 'user', action: 'email_verified', userId, ip })
  })
}

/**
 * Whether the link's address is verified already, also by this link. The link stays as it is. Refuses with
 * `token_invalid`.
 */
export async function previewVerification(
  { config, sql }: Pick<Services, 'config' | 'sql'>,
  token: string,
): Promise<boolean> {
  if (await isOfVerifiedEmail(sql, hashSecretToken(token), config.timeBank.trialSeconds > 0)) return true
  await findMailLinkOwner(sql, 'verify_email', token)
  return false
}

const nilUuid = '00000000-0000-0000-0000-000000000000'

/**
 * Mails a verification link again, unless the address is verified or enough links are still valid.
 * @param userId undefined for no account, which takes the same time.
 */
export async function resendVerificationLink(
  services: Pick<Services, 'config' | 'mailer' | 'sql'>,
  userId: string | undefined,
): Promise<void> {
  await services.sql.begin(async (tx) => {
    await lockUser(tx, userId ?? nilUuid)
    await sendMailLink(tx, services, 'verify_email', userId)
  })
}
