/**
 * The notifications that a new entitlement causes: a failed payment, and relays that will end because they are surplus.
 */
import type { AccountEntitlement } from '../../domain/billing/entitlement.ts'
import { relayLimit } from '../../domain/billing/plans.ts'
import { findNewestBeyond, type LiveRelay } from '../../domain/billing/surplus-relays.ts'
import type { Sql } from '../connection.ts'
import type { Notify } from './settings.ts'

interface EntitlementChange {
  readonly userId: string
  readonly entitlement: AccountEntitlement
  /** The workflow's time, in milliseconds since 1970. */
  readonly at: number
  readonly surplusBefore: Date | null
  readonly surplusEndsAt: Date | null
  readonly relays: readonly LiveRelay[]
}

/**
 * Runs in the transaction that writes the entitlement, before it replaces the stored subscriptions: only what differs
 * from them is notified, so a repeated write or another event about the same failure notifies of nothing.
 */
export async function notifyOfEntitlement(tx: Sql, change: EntitlementChange, notify: Notify): Promise<void> {
  await notifyOfFailedPayment(tx, change, notify)
  await notifyOfSurplusRelays(tx, change, notify)
}

async function notifyOfFailedPayment(
  tx: Sql,
  { userId, entitlement, at }: EntitlementChange,
  notify: Notify,
): Promise<void> {
  const unpaid = entitlement.subscriptions.filter(({ status }) => status === 'past_due')
  if (unpaid.length === 0) return
  const stored = await tx<{ provider: string; subscriptionId: string; kind: string }[]>`
    select provider, subscription_id, kind from subscriptions where user_id = ${userId} and status = 'past_due'`
  const failed = unpaid.filter(
    (subscription) =>
      !stored.some(
        (row) =>
          row.provider === subscription.provider &&
          row.subscriptionId === subscription.subscriptionId &&
          row.kind === subscription.kind,
      ),
  )
  if (failed.length === 0) return
  const endsAt = entitlement.graceEndsAt ?? entitlement.changesAt
  await notify(tx, userId, {
    kind: 'payment_failed',
    timestamp: new Date(at).toISOString(),
    data: {
      subscriptions: [...new Set(failed.map(({ kind }) => kind))],
      ends_at: endsAt === null ? null : new Date(endsAt).toISOString(),
    },
  })
}

async function notifyOfSurplusRelays(tx: Sql, change: EntitlementChange, notify: Notify): Promise<void> {
  const { userId, entitlement, at, surplusBefore, surplusEndsAt, relays } = change
  if (surplusEndsAt === null || surplusEndsAt.getTime() === surplusBefore?.getTime()) return
  const ids = findNewestBeyond(relayLimit(entitlement), relays)
  const rows = await tx<{ connectionId: string }[]>`
    select connection_id from relay_sessions where id = any(${ids}) order by created_at, id`
  await notify(tx, userId, {
    kind: 'relays_surplus',
    timestamp: new Date(at).toISOString(),
    data: { connection_ids: rows.map(({ connectionId }) => connectionId), ends_at: surplusEndsAt.toISOString() },
  })
}
