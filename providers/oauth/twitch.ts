/** Twitch deviates from OpenID Connect: no PKCE, no `iss` in the callback, scopes as an array, errors without codes. */
import type { OAuthClientConfig } from '../../platform/config/config.ts'
import { createOpenIdProvider } from './openid.ts'
import type { OAuthProvider } from './provider.ts'
import { chatScopes } from './tokens.ts'

const identityScopes = ['openid', 'user:read:email']

/** Twitch puts the address into the ID token only if the `claims` parameter requests it. */
const parameters = { claims: JSON.stringify({ id_token: { email: null, email_verified: null } }) }

export const createTwitch = (client: OAuthClientConfig): OAuthProvider =>
  createOpenIdProvider(client, {
    name: 'twitch',
    hasPkce: false,
    scopes: { identity: identityScopes, chat: [...identityScopes, ...chatScopes.twitch] },
    parameters: { identity: parameters, chat: parameters },
    normalizeResponse: (response) => ({
      ...response,
      ...addMissingMetadata(response, client.issuerUrl),
      ...joinScopes(response),
      ...addErrorCode(response),
    }),
  })

/** The discovery document may lack the issuer and the revocation endpoint. */
const addMissingMetadata = (response: Readonly<Record<string, unknown>>, issuer: string) =>
  'authorization_endpoint' in response ? { issuer, revocation_endpoint: `${issuer}/revoke`, ...response } : {}

const joinScopes = ({ scope }: Readonly<Record<string, unknown>>) =>
  Array.isArray(scope) ? { scope: scope.filter((name) => typeof name === 'string').join(' ') } : {}

/**
 * Twitch describes errors in a sentence: `{"status":400,"message":"Invalid refresh token"}`. A faulty request, such as
 * one with a wrong client secret, is 400 or 403.
 */
const addErrorCode = ({ status, message }: Readonly<Record<string, unknown>>) => {
  if (typeof status !== 'number' || typeof message !== 'string') return {}
  if (/^invalid token$/i.test(message)) return { error: 'invalid_token' }
  const isGrantRefused = status === 401 || /invalid (authorization code|refresh token|grant)/i.test(message)
  return { error: isGrantRefused ? 'invalid_grant' : 'invalid_request' }
}
