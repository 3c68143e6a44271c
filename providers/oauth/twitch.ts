/** Twitch: OpenID Connect in its own way. No PKCE, no `iss` in the answer, scopes as a list, errors without codes. */
import type { OAuthClientConfig } from '../../platform/config.ts'
import { chatScopes } from './chat-scopes.ts'
import { createOpenIdProvider } from './openid.ts'
import type { OAuthProvider } from './provider.ts'

const identityScopes = ['openid', 'user:read:email']

/** The address is in the ID token only when it is asked for by name. */
const parameters = { claims: JSON.stringify({ id_token: { email: null, email_verified: null } }) }

export const createTwitch = (client: OAuthClientConfig): OAuthProvider =>
  createOpenIdProvider(client, {
    name: 'twitch',
    pkce: false,
    scopes: { identity: identityScopes, chat: [...identityScopes, ...chatScopes.twitch] },
    parameters: { identity: parameters, chat: parameters },
    mend: (answer) => ({ ...answer, ...placesIn(answer, client.issuerUrl), ...scopeIn(answer), ...errorIn(answer) }),
  })

/** Its discovery document may not say whose it is, nor where tokens are revoked. */
const placesIn = (answer: Readonly<Record<string, unknown>>, issuer: string) =>
  'authorization_endpoint' in answer ? { issuer, revocation_endpoint: `${issuer}/revoke`, ...answer } : {}

const scopeIn = ({ scope }: Readonly<Record<string, unknown>>) =>
  Array.isArray(scope) ? { scope: scope.filter((one) => typeof one === 'string').join(' ') } : {}

/** It says what is wrong in words: `{"status":400,"message":"Invalid refresh token"}`; our own mistakes are 400 or 403. */
const errorIn = ({ status, message }: Readonly<Record<string, unknown>>) => {
  if (typeof status !== 'number' || typeof message !== 'string') return {}
  if (/^invalid token$/i.test(message)) return { error: 'invalid_token' }
  const isNo = status === 401 || /invalid (authorization code|refresh token|grant)/i.test(message)
  return { error: isNo ? 'invalid_grant' : 'invalid_request' }
}
