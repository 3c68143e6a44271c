/** One provider and its stand-in, without the service around them. */
import { randomBytes } from 'node:crypto'
import { readConfig } from '../../platform/config.ts'
import type { OAuthProvider, OAuthProviderName, OAuthRound } from '../../providers/oauth/provider.ts'
import { createOAuthProviders } from '../../providers/oauth/providers.ts'
import type { CameBack } from './oauth-browser.ts'
import { startDiscord } from './oauth-discord.ts'
import type { OAuthDouble } from './oauth-double.ts'
import { startGoogle } from './oauth-google.ts'
import { startTwitch } from './oauth-twitch.ts'
import { randomSecrets } from './secrets.ts'

export const startDouble: Readonly<Record<OAuthProviderName, () => Promise<OAuthDouble>>> = {
  twitch: startTwitch,
  google: startGoogle,
  discord: startDiscord,
}

/** What a process needs besides the providers, made up. */
const others = {
  DATABASE_URL: 'postgres://svc@127.0.0.1/svc',
  TEMPORAL_ADDRESS: '127.0.0.1:7233',
  ...randomSecrets(),
}

/** As a process has them that was just started: nothing is known of any provider yet. */
export const providersWith = (variables: Readonly<Record<string, string>>) =>
  createOAuthProviders(readConfig({ ...others, ...variables }).oauth)

/** The provider as the service sees it, with the stand-in behind it. */
export function providerAt({ variables }: Pick<OAuthDouble, 'variables'>): OAuthProvider {
  const [provider] = providersWith(variables).values()
  if (!provider) throw new Error('the variables configure no provider')
  return provider
}

const random = () => randomBytes(32).toString('base64url')

export const someRound = (changes: Partial<OAuthRound> = {}): OAuthRound => ({
  state: random(),
  verifier: random(),
  nonce: random(),
  redirectUri: 'http://localhost:8081/oauth/callback',
  scopes: 'identity',
  ...changes,
})

export interface Returned {
  readonly round: OAuthRound
  readonly back: CameBack
}

/** Somebody who has been at the provider and is back with a code. */
export async function goAndReturn(
  provider: OAuthProvider,
  double: OAuthDouble,
  changes?: Partial<OAuthRound>,
): Promise<Returned> {
  const round = someRound(changes)
  return { round, back: await double.visit(await provider.authorizationUrl(round)) }
}

/** The whole way: who it is, and their tokens. */
export async function signInAt(provider: OAuthProvider, double: OAuthDouble, changes?: Partial<OAuthRound>) {
  const { round, back } = await goAndReturn(provider, double, changes)
  return provider.exchange(round, back)
}
