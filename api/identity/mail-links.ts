/** Links that are mailed to an account's address, to prove that it is somebody's who reads it. */

import type { Sql } from '../../db/connection.ts'
import { consumeMailToken, findMailTokenOwner, insertMailToken, type MailPurpose } from '../../db/mail-tokens.ts'
import { lockUser } from '../../db/users.ts'
import { Refusal } from '../http/refusals.ts'
import { hashOfToken, newSecretToken } from '../routes/auth-sessions.ts'
import type { Services } from '../services.ts'

/** The site's pages that take the links. */
const pages: Readonly<Record<MailPurpose, string>> = { verify_email: 'verify-email', reset_password: 'reset-password' }

/**
 * Mails a link to the account's address, unless there is nothing to mail: see {@link insertMailToken}. Says nothing of that
 * to anybody. Within the transaction that holds the account's row; no account takes the same steps.
 */
export async function mailLink(
  sql: Sql,
  { config, mailer }: Pick<Services, 'config' | 'mailer'>,
  purpose: MailPurpose,
  userId: string | undefined,
): Promise<void> {
  const token = newSecretToken()
  const to = await insertMailToken(sql, { tokenHash: hashOfToken(token), purpose, userId })
  if (to === undefined) return
  await mailer.send({ to, subject: purpose, link: `${config.siteUrl}/${pages[purpose]}?token=${token}` })
}

/** Whose link it is that was presented. Cheap, and changes nothing. Refuses with `token_invalid`. */
export async function ownerOfLink(sql: Sql, purpose: MailPurpose, token: string): Promise<string> {
  const userId = await findMailTokenOwner(sql, { tokenHash: hashOfToken(token), purpose })
  if (userId === undefined) throw new Refusal('token_invalid')
  return userId
}

/** Uses the link up, with the account's row held. Answers the address that it proved. Refuses with `token_invalid`. */
export async function useLink(sql: Sql, purpose: MailPurpose, token: string, userId: string): Promise<string> {
  await lockUser(sql, userId)
  const email = await consumeMailToken(sql, { tokenHash: hashOfToken(token), purpose })
  if (email === undefined) throw new Refusal('token_invalid')
  return email
}
