/** Apps while Postgres does not answer: nothing signs them out. */
import { expect, onTestFinished, test } from 'vitest'
import { startApi } from '../../support/api.ts'
import {
  approvedCode,
  appVariables,
  authorizationQuery,
  codeFields,
  connectApp,
  exchange,
  postForm,
  refresh,
} from '../../support/apps.ts'
import { startOwnPostgres } from '../../support/own-postgres.ts'

const queries = { statementMillisMax: 1250, lockMillisMax: 1000, idleTransactionMillisMax: 5000, answerMillisMax: 1500 }
const postgres = await startOwnPostgres()
const api = await startApi({ ...(await appVariables()), DATABASE_URL: postgres.url }, { queries })

test('every request of an app is answered with 503 and a flat error, and succeeds after the outage', async () => {
  const { bearer } = await api.given.user()
  const tokens = await connectApp(api, bearer)
  const { request, code } = await approvedCode(api, bearer)
  onTestFinished(() => postgres.thaw())
  await postgres.freeze()
  const answers = await Promise.all([
    refresh(api, tokens.refresh_token),
    exchange(api, codeFields(request, code)),
    postForm(api, '/token/revocation', { token: tokens.refresh_token, client_id: 'obs-irl-source' }),
    api.get<object>('/ingests', { bearer: tokens.access_token }),
    api.get<object>('/ingests/abc/url', { bearer: tokens.access_token }),
  ])
  for (const { status, headers, body } of answers) {
    expect([status, body]).toEqual([503, { error: 'temporarily_unavailable', error_description: expect.any(String) }])
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  }
  const page = await fetch(`${api.url}/oauth/auth?${authorizationQuery().query}`, { redirect: 'manual' })
  expect([page.status, page.headers.get('location')]).toEqual([503, null])
  await postgres.thaw()
  expect((await exchange(api, codeFields(request, code))).status).toBe(200)
  expect((await refresh(api, tokens.refresh_token)).status).toBe(200)
  expect((await api.get('/ingests', { bearer: tokens.access_token })).status).toBe(200)
})
