/** Double of Google: PKCE, `iss` in the callback, refresh tokens only with `access_type=offline` and never replaced. */
import { type OpenIdDouble, startOpenIdDouble } from './oauth-openid.ts'

export const startGoogle = (): Promise<OpenIdDouble> =>
  startOpenIdDouble({
    name: 'google',
    path: '',
    routes: { authorization: '/o/oauth2/v2/auth', token: '/token', jwks: '/oauth2/v3/certs' },
    revocationPath: '/revoke',
    revokesGrant: true,
    unknownTokenBody: { error: 'invalid_token', error_description: 'Token expired or revoked' },
    discovery: (document) => ({ ...document, revocation_endpoint: `${document.issuer}/revoke` }),
    emailScope: 'email',
    issuesRefreshToken: ({ access_type }) => access_type === 'offline',
    accessTokenSeconds: 3599,
    configuration: {
      scopes: ['openid', 'email', 'https://www.googleapis.com/auth/youtube.readonly'],
      pkce: { required: () => true },
      // Puts the address into the ID token, not only into the userinfo response.
      conformIdTokenClaims: false,
      extraParams: ['access_type', 'include_granted_scopes'],
      rotateRefreshToken: false,
    },
    token: ({ refresh_token, ...body }, grantType) =>
      grantType === 'refresh_token' || !refresh_token ? body : { ...body, refresh_token },
  })
