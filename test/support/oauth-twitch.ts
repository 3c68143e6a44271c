/** Twitch's stand-in, with what Twitch does in its own way: scopes as a list, errors in words, no `iss`, no PKCE. */
import { type Document, type OpenIdDouble, startOpenIdDouble } from './oauth-openid.ts'

interface Options {
  /** Whether the discovery document says whose it is. */
  readonly namesIssuer?: boolean
}

export const startTwitch = ({ namesIssuer = true }: Options = {}): Promise<OpenIdDouble> =>
  startOpenIdDouble({
    name: 'twitch',
    path: '/oauth2',
    routes: { authorization: '/authorize', token: '/token', jwks: '/keys' },
    revocation: '/revoke',
    revokesGrant: false,
    unknownToken: { status: 400, message: 'Invalid token' },
    emailNeedsScope: 'user:read:email',
    givesRefreshToken: () => true,
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
    }) => (namesIssuer ? { issuer, ...document } : document),
    token,
  })

function token({ id_token, ...answer }: Document, grantType: unknown): Document {
  const isRefresh = grantType === 'refresh_token'
  if (answer.error === 'invalid_grant')
    return { status: 400, message: isRefresh ? 'Invalid refresh token' : 'Invalid authorization code' }
  if (answer.error) return { status: 403, message: 'invalid client secret' }
  const scope = String(answer.scope).split(' ')
  return { ...answer, scope, ...(isRefresh ? {} : { id_token }) }
}
