/** Deletion of an account by its owner, which can be taken back during a grace period. */

import { recordAuditEntry } from '../../db/audit.ts'
import { scheduleDeletion, withdrawDeletion } from '../../db/identity/account-deletion.ts'
import { revokeOtherAuthSessions } from '../../db/identity/auth-sessions.ts'
import { deleteMailTokens } from '../../db/identity/mail-tokens.ts'
import { lockUser } from '../../db/identity/users.ts'
import { disconnectAll } from '../../db/relay/commands.ts'
import type { User } from './access-tokens.ts'
import { requireAliveAuthSession } from './auth-sessions.ts'
import { lockProvenAccount, proveOwner } from './owner-proof.ts'
import type { PasswordClient } from './passwords.ts'
import { sendSecurityMail } from './security-mails.ts'
import type { Services } from './services.ts'

/**
 * Ends the relays, signs out everywhere else and schedules the deletion. The job `delete_accounts` cancels the
 * subscriptions and erases the account after the grace period. Safe to repeat. Refuses like {@link proveOwner}.
 * @returns when the account is erased.
 */
export async function scheduleAccountDeletion(
  services: Services,
  user: User,
  password: string | undefined,
  client: PasswordClient,
): Promise<Date> {
  const { config, sql, deliveries } = services
  const proof = await proveOwner(services, { user, password, ...client })
  const { dueAt, disconnected } = await sql.begin(async (tx) => {
    await lockProvenAccount(tx, user, proof)
    const { dueAt, isNew } = await scheduleDeletion(tx, user.userId, config.accountDeletionSeconds)
    if (!isNew) return { dueAt, disconnected: [] }
    const disconnected = await disconnectAll(tx, user.userId, 'user')
    const revoked = await revokeOtherAuthSessions(tx, user, 'account_deletion')
    await deleteMailTokens(tx, user.userId, ['reset_password', 'change_email'])
    const detail = { due_at: dueAt.toISOString(), sign_ins_ended: revoked, relays_ended: disconnected.length }
    await recordAuditEntry(tx, {
      initiator: 'user',
      action: 'account_deletion_scheduled',
      userId: user.userId,
      ip: client.ip,
      detail,
    })
    const deletedAt = dueAt.toISOString()
    await sendSecurityMail(tx, services, user.userId, { subject: 'account_deletion_scheduled', deletedAt })
    return { dueAt, disconnected }
  })
  for (const session of disconnected) deliveries.send(session)
  return dueAt
}

/** Does nothing if no deletion is scheduled. Cancelled subscriptions stay cancelled. */
export async function restoreAccount({ sql }: Pick<Services, 'sql'>, user: User, ip: string): Promise<void> {
  await sql.begin(async (tx) => {
    await lockUser(tx, user.userId)
    await requireAliveAuthSession(tx, user)
    if (await withdrawDeletion(tx, user.userId))
      await recordAuditEntry(tx, { initiator: 'user', action: 'account_restored', userId: user.userId, ip })
  })
}
