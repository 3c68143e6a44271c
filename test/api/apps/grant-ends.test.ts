/** What ends the sign-ins of apps besides their own tokens. */
import { expect, test } from 'vitest'
import { sourceApp } from '../../../domain/identity/apps.ts'
import { type GivenUser, startApi } from '../../support/api.ts'
import { approvedCode, appVariables, codeFields, connectApp, exchange, refresh } from '../../support/apps.ts'
import { operator, operatorPassword } from '../../support/relays.ts'

const api = await startApi({ ...(await appVariables()), SVC_OPERATOR_PASSWORD: operatorPassword })

interface Apps {
  readonly apps: readonly { readonly client_id: string; readonly sign_ins: number }[]
}

const appsOf = async ({ bearer }: Pick<GivenUser, 'bearer'>) =>
  (await api.get<Apps>('/auth/apps', { bearer })).body.apps

const keysOf = async ({ userId }: GivenUser) =>
  (await api.sql`select from play_keys where user_id = ${userId} and kind = 'app'`).count

/** An account whose source has read its list once, and so has a play key. */
async function connected() {
  const user = await api.given.user()
  const tokens = await connectApp(api, user.bearer)
  expect((await api.get('/ingests', { bearer: tokens.access_token })).status).toBe(200)
  expect(await keysOf(user)).toBe(1)
  return { user, tokens }
}

const endOf = async ({ access_token, refresh_token }: { access_token: string; refresh_token: string }) => [
  (await api.get('/ingests', { bearer: access_token })).status,
  (await refresh(api, refresh_token)).body.error,
]
const ended = [401, 'invalid_grant']

test('disconnecting an app ends all its sign-ins, deletes its key, and leaves others alone', async () => {
  const { user, tokens } = await connected()
  const [second, script] = [
    await connectApp(api, user.bearer),
    await connectApp(api, user.bearer, 'obs-relay-control', 'relay:read'),
  ]
  expect(await appsOf(user)).toMatchObject([
    { client_id: sourceApp, sign_ins: 2 },
    { client_id: 'obs-relay-control', sign_ins: 1 },
  ])
  expect((await api.delete(`/auth/apps/${sourceApp}`, { bearer: user.bearer })).status).toBe(204)
  for (const it of [tokens, second]) expect(await endOf(it)).toEqual(ended)
  expect((await api.get('/relay/active', { bearer: script.access_token })).status).toBe(200)
  expect(await appsOf(user)).toMatchObject([{ client_id: 'obs-relay-control' }])
  expect(await keysOf(user)).toBe(0)
  expect((await api.delete(`/auth/apps/${sourceApp}`, { bearer: user.bearer })).status).toBe(404)
  const audit = await api.get<{ entries: object[] }>('/auth/audit', { bearer: user.bearer })
  expect(audit.body.entries).toContainEqual(
    expect.objectContaining({
      action: 'app_disconnected',
      client: 'OBS source (IRL)',
      detail: { client_id: sourceApp, sign_ins_ended: 2 },
    }),
  )
})

test('an app of another account cannot be disconnected', async () => {
  const [{ tokens }, other] = [await connected(), await api.given.user()]
  expect((await api.delete(`/auth/apps/${sourceApp}`, { bearer: other.bearer })).status).toBe(404)
  expect((await api.get('/ingests', { bearer: tokens.access_token })).status).toBe(200)
})

test('disabling the account ends its apps for good, and deletes their keys', async () => {
  const { user, tokens } = await connected()
  const disable = (disabled: boolean) =>
    api.post(`/admin/users/${user.userId}/disable`, { disabled, reason: 'a test' }, { headers: operator })
  expect((await disable(true)).status).toBeLessThan(300)
  expect(await endOf(tokens)).toEqual(ended)
  expect((await disable(false)).status).toBeLessThan(300)
  expect(await endOf(tokens)).toEqual(ended)
  expect(await keysOf(user)).toBe(0)
})

test('a code that was approved before the account was disabled gets no tokens', async () => {
  const user = await api.given.user()
  const { request, code } = await approvedCode(api, user.bearer)
  await api.post(`/admin/users/${user.userId}/disable`, { disabled: true, reason: 'a test' }, { headers: operator })
  expect((await exchange(api, codeFields(request, code))).body.error).toBe('invalid_grant')
})

test('signing out everywhere else ends the sign-ins of apps; their addresses play until they are disconnected', async () => {
  const { user, tokens } = await connected()
  await api.post('/auth/sessions/revoke-others', undefined, { bearer: user.bearer })
  expect(await endOf(tokens)).toEqual(ended)
  expect(await appsOf(user)).toMatchObject([{ client_id: sourceApp, sign_ins: 0, scopes: [] }])
  expect(await keysOf(user)).toBe(1)
  const again = await connectApp(api, user.bearer)
  expect((await api.get('/ingests', { bearer: again.access_token })).status).toBe(200)
  expect(await keysOf(user)).toBe(1)
  await api.delete(`/auth/apps/${sourceApp}`, { bearer: user.bearer })
  expect([await appsOf(user), await keysOf(user)]).toEqual([[], 0])
})

test('a changed password ends the sign-ins of apps', async () => {
  const { user, tokens } = await connected()
  const body = { current_password: user.password, new_password: 'another long passphrase' }
  const answer = await api.post('/auth/password/change', body, { bearer: user.bearer })
  expect(answer.status).toBeLessThan(300)
  expect(await endOf(tokens)).toEqual(ended)
})

test('a password reset ends the sign-ins of apps, and deletes their keys', async () => {
  const { user, tokens } = await connected()
  await api.post('/auth/password/forgot', { email: user.email })
  const token = /reset-password\?token=([\w-]+)/.exec(
    api.logged.findLast((line) => line.includes(user.email)) ?? '',
  )?.[1]
  expect((await api.post('/auth/password/reset', { token, password: 'another long passphrase' })).status).toBe(204)
  expect(await endOf(tokens)).toEqual(ended)
  expect(await keysOf(user)).toBe(0)
})

test('an account that is deleted takes its apps with it', async () => {
  const { user, tokens } = await connected()
  await api.post('/auth/account/delete', { password: user.password }, { bearer: user.bearer })
  expect(await endOf(tokens)).toEqual(ended)
  await api.sql`delete from users where id = ${user.userId}`
  const left =
    await api.sql`select from app_tokens t join app_grants g on g.id = t.grant_id where g.user_id = ${user.userId}`
  expect(left.count).toBe(0)
})
