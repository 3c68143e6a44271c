/** What is stored of the secrets of apps, and for how long. */
import { expect, test } from 'vitest'
import { exportAccount } from '../../../db/identity/account-export.ts'
import { deleteExpired, retentionRules } from '../../../db/operations/retention.ts'
import { startApi } from '../../support/api.ts'
import {
  approvedCode,
  appVariables,
  begin,
  codeFields,
  connectApp,
  decide,
  exchange,
  refresh,
} from '../../support/apps.ts'

const api = await startApi(await appVariables())
const { sql } = api

/** All rows of the tables of apps and the audit, as text. */
const dump = async () => {
  const tables = await Promise.all(
    ['app_grants', 'app_tokens', 'app_requests', 'audit_entries', 'rate_limit_windows'].map((table) =>
      sql.unsafe(`select t::text as row from ${table} t`),
    ),
  )
  return JSON.stringify(tables)
}

test('no code, token, ticket, verifier, state or id of a request is stored or logged', async () => {
  const { bearer } = await api.given.user()
  const pending = await begin(api)
  const ticket = new URL(await decide(api, pending, bearer)).searchParams.get('ticket') ?? ''
  const { request, code } = await approvedCode(api, bearer)
  const { body: tokens } = await exchange(api, codeFields(request, code))
  const { body: next } = await refresh(api, tokens.refresh_token)
  const secrets = {
    code,
    ticket,
    pending: pending.id,
    pending_state: pending.state,
    pending_cookie: pending.cookie.split('=').at(-1) ?? '',
    id: request.id,
    verifier: request.verifier,
    refresh: tokens.refresh_token,
    next_refresh: next.refresh_token,
    access: tokens.access_token.split('.')[2] ?? '',
    next_access: next.access_token.split('.')[2] ?? '',
  }
  const places = {
    rows: await dump(),
    log: api.logged.join('\n'),
    metrics: await (await fetch(`${api.url}/metrics`)).text(),
  }
  for (const [place, text] of Object.entries(places)) {
    expect(text).not.toBe('')
    for (const [name, secret] of Object.entries(secrets)) {
      expect(secret.length, name).toBeGreaterThan(15)
      expect(text.includes(secret), `${name} in ${place}`).toBe(false)
    }
  }
})

test('the export of an account names its apps and contains no secret', async () => {
  const user = await api.given.user()
  const tokens = await connectApp(api, user.bearer)
  const exported = (await sql.begin((tx) => exportAccount(tx, user.userId))) as Record<string, object[]>
  expect(exported.app_grants).toMatchObject([{ client_id: 'obs-irl-source', scopes: ['ingests:read'] }])
  expect(JSON.stringify(exported)).not.toContain(tokens.refresh_token)
})

test('what is expired, replaced or ended is deleted after its time, and present tokens stay', async () => {
  const user = await api.given.user()
  const tokens = await connectApp(api, user.bearer)
  const { body: next } = await refresh(api, tokens.refresh_token)
  await begin(api)
  await sql`update app_requests set expires_at = now() - interval '1 second'`
  await sql`update app_tokens set consumed_at = consumed_at - interval '31 days' where consumed_at is not null`
  const sweep = async () => {
    for (const rule of retentionRules.filter(({ table }) => table.startsWith('app_')))
      await deleteExpired(sql, rule, api.services.config.retention, 1000)
  }
  await sweep()
  const counts = async () =>
    (
      await sql`
        select (select count(*)::int from app_requests) as requests,
          (select count(*)::int from app_tokens t join app_grants g on g.id = t.grant_id
            where g.user_id = ${user.userId}) as tokens,
          (select count(*)::int from app_grants where user_id = ${user.userId}) as grants`
    )[0]
  expect(await counts()).toEqual({ requests: 0, tokens: 1, grants: 1 })
  expect((await refresh(api, next.refresh_token)).status).toBe(200)
  await api.delete('/auth/apps/obs-irl-source', { bearer: user.bearer })
  await sql`update app_grants set ended_at = now() - interval '91 days' where user_id = ${user.userId}`
  await sweep()
  expect(await counts()).toEqual({ requests: 0, tokens: 0, grants: 0 })
})
