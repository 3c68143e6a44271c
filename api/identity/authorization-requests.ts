/** OAuth authorization requests: sending the browser to a provider, and the checks at its callback. */
import { createHash } from 'node:crypto'
import {
  type AuthorizationPurpose,
  type AuthorizationRequest,
  consumeAuthorizationRequest,
  insertAuthorizationRequest,
} from '../../db/identity/authorization-requests.ts'
import { findMergeRequest } from '../../db/identity/merge-requests.ts'
import {
  type OAuthAuthorizationRequest,
  type OAuthCallback,
  OAuthDeniedError,
  type OAuthProvider,
  OAuthProviderError,
  type OAuthProviderName,
  type OAuthScopes,
} from '../../providers/oauth/provider.ts'
import { Refusal } from '../http/refusals.ts'
import type { User } from './access-tokens.ts'
import { requirePendingMerge } from './merges.ts'
import type { VerifiedOAuthCallback } from './oauth-accounts.ts'
import { createSecretToken, hashSecretToken } from './secret-tokens.ts'
import type { Services } from './services.ts'
import { requirePresentTerms } from './terms.ts'

const displayNames: Readonly<Record<OAuthProviderName, string>> = {
  twitch: 'Twitch',
  google: 'Google',
  discord: 'Discord',
}
const retrySeconds = 5

interface AuthorizationOptions {
  readonly intent: AuthorizationPurpose['intent']
  readonly mergeRequestId: string | undefined
  readonly scopes: OAuthScopes
  readonly termsVersion: string | undefined
}

/**
 * @returns the URL to send the browser to, and the binding that the browser keeps and presents at the callback. Refuses
 *   with `not_available`, `not_found`, `merge_expired`, `invalid_request`, `unauthorized`,
 *   `terms_outdated` and `temporarily_unavailable`.
 */
export async function startAuthorization(
  services: Services,
  providerName: OAuthProviderName,
  options: AuthorizationOptions,
  caller: User | undefined,
): Promise<{ url: URL; binding: string }> {
  const provider = requireProvider(services, providerName)
  const { scopes, termsVersion } = options
  requirePresentTerms(services.config, termsVersion)
  const purpose = await requirePurpose(services, options, caller)
  const state = createSecretToken()
  const binding = createSecretToken()
  const request = deriveProviderRequest(services, provider.name, { state, binding, scopes })
  const url = await provider.authorizationUrl(request).catch(toRefusal(services, provider.name))
  const secrets = hashSecrets(provider.name, { state, binding })
  // The merge request may have been deleted in the meantime, for example by a password reset.
  const stored = { ...purpose, scopes, termsVersion: termsVersion ?? null }
  const isInserted = await insertAuthorizationRequest(services.sql, secrets, stored)
  if (!isInserted) throw new Refusal('not_found')
  return { url, binding }
}

interface AuthorizationResponse extends OAuthCallback {
  readonly state: string
  readonly binding: string
  readonly ip: string
  readonly userAgent: string
}

/**
 * Consumes the authorization request and exchanges the code. Refuses with `not_available`, `token_invalid` and
 * `temporarily_unavailable`.
 */
export async function completeAuthorization(
  services: Services,
  providerName: OAuthProviderName,
  response: AuthorizationResponse,
): Promise<{ request: AuthorizationRequest; callback: VerifiedOAuthCallback }> {
  const provider = requireProvider(services, providerName)
  const request = await consumeAuthorizationRequest(services.sql, hashSecrets(provider.name, response))
  if (!request)
    throw new Refusal('token_invalid', {
      message: 'This sign-in has expired or was already completed: start it again.',
    })
  const { state, binding, ip, userAgent } = response
  const sent = deriveProviderRequest(services, provider.name, { state, binding, scopes: request.scopes })
  const { identity, tokens } = await provider.exchange(sent, response).catch(toRefusal(services, provider.name))
  const { providerUserId, verifiedEmail } = identity
  return {
    request,
    callback: {
      identity: { provider: provider.name, providerUserId },
      verifiedEmail,
      tokens,
      ip,
      userAgent,
      termsVersion: request.termsVersion ?? undefined,
    },
  }
}

function requireProvider({ oauthProviders }: Services, name: OAuthProviderName): OAuthProvider {
  const provider = oauthProviders.get(name)
  if (!provider)
    throw new Refusal('not_available', {
      message: `Sign-in with ${displayNames[name]} is not configured on this server.`,
    })
  return provider
}

async function requirePurpose(
  { sql }: Services,
  { intent, mergeRequestId, scopes }: AuthorizationOptions,
  caller: User | undefined,
): Promise<AuthorizationPurpose> {
  if (scopes === 'chat' && intent !== 'link')
    throw new Refusal('invalid_request', { message: 'body field scopes: `chat` requires intent `link`' })
  if (intent === 'sign_in') return { intent }
  if (intent === 'link') {
    if (!caller) throw new Refusal('unauthorized', { headers: { 'WWW-Authenticate': 'Bearer' } })
    return { intent, userId: caller.userId, authSessionId: caller.authSessionId }
  }
  if (!mergeRequestId)
    throw new Refusal('invalid_request', { message: 'body field merge_request_id: is required with intent `merge`' })
  requirePendingMerge(await findMergeRequest(sql, mergeRequestId))
  return { intent, mergeRequestId }
}

interface RequestSecrets {
  readonly state: string
  readonly binding: string
}

const hashSecrets = (provider: OAuthProviderName, { state, binding }: RequestSecrets) => ({
  stateHash: hashSecretToken(state),
  bindingHash: hashSecretToken(binding),
  provider,
})

/**
 * The same request at the start and at the callback. The PKCE verifier and the nonce are derived from the binding,
 * which only the browser has: access to the database is not enough to complete a sign-in.
 */
const deriveProviderRequest = (
  { config }: Services,
  provider: OAuthProviderName,
  { state, binding, scopes }: RequestSecrets & { readonly scopes: OAuthScopes },
): OAuthAuthorizationRequest => ({
  state,
  verifier: deriveSecret('verifier', binding),
  nonce: deriveSecret('nonce', binding),
  redirectUri: `${config.siteUrl}/oauth/${provider}/callback`,
  scopes,
})

const deriveSecret = (use: 'verifier' | 'nonce', binding: string): string =>
  createHash('sha256').update(`${use}:${binding}`).digest('base64url')

const toRefusal =
  ({ log }: Services, provider: OAuthProviderName) =>
  (error: unknown): never => {
    const name = displayNames[provider]
    if (error instanceof OAuthDeniedError)
      throw new Refusal('token_invalid', { message: `${name} did not confirm the sign-in: start it again.` })
    if (!(error instanceof OAuthProviderError)) throw error
    log.warn({ provider, reason: error.message }, 'an OAuth provider did not respond as expected')
    throw new Refusal('temporarily_unavailable', {
      message: `${name} is not responding as expected: try again in a few seconds.`,
      headers: { 'Retry-After': String(retrySeconds) },
    })
  }
