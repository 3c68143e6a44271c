/**
 * Merge requests: a provider vouches for an address that an account has already, and that account's owner is asked to prove
 * that both are one person. All times are the database's.
 */
import { first, type Sql } from './connection.ts'
import type { Provider, SealedTokens } from './oauth-accounts.ts'

export const lifetimeSeconds = 600
/** Wrong proofs that a request survives. */
const failedTriesMax = 5

export interface NewMergeRequest {
  /** Chosen by the caller: the tokens are sealed for it. */
  readonly id: string
  /** The account that has the address. */
  readonly userId: string
  readonly email: string
  /** The identity that is to be linked to it. */
  readonly provider: Provider
  readonly providerUserId: string
  readonly tokens: SealedTokens
  readonly mergeTokenHash: Buffer
}

export const insertMergeRequest = async (sql: Sql, { tokens, ...request }: NewMergeRequest): Promise<void> => {
  await sql`
    insert into merge_requests (id, user_id, email, provider, provider_user_id, access_token_sealed, refresh_token_sealed,
      token_expires_at, scopes, merge_token_hash, expires_at)
    values (${request.id}, ${request.userId}, ${request.email}, ${request.provider}, ${request.providerUserId},
      ${tokens.accessToken}, ${tokens.refreshToken}, ${tokens.expiresAt}, ${tokens.scopes as string[]}::text[],
      ${request.mergeTokenHash}, now() + make_interval(secs => ${lifetimeSeconds}))`
}

export interface MergeRequest extends NewMergeRequest {
  /** The provider through which the account's owner proved to be it; null while they have not. */
  readonly provedBy: Provider | null
  readonly confirmed: boolean
  readonly expired: boolean
  /** Too many proofs were wrong, or are being looked at. */
  readonly exhausted: boolean
  readonly secondsLeft: number
}

const columns = (sql: Sql) => sql`
  id, user_id as "userId", email, provider, provider_user_id as "providerUserId",
  json_build_object('accessToken', access_token_sealed, 'refreshToken', refresh_token_sealed, 'scopes', scopes) as tokens,
  token_expires_at as "expiresAt", merge_token_hash as "mergeTokenHash", proved_by as "provedBy",
  confirmed_at is not null as confirmed, expires_at <= now() as expired, failed_tries > ${failedTriesMax} as exhausted,
  greatest(0, ceil(extract(epoch from expires_at - now())))::int as "secondsLeft"`

type Row = Omit<MergeRequest, 'tokens'> & { tokens: Omit<SealedTokens, 'expiresAt'>; expiresAt: Date | null }

const asMergeRequest = (row: Row | undefined): MergeRequest | undefined => {
  if (!row) return undefined
  const { expiresAt, ...request } = row
  return { ...request, tokens: { ...row.tokens, expiresAt } }
}

export const findMergeRequest = async (sql: Sql, id: string): Promise<MergeRequest | undefined> =>
  asMergeRequest(first(await sql<Row[]>`select ${columns(sql)} from merge_requests where id = ${id}`))

/** The same for someone about to decide it, who holds the lock of the account's row already: nobody else can meanwhile. */
export const lockMergeRequest = async (sql: Sql, id: string): Promise<MergeRequest | undefined> =>
  asMergeRequest(first(await sql<Row[]>`select ${columns(sql)} from merge_requests where id = ${id} for update`))

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

/** Marks it as done. Its tokens are the account's now, so it keeps none. */
export const confirmMergeRequest = async (sql: Sql, id: string): Promise<void> => {
  await sql`
    update merge_requests set confirmed_at = now(), access_token_sealed = null, refresh_token_sealed = null
    where id = ${id}`
}
