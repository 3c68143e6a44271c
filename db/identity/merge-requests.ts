/**
 * Merge requests: a provider has verified an address that an existing account has. The identity is linked once the
 * owner of the account has proved to be the same person. All times are those of the database.
 */
import type { OAuthProviderName } from '../../domain/identity/oauth-providers.ts'
import { first, hasRow, type Sql } from '../connection.ts'

export const mergeRequestSeconds = 600
/** One more failed proof ends the merge request. */
const failedAttemptsMax = 5

interface NewMergeRequest {
  /** The account that has the address. */
  readonly userId: string
  readonly email: string
  /** The identity to link to it. */
  readonly provider: OAuthProviderName
  readonly providerUserId: string
  readonly mergeTokenHash: Buffer
}

/** @returns the id of the new merge request. */
export async function insertMergeRequest(sql: Sql, request: NewMergeRequest): Promise<string> {
  const row = await first(sql<{ id: string }[]>`
    insert into merge_requests (user_id, email, provider, provider_user_id, merge_token_hash, expires_at)
    values (${request.userId}, ${request.email}, ${request.provider}, ${request.providerUserId}, ${request.mergeTokenHash},
      now() + make_interval(secs => ${mergeRequestSeconds}))
    returning id`)
  if (!row) throw new Error('insert into merge_requests returned no row')
  return row.id
}

export interface MergeRequest extends NewMergeRequest {
  readonly id: string
  /** The provider through which the owner of the account proved to be it; null before that. */
  readonly provedBy: OAuthProviderName | null
  readonly isConfirmed: boolean
  readonly isExpired: boolean
  /** Too many proofs have failed or are being checked. */
  readonly isExhausted: boolean
  readonly secondsLeft: number
}

const columns = (sql: Sql) => sql`
  id, user_id, email, provider, provider_user_id, merge_token_hash, proved_by,
  confirmed_at is not null as is_confirmed, expires_at <= now() as is_expired,
  failed_attempts > ${failedAttemptsMax} as is_exhausted,
  greatest(0, ceil(extract(epoch from expires_at - now())))::int as seconds_left`

export const findMergeRequest = async (sql: Sql, id: string): Promise<MergeRequest | undefined> =>
  first(sql<MergeRequest[]>`select ${columns(sql)} from merge_requests where id = ${id}`)

/** Locks the merge request until the transaction ends. The caller has locked the account's row before. */
export const lockMergeRequest = async (sql: Sql, id: string): Promise<MergeRequest | undefined> =>
  first(sql<MergeRequest[]>`select ${columns(sql)} from merge_requests where id = ${id} for update`)

/**
 * Counts an attempt as failed before it is checked, so that concurrent attempts are all counted.
 * @returns false if no attempt is left.
 */
export const countMergeAttempt = async (sql: Sql, id: string): Promise<boolean> =>
  hasRow(sql`
    update merge_requests set failed_attempts = failed_attempts + 1
    where id = ${id} and failed_attempts <= ${failedAttemptsMax}`)

/** Subtracts an attempt that was counted but did not fail. */
export const refundMergeAttempt = async (sql: Sql, id: string): Promise<void> => {
  await sql`update merge_requests set failed_attempts = greatest(0, failed_attempts - 1) where id = ${id}`
}

export const recordMergeProof = async (sql: Sql, id: string, provedBy: OAuthProviderName): Promise<void> => {
  await sql`update merge_requests set proved_by = ${provedBy} where id = ${id}`
}

/** Removes proofs through an identity that the account no longer has. */
export const clearMergeProofs = async (sql: Sql, userId: string, provider: OAuthProviderName): Promise<void> => {
  await sql`update merge_requests set proved_by = null where user_id = ${userId} and proved_by = ${provider}`
}

export const confirmMergeRequest = async (sql: Sql, id: string): Promise<void> => {
  await sql`update merge_requests set confirmed_at = now() where id = ${id}`
}
