/** The provider's customer of each subscription, as stated by webhooks and lists. */
import { firstValue, type Sql } from '../connection.ts'

interface SubscriptionCustomer {
  readonly subscriptionId: string
  readonly customerId: string
}

const batchRows = 500

/** Records the latest customer of each subscription. */
export async function recordCustomers(
  sql: Sql,
  provider: string,
  customers: readonly SubscriptionCustomer[],
): Promise<void> {
  const latest = [...new Map(customers.map((customer) => [customer.subscriptionId, customer.customerId]))]
  for (let from = 0; from < latest.length; from += batchRows) {
    const batch = latest.slice(from, from + batchRows)
    await sql`
      insert into billing_customers (provider, subscription_id, customer_id)
      select ${provider}, * from unnest(
        ${batch.map(([subscriptionId]) => subscriptionId)}::text[], ${batch.map(([, customerId]) => customerId)}::text[])
      on conflict (provider, subscription_id) do update set customer_id = excluded.customer_id
      where billing_customers.customer_id <> excluded.customer_id`
  }
}

/**
 * The provider's customer for the account's next purchase: that of the subscription with the latest end, preferably not
 * ended.
 */
export const findCustomerId = async (sql: Sql, provider: string, userId: string): Promise<string | undefined> =>
  firstValue(sql<{ customerId: string }[]>`
    select c.customer_id from subscriptions s join billing_customers c using (provider, subscription_id)
    where s.user_id = ${userId} and s.provider = ${provider}
    order by s.status = 'ended', s.period_end desc nulls last, s.subscription_id limit 1`)

/**
 * The accounts of this customer or subscription at any provider, a few at most. Reads all customers, since only
 * operators who search ask for it.
 */
export const findUserIdsByBillingId = async (sql: Sql, billingId: string): Promise<readonly string[]> => {
  const rows = await sql<{ userId: string }[]>`
    select distinct s.user_id from subscriptions s left join billing_customers c using (provider, subscription_id)
    where s.subscription_id = ${billingId} or c.customer_id = ${billingId}
    order by s.user_id limit 20`
  return rows.map(({ userId }) => userId)
}
