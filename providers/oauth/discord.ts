/** Discord implements OAuth 2 without OpenID Connect: its API returns the user that an access token belongs to. */
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
import type { OAuthClientConfig } from '../../platform/config/config.ts'
import { createBoundedFetch } from './bounded-fetch.ts'
import { buildCallbackUrl } from './callback-url.ts'
import { translateErrors, translateRevocationErrors } from './errors.ts'
import { parseIdentity } from './identity.ts'
import { type OAuthIdentity, type OAuthProvider, OAuthProviderError } from './provider.ts'
import { chatScopes, parseTokens } from './tokens.ts'

const name = 'discord'
const identityScopes = ['identify', 'email']
const scopes = { identity: identityScopes, chat: [...identityScopes, ...chatScopes.discord] }

export function createDiscord(client: OAuthClientConfig): OAuthProvider {
  const { issuerUrl } = client
  const configuration = createConfiguration(client)

  return {
    name,
    authorizationUrl: async ({ redirectUri, state, verifier, scopes: scopeSet }) =>
      buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        state,
        scope: scopes[scopeSet].join(' '),
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      }),
    exchange: (request, callback) =>
      translateErrors(name, async () => {
        const url = buildCallbackUrl(name, request, callback, { issuer: issuerUrl, isAlwaysSent: false })
        const response = await authorizationCodeGrant(configuration, url, { pkceCodeVerifier: request.verifier })
        const tokens = parseTokens(response, { scopes: scopes[request.scopes] })
        return { identity: await fetchIdentity(configuration, issuerUrl, tokens.accessToken), tokens }
      }),
    refresh: (refreshToken) =>
      translateErrors(name, async () =>
        parseTokens(await refreshTokenGrant(configuration, refreshToken), { scopes: [], refreshToken }),
      ),
    revoke: (token) => translateRevocationErrors(name, () => tokenRevocation(configuration, token)),
  }
}

function createConfiguration({ clientId, clientSecret, issuerUrl }: OAuthClientConfig): Configuration {
  const endpoints = {
    issuer: issuerUrl,
    authorization_endpoint: `${issuerUrl}/oauth2/authorize`,
    token_endpoint: `${issuerUrl}/api/oauth2/token`,
    revocation_endpoint: `${issuerUrl}/api/oauth2/token/revoke`,
  }
  const configuration = new Configuration(endpoints, clientId, undefined, ClientSecretPost(clientSecret))
  configuration[customFetch] = createBoundedFetch(name, issuerUrl)
  if (issuerUrl.startsWith('http:')) allowInsecureRequests(configuration)
  return configuration
}

async function fetchIdentity(
  configuration: Configuration,
  issuerUrl: string,
  accessToken: string,
): Promise<OAuthIdentity> {
  const url = new URL(`${issuerUrl}/api/v10/users/@me`)
  const response = await fetchProtectedResource(configuration, accessToken, url, 'GET')
  if (response.status !== 200) throw new OAuthProviderError(`${name} answered ${response.status}`)
  const user: unknown = await response.json().catch(() => undefined)
  if (typeof user !== 'object' || user === null) throw new OAuthProviderError(`${name} did not answer in JSON`)
  const { id, email, verified }: { id?: unknown; email?: unknown; verified?: unknown } = user
  return parseIdentity(name, { id, email, emailVerified: verified })
}
