/** Double of Twitch: scopes as an array, errors as sentences, no `iss` in the callback, no PKCE. */
import { type Document, type OpenIdDouble, startOpenIdDouble } from './oauth-openid.ts'

interface Options {
  /** Whether the discovery document contains `issuer`. */
  readonly hasIssuer?: boolean
}

export const startTwitch = ({ hasIssuer = true }: Options = {}): Promise<OpenIdDouble> =>
  startOpenIdDouble({
    name: 'twitch',
    path: '/oauth2',
    routes: { authorization: '/authorize', token: '/token', jwks: '/keys' },
    revocationPath: '/revoke',
    revokesGrant: false,
    unknownTokenBody: { status: 400, message: 'Invalid token' },
    emailScope: 'user:read:email',
    issuesRefreshToken: () => true,
    accessTokenSeconds: 14_124,
    configuration: {
      scopes: ['openid', 'user:read:email', 'chat:read', 'chat:edit'],
      features: { claimsParameter: { enabled: true } },
      rotateRefreshToken: true,
    },
    location: (url) => url.searchParams.delete('iss'),
    discovery: ({
      issuer,
      authorization_response_iss_parameter_supported: _iss,
      code_challenge_methods_supported: _pkce,
      ...document
    }) => (hasIssuer ? { issuer, ...document } : document),
    token,
  })

function token({ id_token, ...body }: Document, grantType: unknown): Document {
  const isRefresh = grantType === 'refresh_token'
  if (body.error === 'invalid_grant')
    return { status: 400, message: isRefresh ? 'Invalid refresh token' : 'Invalid authorization code' }
  if (body.error) return { status: 403, message: 'invalid client secret' }
  const scope = String(body.scope).split(' ')
  return { ...body, scope, ...(isRefresh ? {} : { id_token }) }
}
