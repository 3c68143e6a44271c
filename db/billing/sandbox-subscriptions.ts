/** The sandbox's own subscriptions: what a real billing provider stores on its side. */
import type { SandboxSubscription } from '../../domain/billing/sandbox-subscription.ts'
import { first, type Sql } from '../connection.ts'

const columns = (sql: Sql) => sql`
  id, user_id, kind, quantity, status, invoice_id, period_start,
  period_end, created_at, updated_at`

/** Implements `SandboxStore` of `providers/billing/sandbox.ts`. */
export const createSandboxStore = (sql: Sql) => ({
  insert: async (subscription: SandboxSubscription): Promise<void> => {
    await sql`
      insert into sandbox_subscriptions
        (id, user_id, kind, quantity, status, invoice_id, period_start, period_end, created_at, updated_at)
      values (${subscription.id}, ${subscription.userId}, ${subscription.kind}, ${subscription.quantity},
        ${subscription.status}, ${subscription.invoiceId}, ${subscription.periodStart}, ${subscription.periodEnd},
        ${subscription.createdAt}, ${subscription.updatedAt})`
  },

  find: async (id: string): Promise<SandboxSubscription | undefined> =>
    first(sql<SandboxSubscription[]>`select ${columns(sql)} from sandbox_subscriptions where id = ${id}`),

  /** Returns false if the row has another `updatedAt` than expected. */
  save: async (subscription: SandboxSubscription, expectedUpdatedAt: Date): Promise<boolean> => {
    const { count } = await sql`
      update sandbox_subscriptions set quantity = ${subscription.quantity}, status = ${subscription.status},
        invoice_id = ${subscription.invoiceId}, period_start = ${subscription.periodStart},
        period_end = ${subscription.periodEnd}, updated_at = ${subscription.updatedAt}
      where id = ${subscription.id} and updated_at = ${expectedUpdatedAt}`
    return count === 1
  },

  list: async (): Promise<SandboxSubscription[]> =>
    sql<SandboxSubscription[]>`select ${columns(sql)} from sandbox_subscriptions order by created_at, id`,
})

/** Ends the claim of a process that crashed before it released it. */
const claimSeconds = 30

/** Returns false while another request has claimed the subscription. */
export const claimSandboxSubscription = async (sql: Sql, id: string): Promise<boolean> => {
  const { count } = await sql`
    update sandbox_subscriptions set claimed_until = now() + make_interval(secs => ${claimSeconds})
    where id = ${id} and (claimed_until is null or claimed_until < now())`
  return count === 1
}

export const releaseSandboxSubscription = async (sql: Sql, id: string): Promise<void> => {
  await sql`update sandbox_subscriptions set claimed_until = null where id = ${id}`
}

/** The account's subscriptions, oldest first. */
export const listSandboxSubscriptions = async (sql: Sql, userId: string): Promise<SandboxSubscription[]> =>
  sql<SandboxSubscription[]>`
    select ${columns(sql)} from sandbox_subscriptions where user_id = ${userId} order by created_at, id`
