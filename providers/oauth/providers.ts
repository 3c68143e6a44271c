/** The providers that this service is registered with. */
import type { Config } from '../../platform/config.ts'
import { createDiscord } from './discord.ts'
import { createGoogle } from './google.ts'
import { type OAuthProvider, type OAuthProviderName, oauthProviderNames } from './provider.ts'
import { createTwitch } from './twitch.ts'

const create = { twitch: createTwitch, google: createGoogle, discord: createDiscord }

/** Those that are configured, in the order in which they are always named. Asks nobody anything yet. */
export const createOAuthProviders = (oauth: Config['oauth']): ReadonlyMap<OAuthProviderName, OAuthProvider> =>
  new Map(
    oauthProviderNames.flatMap((name) => {
      const client = oauth[name]
      return client ? [[name, create[name](client)] as const] : []
    }),
  )
