/** Linking and unlinking identities, and connecting their chats. */
import { describe, expect, test } from 'vitest'
import type { GivenUser } from '../../../support/api.ts'
import { waitForBlockedQuery } from '../../../support/locks.ts'
import {
  type CallbackReply,
  fetchUser,
  linkedProviders,
  newProviderAccount,
  startOAuthApi,
} from '../../../support/oauth-api.ts'

const operatorPassword = 'a password of operators'
const { api, start, visitProvider, sendCallback, authorize } = await startOAuthApi({
  SVC_OPERATOR_PASSWORD: operatorPassword,
})

const codeOf = ({ status, body }: { status: number; body: Pick<CallbackReply, 'error'> }) => [status, body.error?.code]
const linking = ({ bearer }: { bearer: string }) => ({ intent: 'link', bearer }) as const
const unlink = ({ bearer }: { bearer: string }, provider: string) => api.delete(`/auth/oauth/${provider}`, { bearer })
const linked = async ({ bearer }: { bearer: string }) => linkedProviders(await fetchUser(api, bearer))
const actsOn = async ({ userId }: GivenUser) => {
  const entries = await api.sql`
    select action, detail from audit_entries where user_id = ${userId} and action like 'oauth%' order by id`
  return entries.map(({ action, detail }) => [action, detail])
}

describe('linking', () => {
  test('adds a sign-in method to the account and an audit entry', async () => {
    const user = await api.given.user()
    const person = newProviderAccount()
    const answer = await authorize('twitch', person, linking(user))
    expect([answer.status, answer.body]).toEqual([200, { status: 'linked' }])
    expect(await linked(user)).toEqual(['twitch'])
    const signedIn = await authorize('twitch', person)
    expect((await fetchUser(api, signedIn.body.cp_access_jwt)).id).toBe(user.userId)
    expect(await actsOn(user)).toEqual([['oauth_linked', { provider: 'twitch' }]])
  })

  test('is shown to operators as true or false', async () => {
    const user = await api.given.user()
    await authorize('discord', newProviderAccount(), linking(user))
    const { linked_accounts } = await fetchUser(api, user.bearer)
    const headers = { Authorization: `Basic ${btoa(`operator:${operatorPassword}`)}` }
    const [fetched, found] = await Promise.all([
      api.get<{ user: object }>(`/admin/users/${user.userId}`, { headers }),
      api.get<{ users: object[] }>(`/admin/users?email=${user.email}`, { headers }),
    ])
    expect(linked_accounts).toContainEqual({ provider: 'discord', linked: true })
    for (const shown of [fetched.body.user, found.body.users[0]]) expect(shown).toMatchObject({ linked_accounts })
  })

  test('can be repeated', async () => {
    const user = await api.given.user()
    const person = newProviderAccount()
    await authorize('google', person, linking(user))
    expect((await authorize('google', person, linking(user))).body).toEqual({ status: 'linked' })
    expect(await actsOn(user)).toHaveLength(1)
  })

  test('requires a valid auth session at the start and at the callback', async () => {
    expect(codeOf(await start('google', { intent: 'link' }))).toEqual([401, 'unauthorized'])
    expect(codeOf(await start('google', { intent: 'link', bearer: 'e30.e30.e30' }))).toEqual([401, 'unauthorized'])
    expect(codeOf(await start('google', { intent: 'sign_in', bearer: 'nonsense' }))).toEqual([401, 'unauthorized'])
    const endings = [
      (user: GivenUser) => api.post('/auth/logout', undefined, { bearer: user.bearer }),
      (user: GivenUser) => api.sql`update users set disabled_at = now() where id = ${user.userId}`,
    ]
    for (const end of endings) {
      const user = await api.given.user()
      const callbackParams = await visitProvider('google', newProviderAccount(), linking(user))
      await end(user)
      expect(codeOf(await sendCallback('google', callbackParams))).toEqual([401, 'unauthorized'])
      expect(await api.sql`select from user_oauth_accounts where user_id = ${user.userId}`).toHaveLength(0)
    }
  })

  test('never moves an identity, and allows one identity per provider and account', async () => {
    const [user, other] = [await api.given.user(), await api.given.user()]
    const person = newProviderAccount()
    await authorize('discord', person, linking(other))
    expect(codeOf(await authorize('discord', person, linking(user)))).toEqual([409, 'provider_already_linked'])
    expect(await linked(user)).toEqual([])
    expect(codeOf(await authorize('discord', newProviderAccount(), linking(other)))).toEqual([
      409,
      'provider_already_linked',
    ])
    expect((await authorize('discord', person)).body.status).toBe('signed_in')
  })

  test('of one identity to many accounts concurrently links it to one of them', async () => {
    const users = await Promise.all(Array.from({ length: 5 }, () => api.given.user()))
    const person = newProviderAccount()
    const backs = []
    for (const user of users) backs.push(await visitProvider('google', person, linking(user)))
    const answers = await Promise.all(backs.map((callbackParams) => sendCallback('google', callbackParams)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409])
  })

  test('verifies the account’s own address if the provider has verified it, and no other', async () => {
    const user = await api.given.user()
    const { stream_token } = await fetchUser(api, user.bearer)
    await authorize('twitch', newProviderAccount(), linking(user))
    await authorize('discord', newProviderAccount({ email: user.email, emailVerified: false }), linking(user))
    expect(await fetchUser(api, user.bearer)).toMatchObject({ email: user.email, email_verified: false })
    await authorize('google', newProviderAccount({ email: user.email.toUpperCase() }), linking(user))
    expect(await fetchUser(api, user.bearer)).toMatchObject({ email: user.email, email_verified: true, stream_token })
  })

  test('never changes the account’s address and never requests a merge', async () => {
    const [user, owner] = [await api.given.user(), await api.given.user()]
    await api.sql`update users set email_verified_at = now() where id = ${owner.userId}`
    expect((await authorize('google', newProviderAccount({ email: owner.email }), linking(user))).body).toEqual({
      status: 'linked',
    })
    expect(await fetchUser(api, user.bearer)).toMatchObject({ id: user.userId, email: user.email })
    expect(await linked(owner)).toEqual([])
  })
})

describe('the chat', () => {
  const chatOf = async ({ userId }: GivenUser) => {
    const [row] = await api.sql`
      select scopes, chat_connected_at is not null as connected, access_token_sealed as token, refresh_token_sealed as refresh
      from user_oauth_accounts where user_id = ${userId}`
    return row
  }

  test.each([
    ['twitch', 'chat:edit'],
    ['google', 'https://www.googleapis.com/auth/youtube.readonly'],
    ['discord', 'guilds'],
  ] as const)('of %s is connected by linking with its scopes, and not lost by signing in', async (name, scope) => {
    const user = await api.given.user()
    const person = newProviderAccount()
    await authorize(name, person, linking(user))
    expect(await chatOf(user)).toMatchObject({ connected: false })
    await authorize(name, person, { ...linking(user), scopes: 'chat' })
    const connected = await chatOf(user)
    expect(connected).toMatchObject({ connected: true, refresh: expect.stringMatching(/^v1\./) })
    expect(connected?.scopes).toContain(scope)
    await authorize(name, person)
    await authorize(name, person, linking(user))
    expect(await chatOf(user)).toEqual(connected)
    await authorize(name, person, { ...linking(user), scopes: 'chat' })
    expect((await chatOf(user))?.token).not.toBe(connected?.token)
  })
})

describe('unlinking', () => {
  test('removes the sign-in method, and can be repeated', async () => {
    const user = await api.given.user()
    const person = newProviderAccount()
    await authorize('twitch', person, linking(user))
    for (const provider of ['twitch', 'twitch', 'discord']) expect((await unlink(user, provider)).status).toBe(204)
    expect(await linked(user)).toEqual([])
    const signedIn = await authorize('twitch', person)
    expect((await fetchUser(api, signedIn.body.cp_access_jwt)).id).not.toBe(user.userId)
    expect(await actsOn(user)).toEqual([
      ['oauth_linked', { provider: 'twitch' }],
      ['oauth_unlinked', { provider: 'twitch' }],
    ])
  })

  test('is refused for the last sign-in method', async () => {
    const { body } = await authorize('google', newProviderAccount())
    const user = { bearer: body.cp_access_jwt ?? '' }
    expect(codeOf(await unlink(user, 'google'))).toEqual([409, 'last_sign_in_method'])
    await authorize('discord', newProviderAccount(), linking(user))
    expect((await unlink(user, 'google')).status).toBe(204)
    expect(codeOf(await unlink(user, 'discord'))).toEqual([409, 'last_sign_in_method'])
    expect(await linked(user)).toEqual(['discord'])
  })

  test('does not count a password without an address as a sign-in method', async () => {
    const user = await api.given.user()
    await authorize('twitch', newProviderAccount({ email: null }), linking(user))
    await api.sql`update users set email = null where id = ${user.userId}`
    expect(codeOf(await unlink(user, 'twitch'))).toEqual([409, 'last_sign_in_method'])
  })

  test('of both sign-in methods concurrently keeps one', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { body } = await authorize('google', newProviderAccount())
      const user = { bearer: body.cp_access_jwt ?? '' }
      await authorize('twitch', newProviderAccount(), linking(user))
      const answers = await Promise.all([unlink(user, 'google'), unlink(user, 'twitch')])
      expect(answers.map(({ status }) => status).sort()).toEqual([204, 409])
      expect(await linked(user)).toHaveLength(1)
    }
  })

  test('makes a concurrent sign-in with the same identity create a new account', async () => {
    const user = await api.given.user()
    const person = newProviderAccount()
    await authorize('google', person, linking(user))
    const callbackParams = await visitProvider('google', person)
    const { answer } = await api.sql.begin(async (tx) => {
      await tx`select from users where id = ${user.userId} for no key update`
      const signingIn = sendCallback('google', callbackParams)
      await waitForBlockedQuery(api.sql, tx)
      await tx`delete from user_oauth_accounts where user_id = ${user.userId}`
      return { answer: signingIn }
    })
    expect((await fetchUser(api, (await answer).body.cp_access_jwt)).id).not.toBe(user.userId)
  })

  test('requires a sign-in and a known provider', async () => {
    const user = await api.given.user()
    expect(codeOf(await unlink({ bearer: 'x' }, 'google'))).toEqual([401, 'unauthorized'])
    expect(codeOf(await unlink(user, 'facebook'))).toEqual([404, 'not_found'])
  })
})
