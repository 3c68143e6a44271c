/** What Twitch and Google have in common: OpenID Connect, as far as each of them keeps to it. */
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
import type { OAuthClientConfig } from '../../platform/config.ts'
import { identityOf, tokensOf } from './answers.ts'
import { createBoundedFetch } from './bounded-fetch.ts'
import { callbackUrl } from './callback-url.ts'
import { inOurWords, revoking } from './failures.ts'
import { kept } from './kept.ts'
import type { OAuthProvider, OAuthProviderName, OAuthRound, OAuthScopes } from './provider.ts'

/** What one provider does in its own way. */
export interface OpenIdTraits {
  readonly name: OAuthProviderName
  readonly pkce: boolean
  readonly scopes: Readonly<Record<OAuthScopes, readonly string[]>>
  /** Sent along with the browser, besides what every round needs. */
  readonly parameters: Readonly<Record<OAuthScopes, Readonly<Record<string, string>>>>
  /** Puts right what the provider answers in its own way, before the library looks at it. */
  readonly mend?: (answer: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>
}

const discoveryMillis = 3_600_000

export function createOpenIdProvider(client: OAuthClientConfig, traits: OpenIdTraits): OAuthProvider {
  const { name, scopes } = traits
  const configuration = kept(discoveryMillis, () => discover(client, traits))

  return {
    name,
    authorizationUrl: (round) =>
      inOurWords(name, async () => buildAuthorizationUrl(await configuration(), await parametersOf(traits, round))),
    exchange: (round, callback) =>
      inOurWords(name, async () => {
        const at = await configuration()
        const answer = await authorizationCodeGrant(at, callbackUrl(name, round, callback, issuerAt(at)), {
          expectedNonce: round.nonce,
          ...(traits.pkce ? { pkceCodeVerifier: round.verifier } : {}),
        })
        const claims = answer.claims()
        return {
          identity: identityOf(name, { id: claims?.sub, email: claims?.email, emailVerified: claims?.email_verified }),
          tokens: tokensOf(answer, { scopes: scopes[round.scopes] }),
        }
      }),
    refresh: (refreshToken) =>
      inOurWords(name, async () => {
        const answer = await refreshTokenGrant(await configuration(), refreshToken)
        return tokensOf(answer, { scopes: [], refreshToken })
      }),
    revoke: (token) => revoking(name, async () => tokenRevocation(await configuration(), token)),
  }
}

async function discover({ clientId, clientSecret, issuerUrl }: OAuthClientConfig, traits: OpenIdTraits) {
  const fetch = mending(createBoundedFetch(traits.name, issuerUrl), traits)
  const execute = issuerUrl.startsWith('http:') ? [allowInsecureRequests] : []
  return discovery(new URL(issuerUrl), clientId, undefined, ClientSecretPost(clientSecret), {
    [customFetch]: fetch,
    // Without this the library trusts the connection alone for the ID token, and not its signature.
    execute: [...execute, enableNonRepudiationChecks],
  })
}

async function parametersOf(traits: OpenIdTraits, round: OAuthRound): Promise<Record<string, string>> {
  return {
    redirect_uri: round.redirectUri,
    scope: traits.scopes[round.scopes].join(' '),
    state: round.state,
    nonce: round.nonce,
    ...(traits.pkce && {
      code_challenge: await calculatePKCECodeChallenge(round.verifier),
      code_challenge_method: 'S256',
    }),
    ...traits.parameters[round.scopes],
  }
}

function issuerAt(at: Configuration) {
  const { issuer, authorization_response_iss_parameter_supported: isAlwaysNamed = false } = at.serverMetadata()
  return { issuer, isAlwaysNamed }
}

/** @returns a fetch whose answers in JSON are put right. */
const mending =
  (fetch: CustomFetch, { mend = (answer) => answer }: OpenIdTraits): CustomFetch =>
  async (url, init) => {
    const response = await fetch(url, init)
    const answer: unknown = await response
      .clone()
      .json()
      .catch(() => undefined)
    if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return response
    const mended = { ...mend(answer as Record<string, unknown>) }
    // Who it is was settled at sign-in. A flaw in a repeated ID token must not cost the new refresh token beside it.
    if (isRefresh(init)) delete mended.id_token
    return new Response(JSON.stringify(mended), response)
  }

const isRefresh = ({ body }: CustomFetchOptions): boolean =>
  body instanceof URLSearchParams && body.get('grant_type') === 'refresh_token'
