/** Sign-in with a provider: who gets which account. */
import { describe, expect, test } from 'vitest'
import type { OAuthProviderName } from '../../../../providers/oauth/provider.ts'
import { startApi } from '../../../support/api.ts'
import {
  type CallbackReply,
  fetchUser,
  linkedProviders,
  newProviderAccount,
  startOAuthApi,
} from '../../../support/oauth-api.ts'

const { api, providers, start, visitProvider, sendCallback, authorize } = await startOAuthApi()
const names: readonly OAuthProviderName[] = ['twitch', 'google', 'discord']
const codeOf = ({ status, body }: { status: number; body: CallbackReply | { error?: { code: string } } }) => [
  status,
  body.error?.code,
]

describe('a provider', () => {
  test('is offered if it is configured, and refused by name otherwise', async () => {
    const bare = await startApi(providers.twitch.variables)
    expect((await bare.get('/auth/oauth/providers')).body).toEqual({
      providers: [
        { provider: 'twitch', configured: true },
        { provider: 'google', configured: false },
        { provider: 'discord', configured: false },
      ],
    })
    const begun = await bare.post('/auth/oauth/google/start', { intent: 'sign_in' })
    const returned = await bare.post('/auth/oauth/google/callback', { code: 'c', state: 's', binding: 'b' })
    expect([codeOf(begun), codeOf(returned)]).toEqual([
      [501, 'not_available'],
      [501, 'not_available'],
    ])
    expect(begun.body.error?.message).toContain('Google')
  })

  test('that does not exist is not found', async () => {
    for (const name of ['facebook', 'TWITCH', 'constructor', 'providers'])
      expect(codeOf(await start(name))).toEqual([404, 'not_found'])
  })

  test.each(names)(
    '%s receives the state and the redirect URI, and no secret that completes the sign-in',
    async (name) => {
      const begun = await start(name)
      expect([begun.status, begun.body.expires_in, begun.headers.get('cache-control')]).toEqual([201, 600, 'no-store'])
      const url = new URL(begun.body.authorization_url ?? '')
      expect(url.searchParams.get('redirect_uri')).toBe(`${api.services.config.siteUrl}/oauth/${name}/callback`)
      expect(url.searchParams.get('state')).toMatch(/^[\w-]{43}$/)
      expect(begun.body.binding).toMatch(/^[\w-]{43}$/)
      expect(url.href).not.toContain(begun.body.binding)
    },
  )
})

describe('sign-in', () => {
  test.each(names)('with %s creates an account the first time and signs in to it later', async (name) => {
    const person = newProviderAccount()
    const first = await authorize(name, person)
    expect([first.status, first.body.status, first.headers.get('cache-control')]).toEqual([
      200,
      'signed_in',
      'no-store',
    ])
    const user = await fetchUser(api, first.body.cp_access_jwt)
    expect(user).toMatchObject({ email: person.email, email_verified: true })
    expect(linkedProviders(user)).toEqual([name])
    const again = await authorize(name, person)
    expect((await fetchUser(api, again.body.cp_access_jwt)).id).toBe(user.id)
    const [row] = await api.sql`select password_hash from users where id = ${user.id}`
    expect(row?.passwordHash).toBeNull()
  })

  test('uses the provider’s user id: a changed address at the provider changes nothing', async () => {
    const person = newProviderAccount()
    const before = await fetchUser(api, (await authorize('google', person)).body.cp_access_jwt)
    const after = await authorize('google', { ...person, email: newProviderAccount().email })
    expect(await fetchUser(api, after.body.cp_access_jwt)).toMatchObject({ id: before.id, email: person.email })
  })

  test('with the same user id at two providers signs in to two accounts', async () => {
    const { providerUserId } = newProviderAccount()
    const [first, second] = [
      await authorize('google', newProviderAccount({ providerUserId })),
      await authorize('twitch', newProviderAccount({ providerUserId })),
    ]
    const ids = await Promise.all(
      [first, second].map(async (each) => (await fetchUser(api, each.body.cp_access_jwt)).id),
    )
    expect(new Set(ids).size).toBe(2)
  })

  test.each([
    ['twitch', false],
    ['google', false],
    ['google', 'false'],
    ['discord', false],
  ] as const)(
    'with an address that %s marks as verified: %j does not reveal its account',
    async (name, emailVerified) => {
      const owner = await api.given.user()
      await api.sql`update users set email_verified_at = now() where id = ${owner.userId}`
      const before = await fetchUser(api, owner.bearer)
      const taken = await authorize(name, newProviderAccount({ email: owner.email, emailVerified }))
      const free = await authorize(name, newProviderAccount({ emailVerified }))
      expect([taken.status, Object.keys(taken.body)]).toEqual([free.status, Object.keys(free.body)])
      for (const { body } of [taken, free]) {
        const shown = await fetchUser(api, body.cp_access_jwt)
        expect(shown).toMatchObject({ email: null, email_verified: false })
        expect(shown.id).not.toBe(owner.userId)
      }
      expect(await fetchUser(api, owner.bearer)).toEqual(before)
      expect(await api.sql`select from merge_requests where user_id = ${owner.userId}`).toHaveLength(0)
    },
  )

  test('works without any address', async () => {
    const person = newProviderAccount({ email: null, emailVerified: false })
    const { body } = await authorize('twitch', person)
    expect(await fetchUser(api, body.cp_access_jwt)).toMatchObject({ email: null, email_verified: false })
  })

  test.each([
    ['it@github.example', 'it@g\u0130thub.example'],
    ['mike@kaufhaus.example', 'mike@\u212aaufhaus.example'],
    ['mike@github.example', 'mi\u212ae@github.example'],
  ])(
    'where %s has an account, a different address that compares as equal creates an account without an address',
    async (taken, claimed) => {
      const owner = await api.given.user()
      await api.sql`update users set email = ${taken}, email_verified_at = null where id = ${owner.userId}`
      const { body } = await authorize('discord', newProviderAccount({ email: claimed }))
      const shown = await fetchUser(api, body.cp_access_jwt)
      expect(shown).toMatchObject({ email: null, email_verified: false })
      expect(shown.id).not.toBe(owner.userId)
    },
  )

  test('to a disabled account is refused', async () => {
    const person = newProviderAccount()
    const { id } = await fetchUser(api, (await authorize('discord', person)).body.cp_access_jwt)
    await api.sql`update users set disabled_at = now() where id = ${id}`
    expect(codeOf(await authorize('discord', person))).toEqual([403, 'account_disabled'])
  })

  test('is recorded in the audit trail with its method and without secrets', async () => {
    const { body } = await authorize('google', newProviderAccount())
    const { id } = await fetchUser(api, body.cp_access_jwt)
    const entries = await api.sql`select action, detail from audit_entries where user_id = ${id} order by id`
    expect(entries).toEqual([
      { action: 'signed_up', detail: { method: 'google' } },
      { action: 'signed_in', detail: { method: 'google', auth_session_id: expect.any(String) } },
    ])
  })

  test('with a new identity in concurrent requests creates one account', async () => {
    for (const name of names) {
      const person = newProviderAccount()
      const backs = [
        await visitProvider(name, person),
        await visitProvider(name, person),
        await visitProvider(name, person),
      ]
      const answers = await Promise.all(backs.map((callbackParams) => sendCallback(name, callbackParams)))
      expect(answers.map(({ body }) => body.status)).toEqual(['signed_in', 'signed_in', 'signed_in'])
      const ids = await Promise.all(answers.map(async ({ body }) => (await fetchUser(api, body.cp_access_jwt)).id))
      expect(new Set(ids).size).toBe(1)
    }
  })

  test('through two providers with the same verified address concurrently creates one account and one merge request', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { email } = newProviderAccount()
      const backs = [
        await visitProvider('google', newProviderAccount({ email })),
        await visitProvider('twitch', newProviderAccount({ email })),
      ] as const
      const answers = await Promise.all([sendCallback('google', backs[0]), sendCallback('twitch', backs[1])])
      expect(answers.map(({ body }) => body.status).sort()).toEqual(['merge_required', 'signed_in'])
      expect(await api.sql`select from users where email = ${email}`).toHaveLength(1)
    }
  })
})

describe('an authorization request', () => {
  test('is consumed once, and only with all of its secrets', async () => {
    const [own, foreign] = [
      await visitProvider('google', newProviderAccount()),
      await visitProvider('google', newProviderAccount()),
    ]
    const { state, ...stateless } = own
    const wrong = [
      { ...own, state: foreign.state },
      { ...own, state: 'x'.repeat(43) },
      stateless,
      { ...own, binding: foreign.binding },
      { ...own, binding: '' },
      { ...own, state: '\ud800' },
    ]
    for (const callbackParams of wrong)
      expect(codeOf(await sendCallback('google', callbackParams))).toEqual([400, 'token_invalid'])
    expect(codeOf(await sendCallback('twitch', own))).toEqual([400, 'token_invalid'])
    // None of them, nor another browser, used it up.
    expect((await sendCallback('google', own)).body.status).toBe('signed_in')
    expect(codeOf(await sendCallback('google', own))).toEqual([400, 'token_invalid'])
  })

  test('expires after ten minutes', async () => {
    const callbackParams = await visitProvider('discord', newProviderAccount())
    await api.sql`update oauth_authorization_requests set expires_at = expires_at - interval '600 seconds' where consumed_at is null`
    expect(codeOf(await sendCallback('discord', callbackParams))).toEqual([400, 'token_invalid'])
  })

  test('signs in once for twenty concurrent callbacks', async () => {
    const person = newProviderAccount()
    const callbackParams = await visitProvider('google', person)
    const answers = await Promise.all(Array.from({ length: 20 }, () => sendCallback('google', callbackParams)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(400)])
    const signedIn = answers.find(({ status }) => status === 200)
    const { id } = await fetchUser(api, signedIn?.body.cp_access_jwt)
    expect(await api.sql`select from auth_sessions where user_id = ${id}`).toHaveLength(1)
  })

  test.each(['made up', '\0', '\ud800', '../../token?x=1&code=', 'x'.repeat(4096)])(
    'is refused with a code that the provider did not issue, such as %j',
    async (code) => {
      for (const name of names) {
        const callbackParams = await visitProvider(name, newProviderAccount())
        expect(codeOf(await sendCallback(name, { ...callbackParams, code }))).toEqual([400, 'token_invalid'])
      }
    },
  )

  test('is refused with the issuer of another provider', async () => {
    const { iss, ...silent } = await visitProvider('google', newProviderAccount())
    expect(iss).toBe(providers.google.issuerUrl)
    expect(codeOf(await sendCallback('google', silent))).toEqual([400, 'token_invalid'])
    const callbackParams = await visitProvider('google', newProviderAccount())
    const answer = await sendCallback('google', { ...callbackParams, iss: providers.twitch.issuerUrl })
    expect(codeOf(answer)).toEqual([400, 'token_invalid'])
    for (const name of ['twitch', 'discord'] as const) {
      const foreign = { ...(await visitProvider(name, newProviderAccount())), iss: providers.google.issuerUrl }
      expect(codeOf(await sendCallback(name, foreign))).toEqual([400, 'token_invalid'])
    }
  })

  test.each([
    [{ state: 's', binding: 'b' }],
    [{ code: 'c', state: 7, binding: 'b' }],
    [{ code: 'c'.repeat(5000), state: 's', binding: 'b' }],
    [{ code: 'c', state: 's'.repeat(300), binding: 'b' }],
  ])('is refused with a body such as %j', async (body) => {
    expect(codeOf(await api.post('/auth/oauth/google/callback', body))).toEqual([400, 'invalid_request'])
  })

  test('requires a known intent, and the intent link for chat', async () => {
    const bodies = [
      {},
      { intent: 'approve' },
      { intent: 'merge' },
      { intent: 'merge', merge_request_id: 'x' },
      { intent: 'sign_in', scopes: 'chat' },
    ]
    for (const body of bodies)
      expect(codeOf(await api.post('/auth/oauth/google/start', body))).toEqual([400, 'invalid_request'])
  })

  test('is limited to twenty a minute per address', async () => {
    const limited = await startApi({ ...providers.discord.variables, SVC_RATE_LIMITS: '' })
    const asking = { ip: '192.0.2.9' }
    const answers = await Promise.all(
      Array.from({ length: 21 }, () => limited.post('/auth/oauth/discord/start', { intent: 'sign_in' }, asking)),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(20).fill(201), 429])
    // Callbacks are not limited, so that users who are at the provider can return.
    const callbackParams = { code: 'c', state: 's', binding: 'b' }
    expect(codeOf(await limited.post('/auth/oauth/discord/callback', callbackParams, asking))).toEqual([
      400,
      'token_invalid',
    ])
  })
})
