/** Google's stand-in: PKCE, `iss` in the answer, refresh tokens only for who asks for them, never replaced. */
import { type OpenIdDouble, startOpenIdDouble } from './oauth-openid.ts'

export const startGoogle = (): Promise<OpenIdDouble> =>
  startOpenIdDouble({
    name: 'google',
    path: '',
    routes: { authorization: '/o/oauth2/v2/auth', token: '/token', jwks: '/oauth2/v3/certs' },
    revocation: '/revoke',
    revokesGrant: true,
    unknownToken: { error: 'invalid_token', error_description: 'Token expired or revoked' },
    discovery: (document) => ({ ...document, revocation_endpoint: `${document.issuer}/revoke` }),
    emailNeedsScope: 'email',
    givesRefreshToken: ({ access_type }) => access_type === 'offline',
    accessTokenSeconds: 3599,
    configuration: {
      scopes: ['openid', 'email', 'https://www.googleapis.com/auth/youtube.readonly'],
      pkce: { required: () => true },
      // The address is in the ID token, not only at the userinfo endpoint.
      conformIdTokenClaims: false,
      extraParams: ['access_type', 'include_granted_scopes'],
      rotateRefreshToken: false,
    },
    token: ({ refresh_token, ...answer }, grantType) =>
      grantType === 'refresh_token' || !refresh_token ? answer : { ...answer, refresh_token },
  })
