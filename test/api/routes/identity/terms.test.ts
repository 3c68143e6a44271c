/** The version of the terms that a sign-up accepts. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { eraseAccount } from '../../../../db/transactions/erase-account.ts'
import { startApi, statusAndCode, type TestApi, type TokenSet } from '../../../support/api.ts'
import { newProviderAccount, startOAuthApi } from '../../../support/oauth-api.ts'

const terms = { SVC_TERMS_URL: 'https://example.com/terms', SVC_TERMS_VERSION: '2026-06-19' }
const { api, start, authorize } = await startOAuthApi(terms)
const version = terms.SVC_TERMS_VERSION

interface Acceptance {
  readonly version: string
  readonly accepted_at: string
}

const signUp = (at: TestApi, email: string, parts: object = {}) =>
  at.post<Partial<TokenSet>>('/auth/signup', { email, password: 'a few words in a row', ...parts })

const newEmail = () => `${randomUUID()}@example.com`

const acceptancesOf = async (bearer: string | undefined): Promise<readonly Acceptance[] | undefined> =>
  (
    await api.get<{ tables: Readonly<Record<string, readonly Acceptance[]>> }>('/auth/account/export', {
      bearer: bearer ?? '',
    })
  ).body.tables.terms_acceptances

test('a sign-up with the version of the terms records it with its time, which the export shows', async () => {
  const { status, body } = await signUp(api, newEmail(), { terms_version: version })
  expect(status).toBe(201)
  const accepted = await acceptancesOf(body.cp_access_jwt)
  expect(accepted).toMatchObject([{ version }])
  expect(Math.abs(Date.parse(accepted?.[0]?.accepted_at ?? '') - Date.now())).toBeLessThan(60_000)
})

test('a sign-up without a version, as of a plugin, creates the account and records none', async () => {
  const { status, body } = await signUp(api, newEmail())
  expect([status, await acceptancesOf(body.cp_access_jwt)]).toEqual([201, []])
})

test('a sign-up with another version is refused and creates no account', async () => {
  const email = newEmail()
  for (const other of ['2025-01-01', `${version}x`])
    expect(statusAndCode(await signUp(api, email, { terms_version: other }))).toEqual([409, 'terms_outdated'])
  expect(statusAndCode(await signUp(api, email, { terms_version: 7 }))).toEqual([400, 'invalid_request'])
  expect(await api.sql`select from users where email = ${email}`).toHaveLength(0)
  expect((await signUp(api, email, { terms_version: version })).status).toBe(201)
})

test('a service without terms accepts no version of them', async () => {
  const bare = await startApi()
  expect(statusAndCode(await signUp(bare, newEmail(), { terms_version: version }))).toEqual([409, 'terms_outdated'])
  expect((await signUp(bare, newEmail())).status).toBe(201)
})

test('a sign-in with a provider records the version when it creates an account, and only then', async () => {
  const [person, other] = [newProviderAccount(), newProviderAccount()]
  const first = await authorize('google', person, { terms_version: version })
  expect(await acceptancesOf(first.body.cp_access_jwt)).toMatchObject([{ version }])
  const unstated = await authorize('google', other)
  expect(await acceptancesOf(unstated.body.cp_access_jwt)).toEqual([])
  const again = await authorize('google', other, { terms_version: version })
  expect(await acceptancesOf(again.body.cp_access_jwt)).toEqual([])
  expect(statusAndCode(await start('google', { terms_version: '2025-01-01' }))).toEqual([409, 'terms_outdated'])
})

test('the owner of an address who takes over an account accepts the terms for it', async () => {
  const email = newEmail()
  await signUp(api, email)
  const owner = await authorize('google', newProviderAccount({ email }), { terms_version: version })
  expect(await acceptancesOf(owner.body.cp_access_jwt)).toMatchObject([{ version }])
})

test('the record is erased with its account', async () => {
  const email = newEmail()
  await signUp(api, email, { terms_version: version })
  const [user] = await api.sql<{ userId: string }[]>`select id as user_id from users where email = ${email}`
  const userId = user?.userId ?? ''
  const rows = () => api.sql`select from terms_acceptances where user_id = ${userId}`
  expect(await rows()).toHaveLength(1)
  await api.sql`update users set deletion_due_at = now(), deletion_attempt_at = now() where id = ${userId}`
  expect(await eraseAccount(api.sql, userId)).toEqual({ type: 'erased' })
  expect(await rows()).toHaveLength(0)
})
