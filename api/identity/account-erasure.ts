/** Erasure of an account by an operator, for its owner. The job of the owner's own deletion carries it out. */

import { recordAuditEntry } from '../../db/audit.ts'
import type { Sql } from '../../db/connection.ts'
import { makeDeletionDue } from '../../db/identity/account-deletion.ts'
import { isErased } from '../../db/identity/erased-accounts.ts'
import { findCredentials, lockUser } from '../../db/identity/users.ts'
import { disconnectAll } from '../../db/relay/commands.ts'
import type { RelaySessionRow } from '../../db/relay/sessions.ts'
import { revokeAllAccess } from '../../db/transactions/secure-account.ts'
import { Refusal } from '../http/refusals.ts'
import type { Services } from './services.ts'

export interface ErasureRequest {
  readonly userId: string
  /** The account's address, which confirms the choice of the account; null for an account without one. */
  readonly email: string | null
  readonly reason: string
  readonly ip: string
}

/**
 * Disables the account, ends its relays and auth sessions, and makes its deletion due. Safe to repeat: only the first
 * request is audited. Refuses with `not_found`, and with `invalid_request` for another address.
 * @returns `erased` when no row of the account is left.
 */
export async function requestAccountErasure(
  { sql, deliveries }: Pick<Services, 'sql' | 'deliveries'>,
  request: ErasureRequest,
): Promise<'scheduled' | 'erased'> {
  const { userId, email } = request
  const disconnected = (await sql.begin(async (tx) => {
    if (!(await lockUser(tx, userId))) return undefined
    const account = await findCredentials(tx, userId)
    if (account?.email?.toLowerCase() !== email?.toLowerCase())
      throw new Refusal('invalid_request', { message: 'body field email: is not the address of this account' })
    return startErasure(tx, request)
  })) as readonly RelaySessionRow[] | undefined
  if (disconnected === undefined) {
    if (await isErased(sql, userId)) return 'erased'
    throw new Refusal('not_found')
  }
  for (const session of disconnected) deliveries.send(session)
  return 'scheduled'
}

/** @returns relay sessions with a command to deliver after the commit. */
async function startErasure(tx: Sql, { userId, reason, ip }: ErasureRequest): Promise<readonly RelaySessionRow[]> {
  // Without the account, whose entries are erased with it.
  if (await makeDeletionDue(tx, userId))
    await recordAuditEntry(tx, {
      initiator: 'operator',
      action: 'account_erasure_requested',
      ip,
      detail: { account_id: userId, reason },
    })
  await revokeAllAccess(tx, userId, 'account_disabled')
  return disconnectAll(tx, userId, 'operator')
}
