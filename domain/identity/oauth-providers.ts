/** The providers whose identities sign in to accounts. */
export const oauthProviderNames = ['twitch', 'google', 'discord'] as const
export type OAuthProviderName = (typeof oauthProviderNames)[number]
