/**
 * Accounts that an attacker created with the victim's address before the victim signed up (Sudhodanan and Paverd,
 * 2022).
 */
import { expect, test } from 'vitest'
import { insertUser } from '../../../../db/identity/users.ts'
import type { TokenSet } from '../../../support/api.ts'
import { waitForBlockedQuery } from '../../../support/locks.ts'
import { fetchUser, linkedProviders, newProviderAccount, startOAuthApi } from '../../../support/oauth-api.ts'

const { api, visitProvider, sendCallback, authorize } = await startOAuthApi()

interface Attempt {
  readonly login_attempt_id: string
  readonly poll_token: string
}

test('the owner of an address takes over an account that another person created with it, and that person loses access', async () => {
  const attacker = await api.given.user()
  const elsewhere = await api.given.signIn(attacker, 'plugin')
  const attackersTwitch = newProviderAccount()
  expect((await authorize('twitch', attackersTwitch, { intent: 'link', bearer: attacker.bearer })).body.status).toBe(
    'linked',
  )
  const attempt = (await api.post<Attempt>('/auth/plugin/login/start', {})).body
  await api.post(`/auth/plugin/login/attempts/${attempt.login_attempt_id}/approve`, undefined, {
    bearer: attacker.bearer,
  })
  const underWay = await visitProvider('discord', newProviderAccount(), { intent: 'link', bearer: attacker.bearer })
  const before = await fetchUser(api, attacker.bearer)

  const ownersAddress = attacker.email.replace('example', 'EXAMPLE')
  const owner = await authorize('google', newProviderAccount({ email: ownersAddress }))

  expect(owner.body.status).toBe('signed_in')
  const after = await fetchUser(api, owner.body.cp_access_jwt)
  expect(after).toMatchObject({ id: attacker.userId, email: ownersAddress, email_verified: true })
  expect(linkedProviders(after)).toEqual(['google'])
  expect(after.stream_token).not.toBe(before.stream_token)
  for (const { bearer, refreshToken } of [attacker, elsewhere]) {
    expect((await api.get('/auth/session', { bearer })).status).toBe(401)
    expect((await api.post('/auth/refresh', { refresh_token: refreshToken })).status).toBe(401)
  }
  const { email, password } = attacker
  expect((await api.post('/auth/login', { email, password })).status).toBe(401)
  expect((await api.post('/auth/plugin/login/poll', attempt)).status).toBe(403)
  expect((await sendCallback('discord', underWay)).status).toBe(400)
  const twitch = await authorize('twitch', attackersTwitch)
  expect((await fetchUser(api, twitch.body.cp_access_jwt)).id).not.toBe(attacker.userId)
  const acts = await api.sql`
    select action, detail->>'provider' as provider, detail->>'method' as method from audit_entries
    where user_id = ${attacker.userId} and (action = 'account_reclaimed' or detail->>'method' is not null) order by id`
  expect(acts).toEqual([
    { action: 'account_reclaimed', provider: 'google', method: null },
    { action: 'signed_in', provider: null, method: 'google' },
  ])
})

test('a provider that verifies the address at a later sign-in makes another identity with it require a proof', async () => {
  const user = await api.given.user()
  const person = newProviderAccount({ email: user.email, emailVerified: false })
  await authorize('twitch', person, { intent: 'link', bearer: user.bearer })
  expect(await fetchUser(api, user.bearer)).toMatchObject({ email_verified: false })
  expect((await authorize('twitch', { ...person, emailVerified: true })).body.status).toBe('signed_in')
  expect(await fetchUser(api, user.bearer)).toMatchObject({ email_verified: true })
  const second = await authorize('twitch', newProviderAccount({ email: user.email }))
  expect([second.status, second.body.status]).toEqual([200, 'merge_required'])
})

test('a concurrent sign-up with the address is taken over as well', async () => {
  const person = newProviderAccount()
  const callbackParams = await visitProvider('google', person)
  const signedIn = await api.sql
    .begin(async (tx) => {
      const signUp = { email: person.email ?? '', passwordHash: 'a hash', streamToken: 'Ab12Cd34' }
      const userId = await insertUser(tx, api.services.sealing, signUp)
      const answer = sendCallback('google', callbackParams)
      await waitForBlockedQuery(api.sql, tx)
      return { userId, answer }
    })
    .then(async ({ userId, answer }) => ({ userId, ...(await answer) }))
  expect([signedIn.status, signedIn.body.status]).toEqual([200, 'signed_in'])
  expect((await fetchUser(api, signedIn.body.cp_access_jwt)).id).toBe(signedIn.userId)
  const [account] = await api.sql`select password_hash from users where id = ${signedIn.userId ?? ''}`
  expect(account).toEqual({ passwordHash: null })
})

test('two concurrent callbacks of the owner both sign in', async () => {
  for (let round = 0; round < 5; round += 1) {
    const attacker = await api.given.user()
    const owner = newProviderAccount({ email: attacker.email })
    const backs = [
      await visitProvider('google', owner),
      await visitProvider('google', owner),
      await visitProvider('google', owner),
    ]
    const answers = await Promise.all(backs.map((callbackParams) => sendCallback('google', callbackParams)))
    expect(answers.map(({ body }) => body.status)).toEqual(['signed_in', 'signed_in', 'signed_in'])
    for (const { body } of answers) expect((await fetchUser(api, body.cp_access_jwt)).id).toBe(attacker.userId)
  }
})

test('a disabled account is not taken over', async () => {
  const user = await api.given.user()
  await api.sql`update users set disabled_at = now() where id = ${user.userId}`
  const answer = await authorize('google', newProviderAccount({ email: user.email }))
  expect([answer.status, answer.body.error?.code]).toEqual([403, 'account_disabled'])
  const [row] = await api.sql`
    select password_hash is null as "reclaimed", email_verified_at from users where id = ${user.userId}`
  expect(row).toEqual({ reclaimed: false, emailVerifiedAt: null })
})

test('an account with a verified address is not taken over', async () => {
  const user = await api.given.user()
  await api.sql`update users set email_verified_at = now() where id = ${user.userId}`
  const before = await fetchUser(api, user.bearer)
  const answer = await authorize('google', newProviderAccount({ email: user.email }))
  expect(answer.body.status).toBe('merge_required')
  expect(await fetchUser(api, user.bearer)).toEqual(before)
  const { email, password } = user
  expect((await api.post<TokenSet>('/auth/login', { email, password })).status).toBe(200)
})
