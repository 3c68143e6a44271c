/** The API with doubles of all three providers, and users who authorize there. */
import { randomUUID } from 'node:crypto'
import type { OAuthProviderName } from '../../providers/oauth/provider.ts'
import { type Answer, type ErrorBody, startApi, type TestApi, type TokenSet } from './api.ts'
import type { CallbackParameters } from './oauth-browser.ts'
import { startDiscord } from './oauth-discord.ts'
import type { DoubleAccount, OAuthDouble } from './oauth-double.ts'
import { startGoogle } from './oauth-google.ts'
import { startTwitch } from './oauth-twitch.ts'

interface StartReply {
  readonly authorization_url: string
  readonly binding: string
  readonly expires_in: number
}

/** Every field that a reply to a callback may have. */
export interface CallbackReply extends Partial<TokenSet>, Partial<ErrorBody> {
  readonly status?: 'signed_in' | 'linked' | 'merge_required'
  readonly merge_request_id?: string
  readonly merge_token?: string
  readonly sign_in_methods?: readonly string[]
  readonly expires_in?: never
}

/** The request body that the site sends to the callback endpoint. */
export type CallbackBody = CallbackParameters & { readonly binding: string }

interface StartOptions {
  readonly intent?: 'sign_in' | 'link' | 'merge'
  readonly merge_request_id?: string | undefined
  readonly scopes?: 'identity' | 'chat'
  readonly terms_version?: string
  readonly bearer?: string | undefined
}

/** A provider account that no test has used, with a verified address by default. */
export const newProviderAccount = (account: Partial<DoubleAccount> = {}): DoubleAccount => ({
  providerUserId: randomUUID(),
  email: `${randomUUID()}@example.com`,
  emailVerified: true,
  ...account,
})

export interface OAuthApi {
  readonly api: TestApi
  readonly providers: Readonly<Record<OAuthProviderName, OAuthDouble>>
  start(provider: string, options?: StartOptions): Promise<Answer<Partial<StartReply> & Partial<ErrorBody>>>
  /** Starts an authorization and signs in at the provider with this account, without sending the callback. */
  visitProvider(provider: OAuthProviderName, account: DoubleAccount, options?: StartOptions): Promise<CallbackBody>
  sendCallback(provider: string, body: Partial<CallbackBody>): Promise<Answer<CallbackReply>>
  /** Starts an authorization, signs in at the provider and sends the callback. */
  authorize(provider: OAuthProviderName, account: DoubleAccount, options?: StartOptions): Promise<Answer<CallbackReply>>
}

export async function startOAuthApi(variables: Readonly<Record<string, string>> = {}): Promise<OAuthApi> {
  const [twitch, google, discord] = await Promise.all([startTwitch(), startGoogle(), startDiscord()])
  const providers = { twitch, google, discord }
  const api = await startApi({ ...twitch.variables, ...google.variables, ...discord.variables, ...variables })

  const start: OAuthApi['start'] = (provider, { bearer, ...body } = {}) =>
    api.post(`/auth/oauth/${provider}/start`, { intent: 'sign_in', ...body }, bearer ? { bearer } : {})
  const visitProvider: OAuthApi['visitProvider'] = async (provider, account, options) => {
    const { status, body } = await start(provider, options)
    if (!body.authorization_url || !body.binding) throw new Error(`start was answered ${status}`)
    providers[provider].account = account
    return { ...(await providers[provider].visit(body.authorization_url)), binding: body.binding }
  }
  const sendCallback: OAuthApi['sendCallback'] = (provider, body) => api.post(`/auth/oauth/${provider}/callback`, body)
  const authorize: OAuthApi['authorize'] = async (provider, account, options) =>
    sendCallback(provider, await visitProvider(provider, account, options))
  return { api, providers, start, visitProvider, sendCallback, authorize }
}

/** The `user` object of `/auth/session`. */
export interface SessionUser {
  readonly id: string
  readonly email: string | null
  readonly email_verified: boolean
  readonly stream_token: string
  readonly linked_accounts: readonly { readonly provider: OAuthProviderName; readonly linked: boolean }[]
}

export const fetchUser = async (api: TestApi, bearer: string | undefined): Promise<SessionUser> =>
  (await api.get<{ user: SessionUser }>('/auth/session', { bearer: bearer ?? '' })).body.user

export const linkedProviders = (user: SessionUser): OAuthProviderName[] =>
  user.linked_accounts.flatMap(({ provider, linked }) => (linked ? [provider] : []))

/** The number of rows of each table, to compare before and after. */
export async function countRows(api: TestApi, tables: readonly string[]): Promise<Record<string, number>> {
  const counts = await Promise.all(
    tables.map(async (table) => {
      const [row] = await api.sql`select count(*)::int as rows from ${api.sql(table)}`
      return [table, row?.rows as number] as const
    }),
  )
  return Object.fromEntries(counts)
}
