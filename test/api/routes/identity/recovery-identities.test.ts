/**
 * Which identities a password reset keeps: those whose provider has verified the address that the link was mailed to.
 */
import { describe, expect, test } from 'vitest'
import type { OAuthProviderName } from '../../../../providers/oauth/provider.ts'
import { statusAndCode, type TokenSet } from '../../../support/api.ts'
import { mailsTo } from '../../../support/mails.ts'
import { beginMerge } from '../../../support/merges.ts'
import { fetchUser, linkedProviders, newProviderAccount, startOAuthApi } from '../../../support/oauth-api.ts'
import type { DoubleAccount } from '../../../support/oauth-double.ts'

const oauth = await startOAuthApi()
const { api, authorize } = oauth
const chosen = 'another good password'

interface Linked {
  readonly linked_accounts: readonly { readonly provider: OAuthProviderName; readonly stays: boolean }[]
}

const newestLink = async (email: string): Promise<string> => {
  await api.post('/auth/password/forgot', { email })
  return mailsTo(api, email).at(-1)?.token ?? ''
}
const preview = (token: unknown) => api.post<Linked>('/auth/password/reset/preview', { token })
const reset = (token: unknown) => api.post('/auth/password/reset', { token, password: chosen })
/** What the account at this address looks like to its owner, who has just chosen the password. */
const shownTo = async (email: string) => {
  const { body } = await api.post<TokenSet>('/auth/login', { email, password: chosen })
  return fetchUser(api, body.cp_access_jwt)
}
/** The account that an identity signs in to. */
const accountOf = async (provider: OAuthProviderName, account: DoubleAccount) =>
  (await fetchUser(api, (await authorize(provider, account)).body.cp_access_jwt)).id
const link = (provider: OAuthProviderName, account: DoubleAccount, { bearer }: { bearer: string }) =>
  authorize(provider, account, { intent: 'link', bearer })

/** The owner of the address verifies it by mail, although an attacker created the account. */
async function confirmAddress(user: { email: string; bearer: string }): Promise<void> {
  await api.post('/auth/email/resend', undefined, { bearer: user.bearer })
  const verification = mailsTo(api, user.email).findLast((mail) => mail.subject === 'verify_email')
  expect((await api.post('/auth/email/verify', { token: verification?.token })).status).toBe(204)
}

describe('a reset', () => {
  test('unlinks an identity of another person, even if the owner has verified the address by mail', async () => {
    const attacker = await api.given.user()
    await confirmAddress(attacker)
    const attackersTwitch = newProviderAccount()
    await link('twitch', attackersTwitch, attacker)
    expect(await accountOf('twitch', attackersTwitch)).toBe(attacker.userId)

    expect((await reset(await newestLink(attacker.email))).status).toBe(204)

    const shown = await shownTo(attacker.email)
    expect([shown.id, linkedProviders(shown)]).toEqual([attacker.userId, []])
    expect(await accountOf('twitch', attackersTwitch)).not.toBe(attacker.userId)
    const [entry] = await api.sql`
      select detail->>'unlinked' as unlinked from audit_entries
      where user_id = ${attacker.userId} and action = 'password_reset'`
    expect(entry).toEqual({ unlinked: 'twitch' })
  })

  test('keeps the provider that created the account, since it has verified the address', async () => {
    const person = newProviderAccount()
    const id = await accountOf('google', person)
    await reset(await newestLink(person.email ?? ''))
    expect(linkedProviders(await shownTo(person.email ?? ''))).toEqual(['google'])
    expect(await accountOf('google', person)).toBe(id)
  })

  test('keeps a linked provider that has verified the address, and unlinks one with another address or none', async () => {
    const user = await api.given.user()
    const google = newProviderAccount({ email: user.email.toUpperCase() })
    await link('google', google, user)
    await link('twitch', newProviderAccount(), user)
    await link('discord', newProviderAccount({ email: user.email, emailVerified: false }), user)
    await reset(await newestLink(user.email))
    expect(linkedProviders(await shownTo(user.email))).toEqual(['google'])
    expect(await accountOf('google', google)).toBe(user.userId)
  })

  test('keeps a provider that verified the address at a later sign-in', async () => {
    const user = await api.given.user()
    const person = newProviderAccount({ email: user.email, emailVerified: false })
    await link('discord', person, user)
    expect(await accountOf('discord', { ...person, emailVerified: true })).toBe(user.userId)
    await reset(await newestLink(user.email))
    expect(linkedProviders(await shownTo(user.email))).toEqual(['discord'])
  })

  test('keeps a provider that was linked by a merge', async () => {
    const { user, person, confirm } = await beginMerge(oauth)
    expect((await confirm({ password: user.password })).status).toBe(200)
    await reset(await newestLink(user.email))
    expect(linkedProviders(await shownTo(user.email))).toEqual(['google'])
    expect(await accountOf('google', person)).toBe(user.userId)
  })

  test('keeps the provider through which the owner has reclaimed the account', async () => {
    const attacker = await api.given.user()
    await link('twitch', newProviderAccount(), attacker)
    const owner = newProviderAccount({ email: attacker.email })
    expect(await accountOf('google', owner)).toBe(attacker.userId)
    await reset(await newestLink(attacker.email))
    expect(linkedProviders(await shownTo(attacker.email))).toEqual(['google'])
  })
})

describe('the preview of a reset', () => {
  test('shows which linked providers stay, as the reset then keeps them', async () => {
    const user = await api.given.user()
    await link('twitch', newProviderAccount(), user)
    await link('google', newProviderAccount({ email: user.email }), user)
    const token = await newestLink(user.email)
    const answer = await preview(token)
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(answer.body.linked_accounts).toEqual([
      { provider: 'twitch', stays: false },
      { provider: 'google', stays: true },
    ])
    await reset(token)
    expect(linkedProviders(await shownTo(user.email))).toEqual(['google'])
  })

  test('keeps the link valid and changes nothing', async () => {
    const user = await api.given.user()
    await link('twitch', newProviderAccount(), user)
    const token = await newestLink(user.email)
    for (let times = 0; times < 3; times += 1) expect((await preview(token)).status).toBe(200)
    expect((await api.get('/auth/session', { bearer: user.bearer })).status).toBe(200)
    expect(linkedProviders(await fetchUser(api, user.bearer))).toEqual(['twitch'])
    expect((await reset(token)).status).toBe(204)
  })

  test('requires a valid reset link', async () => {
    const user = await api.given.user()
    const token = await newestLink(user.email)
    await api.post('/auth/email/resend', undefined, { bearer: user.bearer })
    const verification = mailsTo(api, user.email).findLast((mail) => mail.subject === 'verify_email')
    for (const wrong of ['', 'nonsense', 'a\0b', verification?.token, user.bearer])
      expect(statusAndCode(await preview(wrong))).toEqual([400, 'token_invalid'])
    expect(statusAndCode(await preview(7))).toEqual([400, 'invalid_request'])
    await reset(token)
    expect(statusAndCode(await preview(token))).toEqual([400, 'token_invalid'])
    const late = await newestLink(user.email)
    await api.sql`update mail_tokens set expires_at = now() where user_id = ${user.userId}`
    expect(statusAndCode(await preview(late))).toEqual([400, 'token_invalid'])
  })
})
