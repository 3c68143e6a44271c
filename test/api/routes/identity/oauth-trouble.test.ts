/** Providers of sign-ins that fail or answer nonsense. */
import { describe, expect, test } from 'vitest'
import type { OAuthProviderName } from '../../../../providers/oauth/provider.ts'
import { startApi } from '../../../support/api.ts'
import { countRows, fetchUser, newProviderAccount, startOAuthApi } from '../../../support/oauth-api.ts'
import type { Endpoint, Failure } from '../../../support/oauth-double.ts'

const { api, providers, visitProvider, sendCallback, authorize } = await startOAuthApi()

const displayNames = { twitch: 'Twitch', google: 'Google', discord: 'Discord' }
const tables = ['users', 'user_oauth_accounts', 'auth_sessions', 'refresh_tokens', 'merge_requests', 'audit_entries']

const failures: readonly Failure[] = ['status 500', 'html', '10 MB', 'nothing', 'redirect']
/** Each provider fails at one endpoint. Their time limits pass at the same time. */
const failingEndpoints: readonly (readonly [string, Partial<Record<OAuthProviderName, Endpoint>>])[] = [
  ['token', { twitch: 'token', google: 'token', discord: 'token' }],
  ['userinfo', { discord: 'userinfo' }],
]

describe('a provider that does not respond as expected', () => {
  test.each(
    failingEndpoints.flatMap(([what, endpoints]) => failures.map((failure) => [what, failure, endpoints] as const)),
  )('(%s: %s) is named in the error message, and nothing is written', async (_, failure, endpoints) => {
    const failing = Object.entries(endpoints) as [OAuthProviderName, Endpoint][]
    const visits = await Promise.all(
      failing.map(async ([name, endpoint]) => {
        const person = newProviderAccount()
        const { body } = await authorize(name, person)
        const bearer = body.cp_access_jwt
        const callbacks = [
          await visitProvider(name, person),
          await visitProvider(name, newProviderAccount()),
          await visitProvider(name, newProviderAccount(), { intent: 'link', bearer }),
        ]
        return { name, endpoint, person, bearer, callbacks, before: await fetchUser(api, bearer) }
      }),
    )
    const rows = await countRows(api, tables)

    for (const { name, endpoint } of visits) providers[name].failWith(failure, endpoint)
    const answers = await Promise.all(
      visits.flatMap(({ name, callbacks }) =>
        callbacks.map(async (callbackParams) => ({ name, answer: await sendCallback(name, callbackParams) })),
      ),
    )
    for (const { name } of visits) providers[name].recover()

    for (const { name, answer } of answers) {
      expect([answer.status, answer.body.error?.code]).toEqual([503, 'temporarily_unavailable'])
      expect(answer.body.error?.message).toContain(displayNames[name])
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect(await countRows(api, tables)).toEqual(rows)
    for (const { name, person, bearer, before } of visits) {
      expect(await fetchUser(api, bearer)).toEqual(before)
      expect((await authorize(name, person)).body.status).toBe('signed_in')
    }
  })

  test.each(['twitch', 'google'] as const)(
    '(%s, discovery) is refused at the start, and no authorization request is stored',
    async (name) => {
      const fresh = await startApi(providers[name].variables)
      providers[name].failWith('status 500', 'discovery')
      const refused = await fresh.post(`/auth/oauth/${name}/start`, { intent: 'sign_in' })
      providers[name].recover()
      expect([refused.status, refused.body.error?.code]).toEqual([503, 'temporarily_unavailable'])
      expect(await fresh.sql`select from oauth_authorization_requests`).toHaveLength(0)
      expect((await fresh.post(`/auth/oauth/${name}/start`, { intent: 'sign_in' })).status).toBe(201)
    },
  )

  test('is logged without the secrets of the request', async () => {
    const callbackParams = await visitProvider('google', newProviderAccount())
    providers.google.failWith('html', 'token')
    await sendCallback('google', callbackParams)
    providers.google.recover()
    const warnings = api.logged.filter((line) => line.includes('"level":"warn"'))
    expect(JSON.parse(warnings.at(-1) ?? '{}')).toMatchObject({ provider: 'google', reason: expect.any(String) })
    for (const secret of [callbackParams.code, callbackParams.state, callbackParams.binding])
      expect(api.logged.join('')).not.toContain(secret)
  })
})
