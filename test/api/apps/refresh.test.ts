/** Refresh tokens of apps: rotation, requests at the same time, reuse, and revocation. */
import { expect, test, vi } from 'vitest'
import { sourceApp } from '../../../domain/identity/apps.ts'
import { startApi } from '../../support/api.ts'
import { appVariables, connectApp, postForm, refresh } from '../../support/apps.ts'
import { waitForBlockedQuery } from '../../support/locks.ts'

const api = await startApi(await appVariables())
const { sql } = api

/** An account with the source, and the means to make what happened older. */
async function connected() {
  const user = await api.given.user()
  const tokens = await connectApp(api, user.bearer)
  return {
    user,
    tokens,
    age: (seconds: number) => sql`
      update app_grants set rotated_at = rotated_at - make_interval(secs => ${seconds}) where user_id = ${user.userId}`,
    reads: async (accessToken: string) => (await api.get('/ingests', { bearer: accessToken })).status,
  }
}

test('a refresh replaces both tokens', async () => {
  const { tokens, reads } = await connected()
  const { status, headers, body } = await refresh(api, tokens.refresh_token)
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(body).toMatchObject({ token_type: 'Bearer', expires_in: 600, scope: 'ingests:read' })
  expect(body.refresh_token).not.toBe(tokens.refresh_token)
  expect([await reads(tokens.access_token), await reads(body.access_token)]).toEqual([200, 200])
})

/** As clients do: 503 is the answer to a request that had to wait for longer than they do. */
async function refreshAgain(token: string): ReturnType<typeof refresh> {
  const answer = await refresh(api, token)
  return answer.status === 503 ? refreshAgain(token) : answer
}

test('fifty requests at the same time all succeed, and each of their tokens can be exchanged next', async () => {
  const { user, tokens, reads } = await connected()
  const answers = await Promise.all(Array.from({ length: 50 }, () => refreshAgain(tokens.refresh_token)))
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 200))
  const [grant] = await sql`select generation, ended_at from app_grants where user_id = ${user.userId}`
  expect(grant).toEqual({ generation: 1, endedAt: null })
  const next = await Promise.all(answers.map(({ body }) => refreshAgain(body.refresh_token)))
  expect(new Set(next.map(({ status }) => status))).toEqual(new Set([200]))
  expect(await reads(next[0]?.body.access_token ?? '')).toBe(200)
})

test('a replaced token can be exchanged for 15 s more, however often', async () => {
  const { tokens, age } = await connected()
  await refresh(api, tokens.refresh_token)
  await age(14)
  for (let use = 0; use < 3; use += 1) expect((await refresh(api, tokens.refresh_token)).status).toBe(200)
})

test('later its use ends the grant with all tokens, and the audit says so', async () => {
  const { user, tokens, age, reads } = await connected()
  const second = await refresh(api, tokens.refresh_token)
  await age(16)
  expect(await refresh(api, tokens.refresh_token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  expect((await refresh(api, second.body.refresh_token)).body.error).toBe('invalid_grant')
  expect(await reads(second.body.access_token)).toBe(401)
  const audit = await api.get<{ entries: { action: string; detail: object }[] }>('/auth/audit', { bearer: user.bearer })
  expect(audit.body.entries.slice(0, 2)).toMatchObject([
    { action: 'app_signed_out', detail: { client_id: sourceApp, why: 'token_reuse' } },
    { action: 'app_connected', detail: { client_id: sourceApp, scopes: 'ingests:read' } },
  ])
})

test('the token before the last one ends the grant also within 15 s', async () => {
  const { tokens } = await connected()
  const second = await refresh(api, tokens.refresh_token)
  await refresh(api, second.body.refresh_token)
  expect((await refresh(api, tokens.refresh_token)).body.error).toBe('invalid_grant')
  expect((await refresh(api, second.body.refresh_token)).body.error).toBe('invalid_grant')
})

test('a use in the same moment as the end of the 15 s ends the grant once', async () => {
  const { user, tokens, age } = await connected()
  await refresh(api, tokens.refresh_token)
  await age(16)
  const answers = await Promise.all(Array.from({ length: 10 }, () => refresh(api, tokens.refresh_token)))
  expect(new Set(answers.map(({ body }) => body.error))).toEqual(new Set(['invalid_grant']))
  const [{ entries } = { entries: 0 }] = await sql<{ entries: number }[]>`
    select count(*)::int as entries from audit_entries where user_id = ${user.userId} and action = 'app_signed_out'`
  expect(entries).toBe(1)
})

test('a token lasts 400 days from its last exchange', async () => {
  const { user, tokens } = await connected()
  const daysLeft = async () =>
    (
      await sql<{ days: number }[]>`
        select extract(epoch from expires_at - now()) / 86400 as days from app_grants where user_id = ${user.userId}`
    )[0]?.days
  await sql`update app_grants set expires_at = now() + interval '1 day' where user_id = ${user.userId}`
  const { body } = await refresh(api, tokens.refresh_token)
  expect(Number(await daysLeft())).toBeCloseTo(400, 2)
  await sql`update app_grants set expires_at = now() where user_id = ${user.userId}`
  expect((await refresh(api, body.refresh_token)).body.error).toBe('invalid_grant')
})

test('a token of another app is refused and stays valid for its own', async () => {
  const { tokens } = await connected()
  expect((await refresh(api, tokens.refresh_token, 'obs-relay-control')).body.error).toBe('invalid_grant')
  expect((await refresh(api, tokens.refresh_token)).status).toBe(200)
})

test('a refresh cannot gain scopes', async () => {
  const user = await api.given.user()
  const tokens = await connectApp(api, user.bearer, 'obs-relay-control', 'relay:read')
  const answer = await postForm(api, '/token', {
    grant_type: 'refresh_token',
    refresh_token: tokens.refresh_token,
    client_id: 'obs-relay-control',
    scope: 'relay:read relay:control',
  })
  expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
})

test('revoking a refresh token ends this sign-in at once, and no other one of the app', async () => {
  const { user, tokens, reads } = await connected()
  const other = await connectApp(api, user.bearer)
  const fields = { token: tokens.refresh_token, token_type_hint: 'refresh_token', client_id: sourceApp }
  const revoked = await postForm(api, '/token/revocation', fields)
  expect([revoked.status, revoked.body]).toEqual([200, {}])
  expect([await reads(tokens.access_token), await reads(other.access_token)]).toEqual([401, 200])
  expect((await refresh(api, tokens.refresh_token)).body.error).toBe('invalid_grant')
  expect((await refresh(api, other.refresh_token)).status).toBe(200)
  const audit = await api.get<{ entries: object[] }>('/auth/audit', { bearer: user.bearer })
  expect(audit.body.entries).toContainEqual(
    expect.objectContaining({ action: 'app_signed_out', detail: { client_id: sourceApp, why: 'signed_out' } }),
  )
})

test('revoking an unknown token, or one of another app, changes nothing and reveals nothing', async () => {
  const { tokens } = await connected()
  const fields = [
    { token: 'unknown', client_id: sourceApp },
    { token: tokens.refresh_token, client_id: 'obs-relay-control' },
  ]
  for (const it of fields) expect((await postForm(api, '/token/revocation', it)).status).toBe(200)
  expect((await refresh(api, tokens.refresh_token)).status).toBe(200)
})

test('an exchange that is not done before its client gives up is undone', async () => {
  const { user, tokens } = await connected()
  const answer = await sql.begin(async (tx) => {
    await tx`select from app_grants where user_id = ${user.userId} for update`
    const exchanging = refresh(api, tokens.refresh_token)
    await waitForBlockedQuery(sql, tx)
    const now = performance.now.bind(performance)
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 5000)
    return { exchanging }
  })
  expect(await answer.exchanging).toMatchObject({ status: 503, body: { error: 'temporarily_unavailable' } })
  vi.restoreAllMocks()
  const [grant] = await sql`select generation from app_grants where user_id = ${user.userId}`
  expect(grant).toEqual({ generation: 0 })
  expect((await refresh(api, tokens.refresh_token)).status).toBe(200)
})
