import type { Config } from '../../platform/config/config.ts'
import { createDiscord } from './discord.ts'
import { createGoogle } from './google.ts'
import { type OAuthProvider, type OAuthProviderName, oauthProviderNames } from './provider.ts'
import { createTwitch } from './twitch.ts'

const constructors = { twitch: createTwitch, google: createGoogle, discord: createDiscord }

/** The configured providers, in the order of {@link oauthProviderNames}. Sends no request. */
export const createOAuthProviders = (oauth: Config['oauth']): ReadonlyMap<OAuthProviderName, OAuthProvider> =>
  new Map(
    oauthProviderNames.flatMap((name) => {
      const client = oauth[name]
      return client ? [[name, constructors[name](client)] as const] : []
    }),
  )
