/** What is asked for when a chat is connected, and what a grant has to hold to serve for it: people may grant less. */
import type { OAuthProviderName } from './provider.ts'

export const chatScopes: Readonly<Record<OAuthProviderName, readonly string[]>> = {
  twitch: ['chat:read', 'chat:edit'],
  google: ['https://www.googleapis.com/auth/youtube.readonly'],
  discord: ['guilds'],
}

export const holdsChatScopes = (provider: OAuthProviderName, granted: readonly string[]): boolean =>
  chatScopes[provider].every((scope) => granted.includes(scope))
