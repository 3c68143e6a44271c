/** A person's copy of the data that is stored about them. */

import { recordAuditEntry } from '../../db/audit.ts'
import { readSnapshot } from '../../db/connection.ts'
import { exportAccount } from '../../db/identity/account-export.ts'
import { findCredentials } from '../../db/identity/users.ts'
import { Refusal } from '../http/refusals.ts'
import type { Reply } from '../http/replies.ts'
import type { User } from './access-tokens.ts'
import { describeOwnerProof } from './owner-proof.ts'
import type { Services } from './services.ts'

/** Refuses with `recent_sign_in_required`: a stolen sign-in should not reveal more than the pages of the site. */
export async function exportOwnAccount(services: Services, user: User, ip: string): Promise<Reply> {
  const { isSignInRecent } = await describeOwnerProof(services, user)
  if (!isSignInRecent)
    throw new Refusal('recent_sign_in_required', {
      message: 'Sign out, sign in again, and request your data within 10 minutes.',
    })
  return exportAs('user', services, user.userId, ip)
}

/** For an operator who answers a person's request. Refuses with `not_found`. */
export async function exportAccountForOperator(services: Services, userId: string, ip: string): Promise<Reply> {
  if (!(await findCredentials(services.sql, userId))) throw new Refusal('not_found')
  return exportAs('operator', services, userId, ip)
}

/** Each export is audited first, and so contains its own entry. */
async function exportAs(
  initiator: 'user' | 'operator',
  { sql }: Pick<Services, 'sql'>,
  userId: string,
  ip: string,
): Promise<Reply> {
  await recordAuditEntry(sql, { initiator, action: 'account_exported', userId, ip })
  const exportedAt = new Date().toISOString()
  const tables = await readSnapshot(sql, (tx) => exportAccount(tx, userId))
  return {
    status: 200,
    body: { user_id: userId, exported_at: exportedAt, tables },
    headers: { 'Content-Disposition': `attachment; filename="account-${userId}.json"` },
  }
}
