/** Discord: OAuth 2 without OpenID Connect. Who somebody is, its API tells whoever holds their token. */
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientSecretPost,
  Configuration,
  calculatePKCECodeChallenge,
  customFetch,
  fetchProtectedResource,
  refreshTokenGrant,
  tokenRevocation,
} from 'openid-client'
import type { OAuthClientConfig } from '../../platform/config.ts'
import { identityOf, tokensOf } from './answers.ts'
import { createBoundedFetch } from './bounded-fetch.ts'
import { callbackUrl } from './callback-url.ts'
import { chatScopes } from './chat-scopes.ts'
import { inOurWords, revoking } from './failures.ts'
import { type OAuthIdentity, type OAuthProvider, OAuthProviderTrouble } from './provider.ts'

const name = 'discord'
const identityScopes = ['identify', 'email']
const scopes = { identity: identityScopes, chat: [...identityScopes, ...chatScopes.discord] }

export function createDiscord(client: OAuthClientConfig): OAuthProvider {
  const { issuerUrl } = client
  const at = configurationOf(client)

  return {
    name,
    authorizationUrl: async ({ redirectUri, state, verifier, scopes: wanted }) =>
      buildAuthorizationUrl(at, {
        redirect_uri: redirectUri,
        state,
        scope: scopes[wanted].join(' '),
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      }),
    exchange: (round, callback) =>
      inOurWords(name, async () => {
        const url = callbackUrl(name, round, callback, { issuer: issuerUrl, isAlwaysNamed: false })
        const answer = await authorizationCodeGrant(at, url, { pkceCodeVerifier: round.verifier })
        const tokens = tokensOf(answer, { scopes: scopes[round.scopes] })
        return { identity: await whoHolds(at, issuerUrl, tokens.accessToken), tokens }
      }),
    refresh: (refreshToken) =>
      inOurWords(name, async () => tokensOf(await refreshTokenGrant(at, refreshToken), { scopes: [], refreshToken })),
    revoke: (token) => revoking(name, () => tokenRevocation(at, token)),
  }
}

function configurationOf({ clientId, clientSecret, issuerUrl }: OAuthClientConfig): Configuration {
  const endpoints = {
    issuer: issuerUrl,
    authorization_endpoint: `${issuerUrl}/oauth2/authorize`,
    token_endpoint: `${issuerUrl}/api/oauth2/token`,
    revocation_endpoint: `${issuerUrl}/api/oauth2/token/revoke`,
  }
  const at = new Configuration(endpoints, clientId, undefined, ClientSecretPost(clientSecret))
  at[customFetch] = createBoundedFetch(name, issuerUrl)
  if (issuerUrl.startsWith('http:')) allowInsecureRequests(at)
  return at
}

async function whoHolds(at: Configuration, issuerUrl: string, accessToken: string): Promise<OAuthIdentity> {
  const url = new URL(`${issuerUrl}/api/v10/users/@me`)
  const response = await fetchProtectedResource(at, accessToken, url, 'GET')
  if (response.status !== 200) throw new OAuthProviderTrouble(`${name} answered ${response.status}`)
  const user: unknown = await response.json().catch(() => undefined)
  if (typeof user !== 'object' || user === null) throw new OAuthProviderTrouble(`${name} did not answer in JSON`)
  const { id, email, verified }: { id?: unknown; email?: unknown; verified?: unknown } = user
  return identityOf(name, { id, email, emailVerified: verified })
}
