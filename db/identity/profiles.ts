/** The account data that owners and operators see. */
import type { PlanStatus, PlanTier } from '../../domain/billing/plans.ts'
import type { OAuthProviderName } from '../../domain/identity/oauth-providers.ts'
import { first, type Sql } from '../connection.ts'
import type { StoredStreamToken } from '../sealed-tokens.ts'

export interface ProfileRow extends StoredStreamToken {
  id: string
  /** Null for an account created through a provider that verified no address. */
  email: string | null
  isEmailVerified: boolean
  planTier: PlanTier
  isDisabled: boolean
  linkedProviders: OAuthProviderName[]
  createdAt: Date
  /** When the account is erased; null unless its owner has scheduled the deletion. */
  deletionDueAt: Date | null
}

/** The columns of {@link ProfileRow} in `users`. */
export const profileColumns = (sql: Sql) => sql`
  id, email, email_verified_at is not null as is_email_verified, stream_token_sealed,
  plan_tier, disabled_at is not null as is_disabled, created_at, deletion_due_at,
  array(select provider from user_oauth_accounts linked where linked.user_id = users.id) as linked_providers`

export const findProfile = async (sql: Sql, userId: string): Promise<ProfileRow | undefined> =>
  first(sql<ProfileRow[]>`select ${profileColumns(sql)} from users where id = ${userId}`)

export const findProfileByEmail = async (sql: Sql, email: string): Promise<ProfileRow | undefined> =>
  first(sql<ProfileRow[]>`select ${profileColumns(sql)} from users where lower(email) = lower(${email})`)

interface ProfileFilter {
  readonly planTier?: PlanTier | undefined
  readonly planStatus?: PlanStatus | undefined
  readonly isDisabled?: boolean | undefined
  /** The id of the last account of the previous page. */
  readonly after?: string | undefined
}

/** One page of accounts in the order of their ids. */
export const listProfiles = async (sql: Sql, filter: ProfileFilter, limit: number): Promise<ProfileRow[]> =>
  sql<ProfileRow[]>`
    select ${profileColumns(sql)} from users
    where true
      ${filter.planTier ? sql`and plan_tier = ${filter.planTier}` : sql``}
      ${filter.planStatus ? sql`and plan_status = ${filter.planStatus}` : sql``}
      ${filter.isDisabled === undefined ? sql`` : sql`and (disabled_at is not null) = ${filter.isDisabled}`}
      ${filter.after ? sql`and id > ${filter.after}` : sql``}
    order by id limit ${limit}`
