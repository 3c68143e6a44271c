/** Change of a password by its owner, who knows the present one. */
import { recordAuditEntry } from '../../db/audit.ts'
import { revokeOtherAuthSessions } from '../../db/identity/auth-sessions.ts'
import { deleteMailTokens } from '../../db/identity/mail-tokens.ts'
import { findCredentials, setPassword } from '../../db/identity/users.ts'
import { Refusal } from '../http/refusals.ts'
import type { User } from './access-tokens.ts'
import { checkOwnPassword, lockProvenAccount } from './owner-proof.ts'
import type { PasswordClient } from './passwords.ts'
import { sendSecurityMail } from './security-mails.ts'
import type { Services } from './services.ts'

interface PasswordChange {
  readonly currentPassword: string
  readonly newPassword: string
}

/**
 * Ends all other auth sessions and links that could change the password or the address. Refuses with
 * `password_not_set`, `invalid_credentials` and `rate_limited`.
 */
export async function changePassword(
  services: Services,
  user: User,
  { currentPassword, newPassword }: PasswordChange,
  client: PasswordClient,
): Promise<void> {
  const { sql, passwords } = services
  const credentials = await findCredentials(sql, user.userId)
  if (!credentials?.passwordHash) throw new Refusal('password_not_set')
  const proof = await checkOwnPassword(services, credentials, { user, password: currentPassword, ...client })
  const passwordHash = await passwords.hash(newPassword, client)
  await sql.begin(async (tx) => {
    await lockProvenAccount(tx, user, proof)
    await setPassword(tx, user.userId, passwordHash)
    const revoked = await revokeOtherAuthSessions(tx, user, 'password_changed')
    await deleteMailTokens(tx, user.userId, ['reset_password', 'change_email'])
    const entry = { initiator: 'user', userId: user.userId, ip: client.ip } as const
    await recordAuditEntry(tx, { ...entry, action: 'password_changed', detail: { sign_ins_ended: revoked } })
    await sendSecurityMail(tx, services, user.userId, { subject: 'password_changed' })
  })
}
