/**
 * Merge requests: a provider vouches for an address that an account has already, and that account's owner is asked to prove
 * that both are one person. All times are the database's.
 */
import { first, type Sql } from './connection.ts'
import type { Provider } from './oauth-accounts.ts'

export const lifetimeSeconds = 600
/** Wrong proofs that a request survives. */
const failedTriesMax = 5

export interface NewMergeRequest {
  /** The account that has the address. */
  readonly userId: string
  readonly email: string
  /** The identity that is to be linked to it. */
  readonly provider: Provider
  readonly providerUserId: string
  readonly mergeTokenHash: Buffer
}

/** Adds a merge request and answers its id. */
export async function insertMergeRequest(sql: Sql, request: NewMergeRequest): Promise<string> {
  const row = first(
    await sql<{ id: string }[]>`
      insert into merge_requests (user_id, email, provider, provider_user_id, merge_token_hash, expires_at)
      values (${request.userId}, ${request.email}, ${request.provider}, ${request.providerUserId}, ${request.mergeTokenHash},
        now() + make_interval(secs => ${lifetimeSeconds}))
      returning id`,
  )
  if (!row) throw new Error('an inserted merge request did not come back')
  return row.id
}

export interface MergeRequest extends NewMergeRequest {
  readonly id: string
  /** The provider through which the account's owner proved to be it; null while they have not. */
  readonly provedBy: Provider | null
  readonly confirmed: boolean
  readonly expired: boolean
  /** Too many proofs were wrong, or are being looked at. */
  readonly exhausted: boolean
  readonly secondsLeft: number
}

const columns = (sql: Sql) => sql`
  id, user_id, email, provider, provider_user_id,
  merge_token_hash, proved_by,
  confirmed_at is not null as confirmed, expires_at <= now() as expired, failed_tries > ${failedTriesMax} as exhausted,
  greatest(0, ceil(extract(epoch from expires_at - now())))::int as seconds_left`

export const findMergeRequest = async (sql: Sql, id: string): Promise<MergeRequest | undefined> =>
  first(await sql<MergeRequest[]>`select ${columns(sql)} from merge_requests where id = ${id}`)

/** The same for someone about to decide it, who holds the lock of the account's row already: nobody else can meanwhile. */
export const lockMergeRequest = async (sql: Sql, id: string): Promise<MergeRequest | undefined> =>
  first(await sql<MergeRequest[]>`select ${columns(sql)} from merge_requests where id = ${id} for update`)

/** Counts a try as a wrong one before it is known to be: guesses at once are as many guesses. False when none is left. */
export const countMergeTry = async (sql: Sql, id: string): Promise<boolean> =>
  (
    await sql`
      update merge_requests set failed_tries = failed_tries + 1
      where id = ${id} and failed_tries <= ${failedTriesMax}`
  ).count === 1

/** Takes a counted try back: it was no wrong proof. */
export const forgiveMergeTry = async (sql: Sql, id: string): Promise<void> => {
  await sql`update merge_requests set failed_tries = greatest(0, failed_tries - 1) where id = ${id}`
}

export const proveMergeRequest = async (sql: Sql, id: string, provedBy: Provider): Promise<void> => {
  await sql`update merge_requests set proved_by = ${provedBy} where id = ${id}`
}

/** What was proved through an identity that the account no longer has is not proved any more. */
export const withdrawProofs = async (sql: Sql, userId: string, provider: Provider): Promise<void> => {
  await sql`update merge_requests set proved_by = null where user_id = ${userId} and proved_by = ${provider}`
}

export const confirmMergeRequest = async (sql: Sql, id: string): Promise<void> => {
  await sql`update merge_requests set confirmed_at = now() where id = ${id}`
}
