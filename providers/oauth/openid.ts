/** An OpenID Connect provider: the common part of Twitch and Google. */
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientSecretPost,
  type Configuration,
  type CustomFetch,
  type CustomFetchOptions,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  refreshTokenGrant,
  tokenRevocation,
} from 'openid-client'
import type { OAuthClientConfig } from '../../platform/config/config.ts'
import { memoizeWithTtl } from '../../platform/memoize-with-ttl.ts'
import { createBoundedFetch } from './bounded-fetch.ts'
import { buildCallbackUrl } from './callback-url.ts'
import { translateErrors, translateRevocationErrors } from './errors.ts'
import { parseIdentity } from './identity.ts'
import type { OAuthAuthorizationRequest, OAuthProvider, OAuthProviderName, OAuthScopes } from './provider.ts'
import { parseTokens } from './tokens.ts'

/** How one provider differs from the others. */
export interface OpenIdTraits {
  readonly name: OAuthProviderName
  readonly hasPkce: boolean
  readonly scopes: Readonly<Record<OAuthScopes, readonly string[]>>
  /** Additional query parameters of the authorization URL. */
  readonly parameters: Readonly<Record<OAuthScopes, Readonly<Record<string, string>>>>
  /** Converts deviating JSON responses to the standard before openid-client checks them. */
  readonly normalizeResponse?: (response: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>
}

const discoveryTtlMillis = 3_600_000

export function createOpenIdProvider(client: OAuthClientConfig, traits: OpenIdTraits): OAuthProvider {
  const { name, scopes } = traits
  const getConfiguration = memoizeWithTtl(discoveryTtlMillis, () => discoverConfiguration(client, traits))

  return {
    name,
    authorizationUrl: (request) =>
      translateErrors(name, async () =>
        buildAuthorizationUrl(await getConfiguration(), await buildParameters(traits, request)),
      ),
    exchange: (request, callback) =>
      translateErrors(name, async () => {
        const configuration = await getConfiguration()
        const url = buildCallbackUrl(name, request, callback, expectedIssuer(configuration))
        const response = await authorizationCodeGrant(configuration, url, {
          expectedNonce: request.nonce,
          ...(traits.hasPkce ? { pkceCodeVerifier: request.verifier } : {}),
        })
        const claims = response.claims()
        return {
          identity: parseIdentity(name, {
            id: claims?.sub,
            email: claims?.email,
            emailVerified: claims?.email_verified,
          }),
          tokens: parseTokens(response, { scopes: scopes[request.scopes] }),
        }
      }),
    refresh: (refreshToken) =>
      translateErrors(name, async () => {
        const response = await refreshTokenGrant(await getConfiguration(), refreshToken)
        return parseTokens(response, { scopes: [], refreshToken })
      }),
    revoke: (token) => translateRevocationErrors(name, async () => tokenRevocation(await getConfiguration(), token)),
  }
}

async function discoverConfiguration({ clientId, clientSecret, issuerUrl }: OAuthClientConfig, traits: OpenIdTraits) {
  const fetch = normalizeResponses(createBoundedFetch(traits.name, issuerUrl), traits)
  const options = issuerUrl.startsWith('http:') ? [allowInsecureRequests] : []
  return discovery(new URL(issuerUrl), clientId, undefined, ClientSecretPost(clientSecret), {
    [customFetch]: fetch,
    // Without this, openid-client does not verify the signature of an ID token that it received over TLS.
    execute: [...options, enableNonRepudiationChecks],
  })
}

async function buildParameters(
  traits: OpenIdTraits,
  request: OAuthAuthorizationRequest,
): Promise<Record<string, string>> {
  return {
    redirect_uri: request.redirectUri,
    scope: traits.scopes[request.scopes].join(' '),
    state: request.state,
    nonce: request.nonce,
    ...(traits.hasPkce && {
      code_challenge: await calculatePKCECodeChallenge(request.verifier),
      code_challenge_method: 'S256',
    }),
    ...traits.parameters[request.scopes],
  }
}

function expectedIssuer(configuration: Configuration) {
  const { issuer, authorization_response_iss_parameter_supported: isAlwaysSent = false } =
    configuration.serverMetadata()
  return { issuer, isAlwaysSent }
}

const normalizeResponses =
  (fetch: CustomFetch, { normalizeResponse = (response) => response }: OpenIdTraits): CustomFetch =>
  async (url, init) => {
    const response = await fetch(url, init)
    const body: unknown = await response
      .clone()
      .json()
      .catch(() => undefined)
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return response
    const normalized = { ...normalizeResponse(body as Record<string, unknown>) }
    // A refresh does not use the identity. An invalid ID token in its response must not lose the new refresh token.
    if (isRefresh(init)) delete normalized.id_token
    return new Response(JSON.stringify(normalized), response)
  }

const isRefresh = ({ body }: CustomFetchOptions): boolean =>
  body instanceof URLSearchParams && body.get('grant_type') === 'refresh_token'
