/** The sandbox's own side of billing: what the provider that it plays knows of who bought what. */
import { first, type Sql } from './connection.ts'

interface SandboxSubscriptionRow {
  readonly id: string
  readonly userId: string
  readonly kind: 'plan' | 'addon'
  readonly quantity: number
  readonly status: 'open' | 'active' | 'past_due' | 'cancelled' | 'ended'
  readonly invoiceId: string | null
  readonly periodStart: Date | null
  readonly periodEnd: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

const columns = (sql: Sql) => sql`
  id, user_id, kind, quantity, status, invoice_id, period_start,
  period_end, created_at, updated_at`

/** What `providers/billing/sandbox.ts` asks for as its store. */
export const createSandboxStore = (sql: Sql) => ({
  open: async (one: SandboxSubscriptionRow): Promise<void> => {
    await sql`
      insert into sandbox_subscriptions
        (id, user_id, kind, quantity, status, invoice_id, period_start, period_end, created_at, updated_at)
      values (${one.id}, ${one.userId}, ${one.kind}, ${one.quantity}, ${one.status}, ${one.invoiceId},
        ${one.periodStart}, ${one.periodEnd}, ${one.createdAt}, ${one.updatedAt})`
  },

  find: async (id: string): Promise<SandboxSubscriptionRow | undefined> =>
    first(await sql<SandboxSubscriptionRow[]>`select ${columns(sql)} from sandbox_subscriptions where id = ${id}`),

  /** False when somebody else has changed it since it was `seenAt`, its `updatedAt` of then. */
  save: async (one: SandboxSubscriptionRow, seenAt: Date): Promise<boolean> => {
    const { count } = await sql`
      update sandbox_subscriptions set quantity = ${one.quantity}, status = ${one.status}, invoice_id = ${one.invoiceId},
        period_start = ${one.periodStart}, period_end = ${one.periodEnd}, updated_at = ${one.updatedAt}
      where id = ${one.id} and updated_at = ${seenAt}`
    return count === 1
  },

  all: async (): Promise<SandboxSubscriptionRow[]> =>
    sql<SandboxSubscriptionRow[]>`select ${columns(sql)} from sandbox_subscriptions order by created_at, id`,
})

/** For a process that ends before it releases its claim. */
const claimSeconds = 30

/** False while another request that claimed the subscription has not released it. */
export const claimSandboxSubscription = async (sql: Sql, id: string): Promise<boolean> => {
  const { count } = await sql`
    update sandbox_subscriptions set claimed_until = now() + make_interval(secs => ${claimSeconds})
    where id = ${id} and (claimed_until is null or claimed_until < now())`
  return count === 1
}

export const releaseSandboxSubscription = async (sql: Sql, id: string): Promise<void> => {
  await sql`update sandbox_subscriptions set claimed_until = null where id = ${id}`
}

export const sandboxSubscriptionsOf = async (sql: Sql, userId: string): Promise<SandboxSubscriptionRow[]> =>
  sql<SandboxSubscriptionRow[]>`
    select ${columns(sql)} from sandbox_subscriptions where user_id = ${userId} order by created_at, id`
