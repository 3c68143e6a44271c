/** The API with all three providers, and people who go to them and come back. */
import { randomUUID } from 'node:crypto'
import type { OAuthProviderName } from '../../providers/oauth/provider.ts'
import { type Answer, type ErrorBody, startApi, type TestApi, type TokenSet } from './api.ts'
import type { CameBack } from './oauth-browser.ts'
import { startDiscord } from './oauth-discord.ts'
import type { DoubleAccount, OAuthDouble } from './oauth-double.ts'
import { startGoogle } from './oauth-google.ts'
import { startTwitch } from './oauth-twitch.ts'

interface Started {
  readonly authorization_url: string
  readonly binding: string
  readonly expires_in: number
}

/** What a callback may be answered with. */
export interface Outcome extends Partial<TokenSet>, Partial<ErrorBody> {
  readonly status?: 'signed_in' | 'linked' | 'merge_required'
  readonly merge_request_id?: string
  readonly merge_token?: string
  readonly sign_in_methods?: readonly string[]
  readonly expires_in?: never
}

/** What the site sends with the browser that came back. */
export type Return = CameBack & { readonly binding: string }

interface Trip {
  readonly intent?: 'sign_in' | 'link' | 'merge'
  readonly merge_request_id?: string | undefined
  readonly scopes?: 'identity' | 'chat'
  readonly bearer?: string | undefined
}

/** Somebody at a provider whom no test knows yet; the provider vouches for their address unless told otherwise. */
export const somebody = (account: Partial<DoubleAccount> = {}): DoubleAccount => ({
  providerUserId: randomUUID(),
  email: `${randomUUID()}@example.com`,
  emailVerified: true,
  ...account,
})

export interface OAuthApi {
  readonly api: TestApi
  readonly providers: Readonly<Record<OAuthProviderName, OAuthDouble>>
  start(provider: string, trip?: Trip): Promise<Answer<Partial<Started> & Partial<ErrorBody>>>
  /** To the provider as this account, and back; what the site is to send is not sent yet. */
  leave(provider: OAuthProviderName, account: DoubleAccount, trip?: Trip): Promise<Return>
  comeBack(provider: string, back: Partial<Return>): Promise<Answer<Outcome>>
  /** The whole round. */
  go(provider: OAuthProviderName, account: DoubleAccount, trip?: Trip): Promise<Answer<Outcome>>
}

export async function startOAuthApi(variables: Readonly<Record<string, string>> = {}): Promise<OAuthApi> {
  const [twitch, google, discord] = await Promise.all([startTwitch(), startGoogle(), startDiscord()])
  const providers = { twitch, google, discord }
  const api = await startApi({ ...twitch.variables, ...google.variables, ...discord.variables, ...variables })

  const start: OAuthApi['start'] = (provider, { bearer, ...trip } = {}) =>
    api.post(`/auth/oauth/${provider}/start`, { intent: 'sign_in', ...trip }, bearer ? { bearer } : {})
  const leave: OAuthApi['leave'] = async (provider, account, trip) => {
    const { status, body } = await start(provider, trip)
    if (!body.authorization_url || !body.binding) throw new Error(`start was answered ${status}`)
    providers[provider].account = account
    return { ...(await providers[provider].visit(body.authorization_url)), binding: body.binding }
  }
  const comeBack: OAuthApi['comeBack'] = (provider, back) => api.post(`/auth/oauth/${provider}/callback`, back)
  const go: OAuthApi['go'] = async (provider, account, trip) => comeBack(provider, await leave(provider, account, trip))
  return { api, providers, start, leave, comeBack, go }
}

/** The account that a bearer token is for, as its owner sees it. */
export interface ShownUser {
  readonly id: string
  readonly email: string | null
  readonly email_verified: boolean
  readonly stream_token: string
  readonly linked_accounts: readonly { readonly provider: OAuthProviderName; readonly linked: boolean }[]
}

export const userOf = async (api: TestApi, bearer: string | undefined): Promise<ShownUser> =>
  (await api.get<{ user: ShownUser }>('/auth/session', { bearer: bearer ?? '' })).body.user

/** The providers that are linked to a user, as they are shown. */
export const linkedTo = (user: ShownUser): OAuthProviderName[] =>
  user.linked_accounts.flatMap(({ provider, linked }) => (linked ? [provider] : []))

/** How many rows each table has: the same before and after, when nothing was changed. */
export async function countRows(api: TestApi, tables: readonly string[]): Promise<Record<string, number>> {
  const counts = await Promise.all(
    tables.map(async (table) => {
      const [row] = await api.sql`select count(*)::int as rows from ${api.sql(table)}`
      return [table, row?.rows as number] as const
    }),
  )
  return Object.fromEntries(counts)
}
