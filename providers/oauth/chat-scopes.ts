/** What a grant has to hold so that its tokens serve for the chat of a channel. People may grant less than they were asked for. */
import type { OAuthProviderName } from './provider.ts'

const chatScopes: Readonly<Record<OAuthProviderName, readonly string[]>> = {
  twitch: ['chat:read', 'chat:edit'],
  google: ['https://www.googleapis.com/auth/youtube.readonly'],
  discord: ['guilds'],
}

export const holdsChatScopes = (provider: OAuthProviderName, granted: readonly string[]): boolean =>
  chatScopes[provider].every((scope) => granted.includes(scope))
