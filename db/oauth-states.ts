/** Round trips of a browser to a provider and back: begun once, come back once. All times are the database's. */
import { first, type Sql } from './connection.ts'
import type { Provider } from './oauth-accounts.ts'

/** How long a browser may stay with the provider. */
export const lifetimeSeconds = 600

/** What the browser is sent to the provider for. */
export type Purpose =
  | { readonly intent: 'sign_in' }
  /** To add the identity to the account of this sign-in. */
  | { readonly intent: 'link'; readonly userId: string; readonly authSessionId: string }
  /** To prove through a known identity whose account a merge is about. */
  | { readonly intent: 'merge'; readonly mergeRequestId: string }

export type RoundTrip = Purpose & { readonly scopes: 'identity' | 'chat' }

export interface RoundTripSecrets {
  readonly stateHash: Buffer
  /** Of the secret that stays with the browser. */
  readonly bindingHash: Buffer
  readonly provider: Provider
}

/** Begins a round trip. False when the merge that it is for is gone meanwhile. */
export const insertRoundTrip = async (sql: Sql, secrets: RoundTripSecrets, trip: RoundTrip): Promise<boolean> => {
  const { userId, authSessionId } = trip.intent === 'link' ? trip : { userId: null, authSessionId: null }
  const mergeRequestId = trip.intent === 'merge' ? trip.mergeRequestId : null
  const { count } = await sql`
    insert into oauth_states (state_hash, binding_hash, provider, intent, scopes, user_id, auth_session_id, merge_request_id, expires_at)
    select ${secrets.stateHash}, ${secrets.bindingHash}, ${secrets.provider}, ${trip.intent}, ${trip.scopes},
      ${userId}::uuid, ${authSessionId}::uuid, ${mergeRequestId}::uuid, now() + make_interval(secs => ${lifetimeSeconds})
    where ${mergeRequestId}::uuid is null
      or exists (select from merge_requests where id = ${mergeRequestId}::uuid for key share)`
  return count === 1
}

/**
 * Ends the round trip that all of these belong to, and answers what it was for; nothing when there is none, or not any more.
 * One statement, so that of many callers one gets it, and whoever lacks one of the secrets ends nothing.
 */
export const endRoundTrip = async (
  sql: Sql,
  { stateHash, bindingHash, provider }: RoundTripSecrets,
): Promise<RoundTrip | undefined> =>
  first(
    await sql<RoundTrip[]>`
      update oauth_states set consumed_at = now()
      where state_hash = ${stateHash} and binding_hash = ${bindingHash} and provider = ${provider}
        and consumed_at is null and expires_at > now()
      returning intent, scopes, user_id, auth_session_id,
        merge_request_id`,
  )
