/**
 * OAuth authorization requests: stored when the browser is sent to the provider, consumed once by its callback. All
 * times are those of the database.
 */
import type { OAuthProviderName } from '../../domain/identity/oauth-providers.ts'
import { first, type Sql } from '../connection.ts'

/** The time that the user has to sign in at the provider. */
export const authorizationRequestSeconds = 600

export type AuthorizationPurpose =
  | { readonly intent: 'sign_in' }
  /** Link the identity to the account of this auth session. */
  | { readonly intent: 'link'; readonly userId: string; readonly authSessionId: string }
  /** Prove through a linked identity who owns the account of a merge request. */
  | { readonly intent: 'merge'; readonly mergeRequestId: string }

export type AuthorizationRequest = AuthorizationPurpose & {
  readonly scopes: 'identity' | 'chat'
  /** The version of the terms that an account created by it accepts; null if none was stated. */
  readonly termsVersion: string | null
}

interface AuthorizationRequestSecrets {
  readonly stateHash: Buffer
  /** Hash of the secret that stays in the browser. */
  readonly bindingHash: Buffer
  readonly provider: OAuthProviderName
}

/** @returns false if the merge request no longer exists. */
export const insertAuthorizationRequest = async (
  sql: Sql,
  secrets: AuthorizationRequestSecrets,
  request: AuthorizationRequest,
): Promise<boolean> => {
  const { userId, authSessionId } = request.intent === 'link' ? request : { userId: null, authSessionId: null }
  const mergeRequestId = request.intent === 'merge' ? request.mergeRequestId : null
  const { count } = await sql`
    insert into oauth_authorization_requests
      (state_hash, binding_hash, provider, intent, scopes, user_id, auth_session_id, merge_request_id,
        terms_version, expires_at)
    select ${secrets.stateHash}, ${secrets.bindingHash}, ${secrets.provider}, ${request.intent}, ${request.scopes},
      ${userId}::uuid, ${authSessionId}::uuid, ${mergeRequestId}::uuid, ${request.termsVersion}, now() + make_interval(secs => ${authorizationRequestSeconds})
    where ${mergeRequestId}::uuid is null
      or exists (select from merge_requests where id = ${mergeRequestId}::uuid for key share)`
  return count === 1
}

/**
 * Consumes the authorization request. A single statement, so that only one of several concurrent callers gets it, and a
 * caller without all of the secrets changes nothing.
 * @returns undefined if no request matches, or it was consumed or has expired.
 */
export const consumeAuthorizationRequest = async (
  sql: Sql,
  { stateHash, bindingHash, provider }: AuthorizationRequestSecrets,
): Promise<AuthorizationRequest | undefined> =>
  first(sql<AuthorizationRequest[]>`
    update oauth_authorization_requests set consumed_at = now()
    where state_hash = ${stateHash} and binding_hash = ${bindingHash} and provider = ${provider}
      and consumed_at is null and expires_at > now()
    returning intent, scopes, user_id, auth_session_id, merge_request_id, terms_version`)
