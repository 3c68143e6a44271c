/** The merge of an account with an identity, which its owner has to prove. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { revokeAllAccess } from '../../../../db/transactions/secure-account.ts'
import { startApi } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { waitForBlockedQuery } from '../../../support/locks.ts'
import { beginMerge, userWithProvedAddress } from '../../../support/merges.ts'
import {
  type CallbackReply,
  fetchUser,
  linkedProviders,
  newProviderAccount,
  startOAuthApi,
} from '../../../support/oauth-api.ts'

const oauth = await startOAuthApi()
const { api, start, visitProvider, sendCallback, authorize } = oauth

const codeOf = ({ status, body }: { status: number; body: Pick<CallbackReply, 'error'> }) => [status, body.error?.code]
const linkedToUser = async ({ bearer }: { bearer: string }) => linkedProviders(await fetchUser(api, bearer))
const actsOn = async ({ userId }: { userId: string }) => {
  const entries = await api.sql`
    select action, detail from audit_entries where user_id = ${userId} and action like 'merge%' order by id`
  return entries.map(({ action, detail }) => [action, detail])
}

describe('a merge', () => {
  test('requires a proof and changes nothing before it', async () => {
    const { user, person, merge } = await beginMerge(oauth)
    expect(merge).toEqual({
      status: 'merge_required',
      merge_request_id: expect.stringMatching(/^[\da-f-]{36}$/),
      merge_token: expect.stringMatching(/^[\w-]{43}$/),
      sign_in_methods: ['password'],
      expires_in: 600,
    })
    expect(await linkedToUser(user)).toEqual([])
    expect((await authorize('google', person)).body.status).toBe('merge_required')
  })

  test('is confirmed once with the account’s password', async () => {
    const { user, person, merge, confirm } = await beginMerge(oauth)
    const done = await confirm({ password: user.password })
    expect([done.status, done.body.status, done.headers.get('cache-control')]).toEqual([200, 'signed_in', 'no-store'])
    const shown = await fetchUser(api, done.body.cp_access_jwt)
    expect([shown.id, linkedProviders(shown)]).toEqual([user.userId, ['google']])
    expect((await fetchUser(api, (await authorize('google', person)).body.cp_access_jwt)).id).toBe(user.userId)
    expect(codeOf(await confirm({ password: user.password }))).toEqual([400, 'token_invalid'])
    const again = await start('twitch', { intent: 'merge', merge_request_id: merge.merge_request_id })
    expect(codeOf(again)).toEqual([410, 'merge_expired'])
    expect(await actsOn(user)).toEqual([
      ['merge_requested', { provider: 'google' }],
      ['merge_confirmed', { provider: 'google', method: 'password' }],
    ])
  })

  test('is confirmed after a proof through a linked provider', async () => {
    const user = await userWithProvedAddress(oauth)
    const linkedAccount = newProviderAccount()
    await authorize('discord', newProviderAccount(), { intent: 'link', bearer: user.bearer })
    await authorize('twitch', linkedAccount, { intent: 'link', bearer: user.bearer })
    const { merge, confirm, proveAs } = await beginMerge(oauth, user)
    expect(merge.sign_in_methods).toEqual(['password', 'twitch', 'discord'])
    const proved = await proveAs('twitch', linkedAccount)
    expect([proved.status, proved.body]).toEqual([
      200,
      {
        status: 'merge_required',
        merge_request_id: merge.merge_request_id,
        sign_in_methods: ['password', 'twitch', 'discord'],
        expires_in: expect.any(Number),
      },
    ])
    const done = await confirm()
    expect(linkedProviders(await fetchUser(api, done.body.cp_access_jwt))).toEqual(['twitch', 'google', 'discord'])
    expect((await actsOn(user)).at(-1)).toEqual(['merge_confirmed', { provider: 'google', method: 'twitch' }])
  })

  test('of an account without a password does not offer a password', async () => {
    const { email } = newProviderAccount()
    const first = await authorize('discord', newProviderAccount({ email }))
    expect(first.body.status).toBe('signed_in')
    expect((await authorize('google', newProviderAccount({ email }))).body.sign_in_methods).toEqual(['discord'])
  })

  test('is confirmed once by fifty concurrent requests', async () => {
    const user = await userWithProvedAddress(oauth)
    const linkedAccount = newProviderAccount()
    await authorize('twitch', linkedAccount, { intent: 'link', bearer: user.bearer })
    const { confirm, proveAs } = await beginMerge(oauth, user)
    await proveAs('twitch', linkedAccount)
    const byProvider = await Promise.all(Array.from({ length: 50 }, () => confirm()))
    expect(byProvider.map(({ status }) => status).sort()).toEqual([200, ...Array(49).fill(400)])

    const other = await beginMerge(oauth)
    const { password } = other.user
    const byPassword = await Promise.all(Array.from({ length: 50 }, () => other.confirm({ password })))
    expect(byPassword.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const { status } of byPassword) expect([200, 400, 410]).toContain(status)
  })
})

describe('a merge is refused', () => {
  test('without a proof', async () => {
    const { user, confirm } = await beginMerge(oauth)
    const refused = await confirm()
    expect(codeOf(refused)).toEqual([401, 'invalid_credentials'])
    expect(refused.body.error?.message).toMatch(/^Prove first/)
    expect(await linkedToUser(user)).toEqual([])
  })

  test('with a proof through another person’s identity or through the identity to be linked', async () => {
    const user = await userWithProvedAddress(oauth)
    await authorize('twitch', newProviderAccount(), { intent: 'link', bearer: user.bearer })
    const { person, confirm, proveAs } = await beginMerge(oauth, user)
    expect(codeOf(await proveAs('twitch', newProviderAccount()))).toEqual([401, 'invalid_credentials'])
    expect(codeOf(await proveAs('google', person))).toEqual([401, 'invalid_credentials'])
    const other = newProviderAccount()
    await authorize('discord', other)
    expect(codeOf(await proveAs('discord', other))).toEqual([401, 'invalid_credentials'])
    expect(codeOf(await confirm())).toEqual([401, 'invalid_credentials'])
    expect(await linkedToUser(user)).toEqual(['twitch'])
    expect((await actsOn(user)).map(([action]) => action)).toEqual([
      'merge_requested',
      'merge_refused',
      'merge_refused',
      'merge_refused',
    ])
  })

  test('with a proof through a provider that was unlinked since', async () => {
    const user = await userWithProvedAddress(oauth)
    const linkedAccount = newProviderAccount()
    await authorize('twitch', linkedAccount, { intent: 'link', bearer: user.bearer })
    const { confirm, proveAs } = await beginMerge(oauth, user)
    expect((await proveAs('twitch', linkedAccount)).status).toBe(200)
    await api.delete('/auth/oauth/twitch', { bearer: user.bearer })
    expect(codeOf(await confirm())).toEqual([401, 'invalid_credentials'])
  })

  test('if it is deleted by a password reset while a proof starts', async () => {
    const { user, merge } = await beginMerge(oauth)
    const started = await api.sql
      .begin(async (tx) => {
        await revokeAllAccess(tx, user.userId, 'password_reset')
        const answer = start('twitch', { intent: 'merge', merge_request_id: merge.merge_request_id })
        await waitForBlockedQuery(api.sql, tx)
        return { answer }
      })
      .then(({ answer }) => answer)
    expect(codeOf(started)).toEqual([404, 'not_found'])
  })

  test('from another browser, and for an unknown request', async () => {
    const [own, foreign] = [await beginMerge(oauth), await beginMerge(oauth)]
    const { password } = own.user
    const stolen = await own.confirm({ password, merge_token: foreign.merge.merge_token ?? '' })
    expect(codeOf(stolen)).toEqual([400, 'token_invalid'])
    for (const id of [randomUUID(), 'x'])
      expect(codeOf(await api.post(`/auth/merge/${id}/confirm`, { merge_token: 't' }))).toEqual([404, 'not_found'])
    const unknown = await start('twitch', { intent: 'merge', merge_request_id: randomUUID() })
    expect(codeOf(unknown)).toEqual([404, 'not_found'])
    expect(codeOf(await own.confirm({ password: 7 as never }))).toEqual([400, 'invalid_request'])
  })

  test('after ten minutes, with any proof', async () => {
    const user = await userWithProvedAddress(oauth)
    const linkedAccount = newProviderAccount()
    await authorize('twitch', linkedAccount, { intent: 'link', bearer: user.bearer })
    const { merge, confirm, proveAs } = await beginMerge(oauth, user)
    await proveAs('twitch', linkedAccount)
    const pendingProof = await visitProvider('twitch', linkedAccount, {
      intent: 'merge',
      merge_request_id: merge.merge_request_id,
    })
    await api.sql`
      update merge_requests set expires_at = now() - interval '1 second' where id = ${merge.merge_request_id ?? ''}`
    expect(codeOf(await confirm())).toEqual([410, 'merge_expired'])
    expect(codeOf(await confirm({ password: user.password }))).toEqual([410, 'merge_expired'])
    expect(codeOf(await sendCallback('twitch', pendingProof))).toEqual([410, 'merge_expired'])
    const late = await start('twitch', { intent: 'merge', merge_request_id: merge.merge_request_id })
    expect(codeOf(late)).toEqual([410, 'merge_expired'])
  })

  test('if the account’s address has changed or is not verified any more', async () => {
    const changes = [
      (userId: string) => api.sql`update users set email = ${`${randomUUID()}@example.com`} where id = ${userId}`,
      (userId: string) => api.sql`update users set email_verified_at = null where id = ${userId}`,
    ]
    for (const change of changes) {
      const user = await userWithProvedAddress(oauth)
      const linkedAccount = newProviderAccount()
      await authorize('twitch', linkedAccount, { intent: 'link', bearer: user.bearer })
      const { confirm, proveAs } = await beginMerge(oauth, user)
      await proveAs('twitch', linkedAccount)
      await change(user.userId)
      expect(codeOf(await confirm())).toEqual([400, 'token_invalid'])
    }
  })

  test('if the account is disabled', async () => {
    const { user, confirm } = await beginMerge(oauth)
    await api.sql`update users set disabled_at = now() where id = ${user.userId}`
    expect(codeOf(await confirm({ password: user.password }))).toEqual([403, 'account_disabled'])
  })

  test('if the identity is linked already or the account has another identity of that provider', async () => {
    const { user, person, confirm } = await beginMerge(oauth)
    const other = await api.given.user()
    await authorize('google', person, { intent: 'link', bearer: other.bearer })
    expect(codeOf(await confirm({ password: user.password }))).toEqual([409, 'provider_already_linked'])

    const taken = await userWithProvedAddress(oauth)
    await authorize('google', newProviderAccount(), { intent: 'link', bearer: taken.bearer })
    const second = await beginMerge(oauth, taken)
    expect(codeOf(await second.confirm({ password: taken.password }))).toEqual([409, 'provider_already_linked'])
    expect(await linkedToUser(taken)).toEqual(['google'])
  })

  test('if the password was changed while it was compared', async () => {
    const { user, confirm } = await beginMerge(oauth)
    const answer = await api.sql.begin(async (tx) => {
      await tx`update users set password_hash = 'another' where id = ${user.userId}`
      const confirmation = confirm({ password: user.password })
      await waitForBlockedQuery(api.sql, tx)
      return { confirmation }
    })
    expect(codeOf(await answer.confirmation)).toEqual([401, 'invalid_credentials'])
    expect(await linkedToUser(user)).toEqual([])
  })
})

describe('guessing the password of a merge', () => {
  test('ends the merge after more than five wrong passwords, also concurrent ones', async () => {
    const { user, merge, confirm } = await beginMerge(oauth)
    const guesses = await Promise.all(Array.from({ length: 20 }, () => confirm({ password: 'a wrong guess' })))
    expect(guesses.map(({ status }) => status).sort()).toEqual([...Array(6).fill(401), ...Array(14).fill(410)])
    expect(codeOf(await confirm({ password: user.password }))).toEqual([410, 'merge_expired'])
    const tooLate = await start('twitch', { intent: 'merge', merge_request_id: merge.merge_request_id })
    expect(codeOf(tooLate)).toEqual([410, 'merge_expired'])
    expect((await actsOn(user)).at(-1)).toEqual(['merge_refused', { provider: 'google', method: 'password' }])
  })

  test('leaves the merge valid after five wrong passwords', async () => {
    const { user, confirm } = await beginMerge(oauth)
    for (let round = 0; round < 5; round += 1)
      expect(codeOf(await confirm({ password: 'a wrong guess' }))).toEqual([401, 'invalid_credentials'])
    expect((await confirm({ password: user.password })).status).toBe(200)
  })

  test('counts towards the sign-in limits of the account and of the client address', async () => {
    const { url } = api.services.config.database
    const braked = await startApi({ DATABASE_URL: url, SVC_RATE_LIMITS: highLimits({ login_failures: 2 }) })
    const { user, merge } = await beginMerge(oauth)
    const guess = (ip: string, at = braked) =>
      at.post(
        `/auth/merge/${merge.merge_request_id}/confirm`,
        { merge_token: merge.merge_token, password: 'a wrong guess' },
        { ip },
      )
    const { email } = user
    await braked.post('/auth/login', { email, password: 'a wrong guess' }, { ip: '203.0.113.1' })
    expect((await guess('203.0.113.2')).status).toBe(401)
    expect((await guess('203.0.113.3')).status).toBe(429)

    const limited = await startApi({ DATABASE_URL: url, SVC_RATE_LIMITS: highLimits({ login: 1 }) })
    expect([(await guess('198.51.100.1', limited)).status, (await guess('198.51.100.1', limited)).status]).toEqual([
      401, 429,
    ])
  })
})
