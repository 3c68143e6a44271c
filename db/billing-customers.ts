/** The provider's own customer of each subscription, as webhooks and lists name them. */
import { first, type Sql } from './connection.ts'

export interface CustomerOfSubscription {
  readonly subscriptionId: string
  readonly customerId: string
}

const batchRows = 500

/** Remembers the last customer that each subscription was seen with. */
export async function recordCustomers(
  sql: Sql,
  provider: string,
  found: readonly CustomerOfSubscription[],
): Promise<void> {
  const latest = [...new Map(found.map((one) => [one.subscriptionId, one.customerId]))]
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

/** As which customer the account buys at the provider: that of the subscription that goes on for longest, or did. */
export const findCustomerId = async (sql: Sql, provider: string, userId: string): Promise<string | undefined> =>
  first(
    await sql<{ customerId: string }[]>`
      select c.customer_id from subscriptions s join billing_customers c using (provider, subscription_id)
      where s.user_id = ${userId} and s.provider = ${provider}
      order by s.status = 'ended', s.period_end desc nulls last, s.subscription_id limit 1`,
  )?.customerId
