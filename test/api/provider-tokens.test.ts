/** What of a provider's secrets can be found where it must not be. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { OAuthProviderName } from '../../providers/oauth/provider.ts'
import { tokenPlace } from '../../providers/oauth/token-place.ts'
import { beginMerge } from '../support/merges.ts'
import { type Return, somebody, startOAuthApi, userOf } from '../support/oauth-rounds.ts'

const oauth = await startOAuthApi()
const { api, providers, leave, comeBack, go } = oauth
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
  providers[name].tokensIssued.flatMap(({ accessToken, refreshToken }) => [accessToken, refreshToken ?? accessToken])

test('neither rows nor the log nor a reply hold a token, a code, or a secret of the browser', async () => {
  const returns: Return[] = []
  const replies: unknown[] = []
  for (const name of names) {
    const person = somebody()
    const back = await leave(name, person)
    const { body } = await comeBack(name, back)
    const bearer = body.cp_access_jwt
    const again = await leave(name, person, { intent: 'link', scopes: 'chat', bearer })
    replies.push(body, await comeBack(name, again), await userOf(api, bearer))
    returns.push(back, again, await leave(name, somebody()))
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
    // What only the provider is told, of PKCE and of OpenID Connect.
    ...['verifier', 'nonce'].map((what) => createHash('sha256').update(`${what}:${binding}`).digest('base64url')),
  ])
  for (const [place, text] of Object.entries(places)) {
    expect(text.length, place).toBeGreaterThan(100)
    const found = [...tokens, ...browsers].filter((secret) => text.includes(secret))
    expect(found, place).toEqual([])
  }
  expect(places.rows + places.log).not.toContain(merge.merge_token)
})

test('a token opens for the account that it is linked to, and nowhere else', async () => {
  const [one, other] = [await go('twitch', somebody()), await go('twitch', somebody())]
  const [userId, otherId] = await Promise.all(
    [one, other].map(async ({ body }) => (await userOf(api, body.cp_access_jwt)).id),
  )
  await api.sql`
    update user_oauth_accounts set access_token_sealed =
      (select access_token_sealed from user_oauth_accounts where user_id = ${userId ?? ''})
    where user_id = ${otherId ?? ''}`
  const [row, moved] = await Promise.all(
    [userId, otherId].map(async (id) => {
      const [found] = await api.sql<{ access: string; refresh: string }[]>`
        select access_token_sealed as access, refresh_token_sealed as refresh from user_oauth_accounts
        where user_id = ${id ?? ''}`
      return found ?? { access: '', refresh: '' }
    }),
  )
  const { sealing } = api.services
  const place = (id = '', field: 'access_token' | 'refresh_token' = 'access_token') => tokenPlace(id, 'twitch', field)
  expect(tokensOf('twitch')).toContain(sealing.open(row?.access ?? '', place(userId)).text)
  expect(() => sealing.open(moved?.access ?? '', place(otherId))).toThrow()
  expect(() => sealing.open(row?.refresh ?? '', place(userId))).toThrow()
  expect(tokensOf('twitch')).toContain(sealing.open(row?.refresh ?? '', place(userId, 'refresh_token')).text)
})

test('the tokens of a merge are sealed anew for the account, and the request keeps none', async () => {
  const { user, merge, confirm } = await beginMerge(oauth)
  const request = async () => {
    const [row] = await api.sql<{ sealed: string | null }[]>`
      select access_token_sealed as sealed from merge_requests where id = ${merge.merge_request_id ?? ''}`
    return row?.sealed ?? null
  }
  const { sealing } = api.services
  const sealed = (await request()) ?? ''
  expect(() => sealing.open(sealed, tokenPlace(user.userId, 'google', 'access_token'))).toThrow()
  await confirm({ password: user.password })
  const [linked] = await api.sql<{ sealed: string }[]>`
    select access_token_sealed as sealed from user_oauth_accounts where user_id = ${user.userId}`
  const opened = sealing.open(linked?.sealed ?? '', tokenPlace(user.userId, 'google', 'access_token'))
  expect(opened.text).toBe(providers.google.tokensIssued.at(-1)?.accessToken)
  expect(await request()).toBeNull()
})
