/** What of a provider's secrets can be found where it must not be. */
import { createHash } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import type { OAuthProvider, OAuthProviderName } from '../../../providers/oauth/provider.ts'
import { tokenPlace } from '../../../providers/oauth/tokens.ts'
import { beginMerge } from '../../support/merges.ts'
import { type CallbackBody, fetchUser, newProviderAccount, startOAuthApi } from '../../support/oauth-api.ts'

const oauth = await startOAuthApi()
const { api, providers, visitProvider, sendCallback, authorize } = oauth
const names: readonly OAuthProviderName[] = ['twitch', 'google', 'discord']

/** Every row of every table, as text. */
async function allRows(): Promise<string> {
  const tables = await api.sql`select tablename from pg_tables where schemaname = 'public'`
  const texts = await Promise.all(
    tables.map(async ({ tablename }) => {
      const rows = await api.sql<{ text: string }[]>`select t::text from ${api.sql(tablename)} t`
      return rows.map((row) => row.text).join('\n')
    }),
  )
  return texts.join('\n')
}

const tokensOf = (name: OAuthProviderName) =>
  providers[name].issuedTokens.flatMap(({ accessToken, refreshToken }) => [accessToken, refreshToken ?? accessToken])

test('no row, log line or response contains a provider token, a code or a secret of the browser', async () => {
  const returns: CallbackBody[] = []
  const replies: unknown[] = []
  for (const name of names) {
    const person = newProviderAccount()
    const callbackParams = await visitProvider(name, person)
    const { body } = await sendCallback(name, callbackParams)
    const bearer = body.cp_access_jwt
    const again = await visitProvider(name, person, { intent: 'link', scopes: 'chat', bearer })
    replies.push(body, await sendCallback(name, again), await fetchUser(api, bearer))
    returns.push(callbackParams, again, await visitProvider(name, newProviderAccount()))
  }
  const { user, merge, confirm } = await beginMerge(oauth)
  const halfway = await allRows()
  replies.push(merge, (await confirm({ password: user.password })).body)
  const places = { rows: halfway + (await allRows()), log: api.logged.join(''), replies: JSON.stringify(replies) }

  const tokens = names.flatMap(tokensOf)
  expect(tokens.length).toBeGreaterThan(12)
  const browsers = returns.flatMap(({ code, state, binding }) => [
    code,
    state,
    binding,
    // The PKCE verifier and the nonce, which are sent only to the provider.
    ...['verifier', 'nonce'].map((what) => createHash('sha256').update(`${what}:${binding}`).digest('base64url')),
  ])
  for (const [place, text] of Object.entries(places)) {
    expect(text.length, place).toBeGreaterThan(100)
    const found = [...tokens, ...browsers].filter((secret) => text.includes(secret))
    expect(found, place).toEqual([])
  }
  expect(places.rows + places.log).not.toContain(merge.merge_token)
})

/** A user whose chat at a provider is connected, by id. */
async function connectChat(name: OAuthProviderName): Promise<string> {
  const { userId, bearer } = await api.given.user()
  expect((await authorize(name, newProviderAccount(), { intent: 'link', scopes: 'chat', bearer })).body.status).toBe(
    'linked',
  )
  return userId
}

interface Kept {
  readonly access: string | null
  readonly refresh: string | null
  readonly scopes: readonly string[]
}

const keptFor = async (userId: string): Promise<Kept[]> => api.sql<Kept[]>`
  select access_token_sealed as access, refresh_token_sealed as refresh, scopes from user_oauth_accounts
  where user_id = ${userId} order by provider`

test('a chat token can be decrypted only for the account that it is linked to', async () => {
  const [userId, otherId] = [await connectChat('twitch'), await connectChat('twitch')]
  await api.sql`
    update user_oauth_accounts set access_token_sealed =
      (select access_token_sealed from user_oauth_accounts where user_id = ${userId})
    where user_id = ${otherId}`
  const [[row], [moved]] = [await keptFor(userId), await keptFor(otherId)]
  const { sealing } = api.services
  const place = (id = '', field: 'access_token' | 'refresh_token' = 'access_token') => tokenPlace(id, 'twitch', field)
  expect(tokensOf('twitch')).toContain(sealing.open(row?.access ?? '', place(userId)).text)
  expect(() => sealing.open(moved?.access ?? '', place(otherId))).toThrow()
  expect(() => sealing.open(row?.refresh ?? '', place(userId))).toThrow()
  expect(tokensOf('twitch')).toContain(sealing.open(row?.refresh ?? '', place(userId, 'refresh_token')).text)
})

test('no provider token is stored for a sign-in, a link or a merge', async () => {
  const none = { access: null, refresh: null, scopes: [] }
  for (const name of names) {
    const person = newProviderAccount()
    await authorize(name, person)
    const { id, bearer } = await authorize(name, person).then(async ({ body }) => ({
      id: (await fetchUser(api, body.cp_access_jwt)).id,
      bearer: body.cp_access_jwt,
    }))
    await authorize(name, person, { intent: 'link', bearer })
    expect(await keptFor(id), name).toEqual([none])
  }
  const { user, confirm } = await beginMerge(oauth)
  const merging = await api.sql`select * from merge_requests where user_id = ${user.userId}`
  expect(JSON.stringify(merging)).not.toMatch(/"v1\./)
  await confirm({ password: user.password })
  expect(await keptFor(user.userId)).toEqual([none])
})

test('no provider token is stored when the chat scopes are not granted', async () => {
  const { userId, bearer } = await api.given.user()
  const callbackParams = await visitProvider('discord', newProviderAccount(), {
    intent: 'link',
    scopes: 'chat',
    bearer,
  })
  const { oauthProviders } = api.services
  const discord = oauthProviders.get('discord') as OAuthProvider
  const exchange = discord.exchange.bind(discord)
  // The person has unticked a box.
  Object.assign(discord, {
    exchange: async (...asked: Parameters<typeof exchange>) => {
      const { identity, tokens } = await exchange(...asked)
      return { identity, tokens: { ...tokens, scopes: ['identify', 'email'] } }
    },
  })
  onTestFinished(() => void Object.assign(discord, { exchange }))
  expect((await sendCallback('discord', callbackParams)).body.status).toBe('linked')
  expect(await keptFor(userId)).toEqual([{ access: null, refresh: null, scopes: [] }])
})
