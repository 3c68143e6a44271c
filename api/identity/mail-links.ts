/** Links mailed to the address of an account. Following one proves that the user reads the mail of that address. */
import type { Sql } from '../../db/connection.ts'
import {
  consumeMailToken,
  findMailTokenOwner,
  insertEmailChangeToken,
  insertMailToken,
  type MailPurpose,
  mailTokenSeconds,
} from '../../db/identity/mail-tokens.ts'
import { lockUser } from '../../db/identity/users.ts'
import { Refusal } from '../http/refusals.ts'
import { createSecretToken, hashSecretToken } from './secret-tokens.ts'
import type { Services } from './services.ts'

/** The pages of the site that the links open. */
const pages: Readonly<Record<MailPurpose, string>> = {
  verify_email: 'verify-email',
  reset_password: 'reset-password',
  change_email: 'confirm-email',
}

/**
 * Mails a link to the address of the account, if there is anything to mail: see {@link insertMailToken}. The caller
 * does not learn whether a mail was sent. Runs in the transaction that locked the account's row.
 * @param userId undefined for no account, which takes the same time.
 */
export async function sendMailLink(
  sql: Sql,
  { config, mailer }: Pick<Services, 'config' | 'mailer'>,
  purpose: Exclude<MailPurpose, 'change_email'>,
  userId: string | undefined,
): Promise<void> {
  const token = createSecretToken()
  const to = await insertMailToken(sql, {
    tokenHash: hashSecretToken(token),
    purpose,
    userId,
    isForTrials: config.timeBank.trialSeconds > 0,
  })
  if (to === undefined) return
  await mailer.send(sql, userId ?? null, {
    to,
    subject: purpose,
    link: `${config.siteUrl}/${pages[purpose]}?token=${token}`,
    expiresAt: expiryOf(purpose),
  })
}

/**
 * Mails a link that changes the account's address to the new one. Runs in the transaction that locked the account's
 * row.
 * @returns false if enough links are valid, so that none was mailed.
 */
export async function sendEmailChangeLink(
  sql: Sql,
  { config, mailer }: Pick<Services, 'config' | 'mailer'>,
  userId: string,
  newEmail: string,
): Promise<boolean> {
  const token = createSecretToken()
  if (!(await insertEmailChangeToken(sql, { tokenHash: hashSecretToken(token), userId, newEmail }))) return false
  const link = `${config.siteUrl}/${pages.change_email}?token=${token}`
  await mailer.send(sql, userId, { to: newEmail, subject: 'change_email', link, expiresAt: expiryOf('change_email') })
  return true
}

/** When a link that is created now stops working, for the text of its mail. The database decides. */
const expiryOf = (purpose: MailPurpose): string => new Date(Date.now() + mailTokenSeconds[purpose] * 1000).toISOString()

/** @returns the user's id. The link stays valid. Refuses with `token_invalid`. */
export async function findMailLinkOwner(sql: Sql, purpose: MailPurpose, token: string): Promise<string> {
  const userId = await findMailTokenOwner(sql, { tokenHash: hashSecretToken(token), purpose })
  if (userId === undefined) throw new Refusal('token_invalid')
  return userId
}

/**
 * Locks the account's row and consumes the link.
 * @returns the address that it was mailed to. Refuses with `token_invalid`.
 */
export async function consumeMailLink(sql: Sql, purpose: MailPurpose, token: string, userId: string): Promise<string> {
  await lockUser(sql, userId)
  const email = await consumeMailToken(sql, { tokenHash: hashSecretToken(token), purpose })
  if (email === undefined) throw new Refusal('token_invalid')
  return email
}
