/** Google: OpenID Connect by the book. */
import type { OAuthClientConfig } from '../../platform/config.ts'
import { chatScopes } from './chat-scopes.ts'
import { createOpenIdProvider } from './openid.ts'
import type { OAuthProvider } from './provider.ts'

const identityScopes = ['openid', 'email']

export const createGoogle = (client: OAuthClientConfig): OAuthProvider =>
  createOpenIdProvider(client, {
    name: 'google',
    pkce: true,
    scopes: {
      identity: identityScopes,
      chat: [...identityScopes, ...chatScopes.google],
    },
    parameters: {
      identity: {},
      // A refresh token comes only with a consent, and only when one asks for it.
      chat: { access_type: 'offline', prompt: 'consent', include_granted_scopes: 'true' },
    },
  })
