/** One provider client with its double, without the API. */
import { randomBytes } from 'node:crypto'
import { readConfig } from '../../platform/config/config.ts'
import type { OAuthAuthorizationRequest, OAuthProvider, OAuthProviderName } from '../../providers/oauth/provider.ts'
import { createOAuthProviders } from '../../providers/oauth/providers.ts'
import { testEnvironment } from './environment.ts'
import type { CallbackParameters } from './oauth-browser.ts'
import { startDiscord } from './oauth-discord.ts'
import type { OAuthDouble } from './oauth-double.ts'
import { startGoogle } from './oauth-google.ts'
import { startTwitch } from './oauth-twitch.ts'

export const startDouble: Readonly<Record<OAuthProviderName, () => Promise<OAuthDouble>>> = {
  twitch: startTwitch,
  google: startGoogle,
  discord: startDiscord,
}

/** New provider clients, which have not loaded any discovery document. */
export const createProviders = (variables: Readonly<Record<string, string>>) =>
  createOAuthProviders(readConfig(testEnvironment(variables)).oauth)

/** A new client of the provider that the variables configure. */
export function createProvider({ variables }: Pick<OAuthDouble, 'variables'>): OAuthProvider {
  const [provider] = createProviders(variables).values()
  if (!provider) throw new Error('the variables configure no provider')
  return provider
}

const random = () => randomBytes(32).toString('base64url')

export const newRequest = (changes: Partial<OAuthAuthorizationRequest> = {}): OAuthAuthorizationRequest => ({
  state: random(),
  verifier: random(),
  nonce: random(),
  redirectUri: 'http://localhost:8081/oauth/callback',
  scopes: 'identity',
  ...changes,
})

export interface Authorized {
  readonly request: OAuthAuthorizationRequest
  readonly callback: CallbackParameters
}

/** Signs in at the double, up to the callback with its code. */
export async function authorizeAt(
  provider: OAuthProvider,
  double: OAuthDouble,
  changes?: Partial<OAuthAuthorizationRequest>,
): Promise<Authorized> {
  const request = newRequest(changes)
  return { request, callback: await double.visit(await provider.authorizationUrl(request)) }
}

/** Signs in at the double and exchanges the code: returns the identity and the tokens. */
export async function signInAt(
  provider: OAuthProvider,
  double: OAuthDouble,
  changes?: Partial<OAuthAuthorizationRequest>,
) {
  const { request, callback } = await authorizeAt(provider, double, changes)
  return provider.exchange(request, callback)
}
