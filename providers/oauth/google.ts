import type { OAuthClientConfig } from '../../platform/config/config.ts'
import { createOpenIdProvider } from './openid.ts'
import type { OAuthProvider } from './provider.ts'
import { chatScopes } from './tokens.ts'

const identityScopes = ['openid', 'email']

export const createGoogle = (client: OAuthClientConfig): OAuthProvider =>
  createOpenIdProvider(client, {
    name: 'google',
    hasPkce: true,
    scopes: {
      identity: identityScopes,
      chat: [...identityScopes, ...chatScopes.google],
    },
    parameters: {
      identity: {},
      // Google sends a refresh token only with `access_type=offline` and an explicit consent.
      chat: { access_type: 'offline', prompt: 'consent', include_granted_scopes: 'true' },
    },
  })
