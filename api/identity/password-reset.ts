/** Reset of a forgotten password by a mailed link, which revokes all other access to the account. */
import { setTimeout as sleep } from 'node:timers/promises'
import { recordAuditEntry } from '../../db/audit.ts'
import { proveTrialAddress } from '../../db/billing/trials.ts'
import { lockUserByEmail, setPassword } from '../../db/identity/users.ts'
import {
  isOwnershipProved,
  type LinkedIdentity,
  listLinkedIdentities,
  secureAccount,
} from '../../db/transactions/secure-account.ts'
import { consumeMailLink, findMailLinkOwner, sendMailLink } from './mail-links.ts'
import type { PasswordClient } from './passwords.ts'
import { sendSecurityMail } from './security-mails.ts'
import type { Services } from './services.ts'
import { createStreamToken } from './stream-tokens.ts'

/** Longer than the work takes, which is one write more for an address with an account. */
const responseMillis = 50

/**
 * Mails a reset link if the address has an account. An address without one takes the same statements, a write and the
 * same time, so that the response time does not reveal which addresses have accounts.
 */
export async function requestPasswordReset(services: Services, email: string, ip: string): Promise<void> {
  const responseTime = sleep(responseMillis)
  const userId = (await services.sql.begin(async (tx) => {
    const account = await lockUserByEmail(tx, email)
    await sendMailLink(tx, services, 'reset_password', account)
    return account
  })) as string | undefined
  await services.recordAuditAttempt({ initiator: 'user', action: 'password_reset_requested', userId, ip })
  await responseTime
}

export interface PasswordResetPreview {
  readonly linkedIdentities: readonly LinkedIdentity[]
  readonly replacesStreamToken: boolean
}

/** Shows the effects of a reset. The link stays valid. Refuses with `token_invalid`. */
export async function previewPasswordReset(
  { sql }: Pick<Services, 'sql'>,
  token: string,
): Promise<PasswordResetPreview> {
  const userId = await findMailLinkOwner(sql, 'reset_password', token)
  const [linkedIdentities, isProved] = await Promise.all([
    listLinkedIdentities(sql, userId),
    isOwnershipProved(sql, userId),
  ])
  return { linkedIdentities, replacesStreamToken: !isProved }
}

/**
 * Sets the password and leaves the account to the owner of its address: see {@link secureAccount}. Refuses with
 * `token_invalid`.
 */
export async function resetPassword(
  services: Services,
  { token, password }: { token: string; password: string },
  client: PasswordClient,
): Promise<void> {
  const { sql, sealing, passwords, deliveries } = services
  // Checked before the hashing, which is expensive: requests without a valid link do not cause any.
  const userId = await findMailLinkOwner(sql, 'reset_password', token)
  const passwordHash = await passwords.hash(password, client)
  const { disconnected } = await sql.begin(async (tx) => {
    const email = await consumeMailLink(tx, 'reset_password', token, userId)
    const secured = await secureAccount(tx, sealing, userId, {
      email,
      newStreamToken: createStreamToken(),
      reason: 'password_reset',
    })
    await proveTrialAddress(tx, sealing, userId, email)
    await setPassword(tx, userId, passwordHash)
    const detail = { sign_ins_ended: secured.authSessionsRevoked, unlinked: secured.unlinked.join(' ') }
    await recordAuditEntry(tx, { initiator: 'user', action: 'password_reset', userId, ip: client.ip, detail })
    await sendSecurityMail(tx, services, userId, { subject: 'password_reset' })
    if (secured.unlinked.length > 0)
      await sendSecurityMail(tx, services, userId, { subject: 'sign_in_method_removed', methods: secured.unlinked })
    return secured
  })
  for (const session of disconnected) deliveries.send(session)
}
