/** Change of an account's address: a link that is mailed to the new address confirms it. */
import { recordAuditEntry } from '../../db/audit.ts'
import { proveTrialAddress } from '../../db/billing/trials.ts'
import type { Sql } from '../../db/connection.ts'
import { deleteMailTokens } from '../../db/identity/mail-tokens.ts'
import { changeEmail, findCredentials, findVerifiedEmail, isEmailTakenError } from '../../db/identity/users.ts'
import { Refusal } from '../http/refusals.ts'
import type { User } from './access-tokens.ts'
import { consumeMailLink, findMailLinkOwner, sendEmailChangeLink } from './mail-links.ts'
import { lockProvenAccount, proveOwner } from './owner-proof.ts'
import type { PasswordClient } from './passwords.ts'
import { sendSecurityMail } from './security-mails.ts'
import type { Services } from './services.ts'

interface EmailChangeRequest {
  readonly email: string
  readonly password: string | undefined
}

/**
 * Mails the link. The result is the same for an address that another account has: only the reader of its mail learns
 * that, when confirming. Refuses like {@link proveOwner}, and with `invalid_request` for the present address.
 */
export async function requestEmailChange(
  services: Services,
  user: User,
  { email, password }: EmailChangeRequest,
  client: PasswordClient,
): Promise<void> {
  const proof = await proveOwner(services, { user, password, ...client })
  await services.sql.begin(async (tx) => {
    const account = await lockProvenAccount(tx, user, proof)
    if (account.email === email)
      throw new Refusal('invalid_request', { message: 'body field email: is the address of this account already' })
    if (!(await sendEmailChangeLink(tx, services, user.userId, email))) return
    const { ip } = client
    await recordAuditEntry(tx, { initiator: 'user', action: 'email_change_requested', userId: user.userId, ip })
  })
}

/**
 * Replaces the address, informs the former one if it was verified, and ends all links that were mailed before. Refuses
 * with `token_invalid`, and with `email_taken` if another account has the address.
 */
export async function confirmEmailChange(services: Services, token: string, ip: string): Promise<void> {
  const userId = await findMailLinkOwner(services.sql, 'change_email', token)
  try {
    await services.sql.begin((tx) => replaceEmail(tx, services, { userId, token, ip }))
  } catch (error) {
    throw isEmailTakenError(error) ? new Refusal('email_taken') : error
  }
}

async function replaceEmail(
  tx: Sql,
  services: Services,
  { userId, token, ip }: { userId: string; token: string; ip: string },
): Promise<void> {
  const email = await consumeMailLink(tx, 'change_email', token, userId)
  const former = (await findCredentials(tx, userId))?.email ?? null
  const formerVerified = await findVerifiedEmail(tx, userId)
  if (!(await changeEmail(tx, userId, email))) throw new Refusal('email_taken')
  await proveTrialAddress(tx, services.sealing, userId, email)
  await deleteMailTokens(tx, userId)
  await recordAuditEntry(tx, { initiator: 'user', action: 'email_changed', userId, ip, detail: { former } })
  await sendSecurityMail(tx, services, userId, { subject: 'email_changed' }, formerVerified)
}
