/** Apps get tokens: authorization requests, codes, refresh tokens, and what ends them. */
import { expect, test } from 'vitest'
import { sourceApp } from '../../../domain/identity/apps.ts'
import { startApi } from '../../support/api.ts'
import { appVariables, connectApp, refresh } from '../../support/apps.ts'

const api = await startApi(await appVariables())

test('an approved app gets tokens, and reads the ingests of the account', async () => {
  const { bearer } = await api.given.user()
  const tokens = await connectApp(api, bearer)
  expect(tokens).toMatchObject({ token_type: 'Bearer', expires_in: 600, scope: 'ingests:read' })
  const list = await api.get('/ingests', { bearer: tokens.access_token })
  expect([list.status, list.body]).toEqual([200, { ingests: [] }])
  const again = await refresh(api, tokens.refresh_token)
  expect(again).toMatchObject({ status: 200 })
  const apps = await api.get<{ apps: { client_id: string }[] }>('/auth/apps', { bearer })
  expect(apps.body.apps).toMatchObject([{ client_id: sourceApp, sign_ins: 1, scopes: ['ingests:read'] }])
})
