/** Withdrawals from contracts, and the contracts of an account. All times are those of the database. */
import type { BillingSource } from '../../domain/billing/event.ts'
import type { SubscriptionKind } from '../../domain/billing/plans.ts'
import type { RefundWay } from '../../domain/billing/withdrawal.ts'
import { first, hasRow, type Sql } from '../connection.ts'
import { emailColumn, maskEmails, type WithEmail, type WithMaskedEmail } from '../masked-emails.ts'

export interface Contract {
  readonly provider: BillingSource
  readonly subscriptionId: string
  readonly kind: SubscriptionKind
  /** The number of add-ons; 1 for a plan. */
  readonly quantity: number
  readonly purchasedAt: Date
}

/**
 * The account's subscriptions at providers that have not ended, the newest first. The purchase is the earliest moment
 * in the events of the subscription: one that the list of a provider brings is dated when it was found, and states its
 * period.
 */
export const listContracts = async (sql: Sql, userId: string): Promise<Contract[]> =>
  sql<Contract[]>`
    select provider, subscription_id, kind, quantity, purchased_at from (
      select distinct on (s.provider, s.subscription_id) s.provider, s.subscription_id, s.kind, s.quantity, bought.purchased_at
      from subscriptions s cross join lateral (
        select least(min(e.occurred_at), to_timestamp(min((e.event ->> 'periodStart')::float8) / 1000)) as purchased_at
        from billing_events e
        where e.provider = s.provider and e.subscription_id = s.subscription_id and e.event is not null
      ) bought
      where s.user_id = ${userId} and s.status <> 'ended' and s.provider <> 'operator'
      order by s.provider, s.subscription_id, s.kind desc
    ) contract
    where purchased_at is not null
    order by purchased_at desc, subscription_id`

/** Who withdraws, as stated; null for what was not. */
interface Statement {
  readonly name: string | null
  /** Where the receipt is sent. */
  readonly email: string | null
}

export interface WithdrawalRow extends Contract, Statement {
  readonly id: string
  readonly userId: string | null
  readonly receivedAt: Date
  readonly refundedAt: Date | null
  readonly refunded: RefundWay | null
  /** Of the last attempt that failed; null once it is refunded. */
  readonly refundError: string | null
  readonly refundFailedAt: Date | null
}

const columns = (sql: Sql) => sql`
  id, user_id, provider, subscription_id, kind, quantity, purchased_at, name, withdrawals.email, received_at, refunded_at,
  refunded, refund_error, refund_failed_at`

/** @returns undefined if there is a withdrawal from this contract. */
export const insertWithdrawal = async (
  tx: Sql,
  userId: string,
  { provider, subscriptionId, kind, quantity, purchasedAt }: Contract,
  { name, email }: Statement,
): Promise<WithdrawalRow | undefined> =>
  first(tx<WithdrawalRow[]>`
    insert into withdrawals (user_id, provider, subscription_id, kind, quantity, purchased_at, name, email)
    values (${userId}, ${provider}, ${subscriptionId}, ${kind}, ${quantity}, ${purchasedAt}, ${name}, ${email})
    on conflict (provider, subscription_id) do nothing
    returning ${columns(tx)}`)

/** More than an account has. */
const listedMax = 100

/** The account's, the newest first. */
export const listWithdrawals = async (sql: Sql, userId: string): Promise<WithdrawalRow[]> =>
  sql<WithdrawalRow[]>`
    select ${columns(sql)} from withdrawals where user_id = ${userId} order by received_at desc, id limit ${listedMax}`

export const withdrawalStates = ['open', 'refunded'] as const

export type WithdrawalState = (typeof withdrawalStates)[number]

/** For operators. */
export type ListedWithdrawal = Omit<WithdrawalRow, 'name' | 'email'> & WithMaskedEmail

const listedColumns = (sql: Sql) => sql`
  id, user_id, provider, subscription_id, kind, quantity, purchased_at, received_at, refunded_at, refunded, refund_error,
  refund_failed_at, ${emailColumn(sql, sql`withdrawals.user_id`)}`

/** Open ones the oldest first, refunded ones the newest first. @param after the last one of the page before. */
export const listWithdrawalsOf = async (
  sql: Sql,
  state: WithdrawalState,
  after: string | undefined,
  limit: number,
): Promise<ListedWithdrawal[]> => {
  const last = sql`(select received_at, id from withdrawals where id = ${after ?? null}::uuid)`
  const isAfter = state === 'open' ? sql`(received_at, id) > ${last}` : sql`(received_at, id) < ${last}`
  return maskEmails<ListedWithdrawal>(
    await sql<WithEmail<ListedWithdrawal>[]>`
      select ${listedColumns(sql)} from withdrawals
      where ${state === 'open' ? sql`refunded_at is null` : sql`refunded_at is not null`}
        ${after === undefined ? sql`` : sql`and ${isAfter}`}
      order by ${state === 'open' ? sql`received_at, id` : sql`received_at desc, id desc`} limit ${limit}`,
  )
}

export const findWithdrawal = async (sql: Sql, id: string): Promise<ListedWithdrawal | undefined> =>
  maskEmails<ListedWithdrawal>(
    await sql<WithEmail<ListedWithdrawal>[]>`select ${listedColumns(sql)} from withdrawals where id = ${id}`,
  )[0]

/** @returns false if it is refunded already. */
export const markRefunded = async (tx: Sql, id: string, way: RefundWay): Promise<boolean> =>
  hasRow(tx`
    update withdrawals set refunded_at = now(), refunded = ${way}, refund_error = null, refund_failed_at = null
    where id = ${id} and refunded_at is null returning id`)

/** @param error of the provider, without personal data. */
export const recordRefundFailure = async (tx: Sql, id: string, error: string): Promise<void> => {
  await tx`
    update withdrawals set refund_error = ${error}, refund_failed_at = now() where id = ${id} and refunded_at is null`
}

/** What names the person. The rest stays as a record of the payment. */
export const anonymizeWithdrawals = async (tx: Sql, userId: string): Promise<void> => {
  await tx`update withdrawals set name = null, email = null where user_id = ${userId}`
}

export interface OpenWithdrawals {
  readonly withdrawals: number
  /** The age of the oldest; 0 without any. */
  readonly oldestSeconds: number
}

export const countOpenWithdrawals = async (sql: Sql): Promise<OpenWithdrawals> =>
  (await first(sql<OpenWithdrawals[]>`
    select count(*)::int as withdrawals,
      coalesce(extract(epoch from now() - min(received_at)), 0)::float8 as oldest_seconds
    from withdrawals where refunded_at is null`)) ?? { withdrawals: 0, oldestSeconds: 0 }
