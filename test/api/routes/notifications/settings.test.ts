/** The settings of notifications, and the endpoint of an account. */
import { Webhook } from 'standardwebhooks'
import { beforeEach, describe, expect, test } from 'vitest'
import { openMessage } from '../../../../db/notifications/outbox.ts'
import { createUnsubscribeToken } from '../../../../db/notifications/unsubscribe-tokens.ts'
import { createEndpointStore } from '../../../../db/transactions/record-endpoint-attempts.ts'
import { notificationKinds } from '../../../../domain/notifications/kinds.ts'
import { createSealing } from '../../../../platform/sealing.ts'
import { type GivenUser, startApi, statusAndCode } from '../../../support/api.ts'

const api = await startApi({ SVC_RATE_LIMITS: 'notifications=1000,unsubscribe=1000' })
const { sql } = api
const { sealing } = api.services

interface Overview {
  readonly email: { readonly address: string; readonly verified: boolean }
  readonly endpoint: Readonly<Record<string, unknown>> | null
  readonly kinds: readonly { readonly kind: string; readonly email: boolean; readonly endpoint: boolean }[]
  readonly stream_delay_seconds: number
}

let user: GivenUser
beforeEach(async () => {
  user = await api.given.user()
  await sql`update users set email_verified_at = now() where id = ${user.userId}`
})

const read = async () => (await api.get<Overview>('/notifications', user)).body
const post = <Body = Record<string, unknown>>(path: string, body?: object) =>
  api.post<Body>(`/notifications${path}`, body, user)
/** What is on: `usage_80 by email`. */
const listOn = async () =>
  (await read()).kinds.flatMap(({ kind, email, endpoint }) => [
    ...(email ? [`${kind} by email`] : []),
    ...(endpoint ? [`${kind} by endpoint`] : []),
  ])
const onAtFirst = [
  'relay_ending_soon by email',
  'payment_failed by email',
  'plan_ending by email',
  'relays_surplus by email',
]
/** What is on besides what is on at first. */
const enabled = async () => (await listOn()).filter((choice) => !onAtFirst.includes(choice))
const audit = async () =>
  (
    await sql<{ action: string; initiator: string; detail: object }[]>`
      select action, initiator, detail from audit_entries where user_id = ${user.userId} and action like 'notification%'
      order by id`
  ).map(({ action, initiator, detail }) => ({ action, initiator, detail }))

const publicUrl = 'https://93.184.216.34/hooks/0123456789abcdef'
const saveEndpoint = (url = publicUrl, type = 'webhook') =>
  post<{ endpoint: Overview['endpoint']; signing_secret: string }>('/endpoint', { type, url })

describe('settings', () => {
  test('are mails about payments and about relays that end because of their age at first', async () => {
    const { email, endpoint, kinds } = await read()
    expect([email, endpoint]).toEqual([{ address: user.email, verified: true }, null])
    expect(kinds.map(({ kind }) => kind)).toEqual(notificationKinds)
    expect((await listOn()).toSorted()).toEqual(onAtFirst.toSorted())
  })

  test.each(['payment_failed', 'plan_ending', 'relays_surplus', 'relay_ending_soon'])(
    'turn off mails of %s and on again, each audited once',
    async (kind) => {
      for (const enabled of [false, false, true, true, false]) {
        expect((await post('/settings', { kind, channel: 'email', enabled })).status).toBe(204)
        expect((await listOn()).includes(`${kind} by email`)).toBe(enabled)
      }
      expect((await audit()).map(({ action }) => action)).toEqual([
        'notification_disabled',
        'notification_enabled',
        'notification_disabled',
      ])
    },
  )

  test('change one by one or together, and each change is audited once', async () => {
    expect((await post('/settings', { kind: 'usage_80', channel: 'email', enabled: true })).status).toBe(204)
    const settings = [
      { kind: 'usage_80', channel: 'email', enabled: true },
      { kind: 'relay_ended', channel: 'endpoint', enabled: true },
    ]
    expect((await post('/settings', { settings })).status).toBe(204)
    expect(await enabled()).toEqual(['relay_ended by endpoint', 'usage_80 by email'])
    await post('/settings', { kind: 'usage_80', channel: 'email', enabled: false })
    expect(await enabled()).toEqual(['relay_ended by endpoint'])
    expect(await audit()).toEqual([
      { action: 'notification_enabled', initiator: 'user', detail: { kind: 'usage_80', channel: 'email' } },
      { action: 'notification_enabled', initiator: 'user', detail: { kind: 'relay_ended', channel: 'endpoint' } },
      { action: 'notification_disabled', initiator: 'user', detail: { kind: 'usage_80', channel: 'email' } },
    ])
  })

  test.each([
    { kind: 'usage_50', channel: 'email', enabled: true },
    { kind: 'usage_80', channel: 'sms', enabled: true },
    { kind: 'usage_80', channel: 'email' },
    { settings: [] },
    {},
  ])('refuse %j', async (body) => {
    expect(statusAndCode(await post('/settings', body))).toEqual([400, 'invalid_request'])
  })

  test('refuse mails to an address that is not verified, and change nothing', async () => {
    await sql`update users set email_verified_at = null where id = ${user.userId}`
    const settings = [
      { kind: 'relay_ended', channel: 'endpoint', enabled: true },
      { kind: 'relay_ended', channel: 'email', enabled: true },
    ]
    expect(statusAndCode(await post('/settings', { settings }))).toEqual([403, 'email_not_verified'])
    expect(await enabled()).toEqual([])
  })

  test('of one account do not show in another one, and need a sign-in', async () => {
    await post('/settings', { kind: 'usage_80', channel: 'email', enabled: true })
    user = await api.given.user()
    expect(await enabled()).toEqual([])
    expect((await api.get('/notifications')).status).toBe(401)
  })
})

describe('the delay of notifications about streams', () => {
  const delay = async () => (await read()).stream_delay_seconds

  test('is 30 s at first, is changed alone or with settings, and each change is audited once', async () => {
    expect(await delay()).toBe(30)
    for (const seconds of [0, 0, 600]) {
      expect((await post('/settings', { stream_delay_seconds: seconds })).status).toBe(204)
      expect(await delay()).toBe(seconds)
    }
    const settings = [{ kind: 'stream_lost', channel: 'email', enabled: true }]
    expect((await post('/settings', { settings, stream_delay_seconds: 45 })).status).toBe(204)
    expect((await post('/settings', { ...settings[0], stream_delay_seconds: 5 })).status).toBe(204)
    expect([await delay(), await enabled()]).toEqual([5, ['stream_lost by email']])
    expect((await audit()).map(({ action, detail }) => [action, detail])).toEqual([
      ...[0, 600].map((seconds) => ['notification_delay_changed', { stream_delay_seconds: seconds }]),
      ['notification_enabled', { kind: 'stream_lost', channel: 'email' }],
      ...[45, 5].map((seconds) => ['notification_delay_changed', { stream_delay_seconds: seconds }]),
    ])
  })

  test.each([
    { stream_delay_seconds: -1 },
    { stream_delay_seconds: 601 },
    { stream_delay_seconds: 1.5 },
    { stream_delay_seconds: '30' },
    { stream_delay_seconds: null },
    { stream_delay_seconds: 5, settings: [] },
    { stream_delay_seconds: 601, settings: [{ kind: 'usage_80', channel: 'email', enabled: true }] },
  ])('is not changed by %j', async (body) => {
    expect(statusAndCode(await post('/settings', body))).toEqual([400, 'invalid_request'])
    expect([await delay(), await enabled()]).toEqual([30, []])
  })

  test('is not changed when a setting is refused', async () => {
    await sql`update users set email_verified_at = null where id = ${user.userId}`
    const settings = [{ kind: 'stream_lost', channel: 'email', enabled: true }]
    expect((await post('/settings', { settings, stream_delay_seconds: 45 })).status).toBe(403)
    expect(await delay()).toBe(30)
  })
})

describe('the endpoint', () => {
  test('is saved sealed; its secret is in one response only, and its URL in none', async () => {
    const { status, headers, body } = await saveEndpoint()
    expect(status).toBe(201)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(() => new Webhook(body.signing_secret)).not.toThrow()
    expect(body.endpoint).toEqual({
      type: 'webhook',
      masked_url: 'https://93.184.216.34/…cdef',
      created_at: expect.any(String),
      disabled_at: null,
      disabled_reason: null,
    })
    expect((await read()).endpoint).toEqual(body.endpoint)
    const [row] = await sql`select url_sealed, secret_sealed from notification_endpoints where user_id = ${user.userId}`
    expect(JSON.stringify(row)).not.toMatch(/93\.184|whsec_|0123456789/)
    expect(await createEndpointStore(sql, sealing).find(user.userId)).toMatchObject({
      url: publicUrl,
      secret: body.signing_secret,
    })
    expect(api.logged.join('')).not.toMatch(/whsec_|hooks\/0123/)
  })

  test('of Discord has no secret and cannot rotate one', async () => {
    const { body } = await saveEndpoint('https://discord.com/api/webhooks/123456/abcdefgh-token', 'discord')
    expect(body.signing_secret).toBeNull()
    expect(body.endpoint?.masked_url).toBe('https://discord.com/…oken')
    expect(statusAndCode(await post('/endpoint/rotate'))).toEqual([404, 'not_found'])
  })

  test.each([
    'http://93.184.216.34/',
    'https://127.0.0.1/',
    'https://169.254.169.254/latest/meta-data/',
    'https://[::ffff:10.0.0.1]/',
    'https://localhost/',
    'https://user:password@93.184.216.34/',
    'https://93.184.216.34:22/',
    'not a url',
  ])('is not saved with the URL %s', async (url) => {
    expect(statusAndCode(await saveEndpoint(url))).toEqual([400, 'invalid_request'])
    expect((await read()).endpoint).toBeNull()
  })

  test('is not saved as Discord with another URL', async () => {
    expect(statusAndCode(await saveEndpoint(publicUrl, 'discord'))).toEqual([400, 'invalid_request'])
  })

  test('gets another secret by saving or rotating, is enabled again by saving, and can be removed', async () => {
    const first = (await saveEndpoint()).body.signing_secret
    await sql`update notification_endpoints set disabled_at = now(), disabled_reason = 'failing'`
    expect((await read()).endpoint).toMatchObject({ disabled_reason: 'failing' })
    const second = (await saveEndpoint()).body.signing_secret
    expect((await read()).endpoint).toMatchObject({ disabled_reason: null })
    const third = (await post('/endpoint/rotate')).body.signing_secret
    expect(new Set([first, second, third]).size).toBe(3)
    expect(await createEndpointStore(sql, sealing).find(user.userId)).toMatchObject({ secret: third })
    for (let times = 0; times < 2; times += 1)
      expect((await api.delete('/notifications/endpoint', user)).status).toBe(204)
    expect((await read()).endpoint).toBeNull()
    expect((await audit()).map(({ action }) => action)).toEqual([
      'notification_endpoint_saved',
      'notification_endpoint_saved',
      'notification_secret_replaced',
      'notification_endpoint_removed',
    ])
  })

  test('gets a test message through the outbox, which the deliveries show', async () => {
    expect(statusAndCode(await post('/endpoint/test'))).toEqual([404, 'not_found'])
    await saveEndpoint()
    expect((await post('/endpoint/test')).status).toBe(202)
    const [row] = await sql<{ id: string; content: Buffer; channel: string }[]>`
      select id, content, channel from outbox_messages where user_id = ${user.userId}`
    expect(row?.channel).toBe('webhook')
    expect(row && openMessage(sealing, row)).toMatchObject({ userId: user.userId, notification: { kind: 'test' } })
    const deliveries = async () =>
      (await api.get<{ deliveries: object[] }>('/notifications/deliveries', user)).body.deliveries
    expect(await deliveries()).toMatchObject([{ kind: 'test', channel: 'webhook', state: 'pending', error: null }])
    await sql`
      update outbox_messages set next_attempt_at = null, failed_at = now(), last_error = 'The endpoint answered 410.'
      where user_id = ${user.userId}`
    expect(await deliveries()).toMatchObject([{ state: 'failed', error: 'The endpoint answered 410.' }])
  })

  test('can be tested only a few times a minute', async () => {
    await saveEndpoint()
    const statuses: number[] = []
    for (let times = 0; times < 6; times += 1) statuses.push((await post('/endpoint/test')).status)
    expect(statuses).toEqual([202, 202, 202, 202, 202, 429])
  })
})

describe('an unsubscribe link', () => {
  const tokenFor = (userId = user.userId, key = sealing) =>
    createUnsubscribeToken(key, { userId, kind: 'usage_80', channel: 'email' })
  const unsubscribe = (token: string, path = '') => api.post(`/notifications/unsubscribe${path}`, { token })

  beforeEach(async () => {
    for (const [kind, channel] of [
      ['usage_80', 'email'],
      ['usage_80', 'endpoint'],
      ['usage_95', 'email'],
    ])
      await post('/settings', { kind, channel, enabled: true })
  })

  test('turns off its kind on its channel without a sign-in, and nothing else', async () => {
    const token = tokenFor()
    expect(await unsubscribe(token, '/preview')).toMatchObject({
      status: 200,
      body: { kind: 'usage_80', channel: 'email' },
    })
    expect(await enabled()).toHaveLength(3)
    expect(await unsubscribe(token)).toMatchObject({ status: 200, body: { kind: 'usage_80', channel: 'email' } })
    expect((await unsubscribe(token)).status).toBe(200)
    expect(await enabled()).toEqual(['usage_80 by endpoint', 'usage_95 by email'])
    expect((await audit()).filter(({ action }) => action === 'notification_disabled')).toHaveLength(1)
  })

  test('that was changed, or made with another key, is refused', async () => {
    const other = createSealing([{ id: sealing.keyId, key: Buffer.alloc(32, 9).toString('base64') }])
    const token = tokenFor()
    const changed = token.slice(0, -2) + (token.endsWith('A') ? 'BB' : 'AA')
    for (const wrong of [changed, tokenFor(user.userId, other), '', 'x', 'a.b.c', `${token}x`])
      for (const path of ['', '/preview'])
        expect(statusAndCode(await unsubscribe(wrong, path))).toEqual([400, 'token_invalid'])
    expect(await enabled()).toHaveLength(3)
  })

  test('of a kind that is on by default turns it off', async () => {
    const { userId } = user
    const token = createUnsubscribeToken(sealing, { userId, kind: 'payment_failed', channel: 'email' })
    for (let times = 0; times < 2; times += 1) expect((await unsubscribe(token)).status).toBe(200)
    expect(await listOn()).not.toContain('payment_failed by email')
    expect(await listOn()).toContain('plan_ending by email')
  })

  test('of a deleted account changes nothing', async () => {
    const token = tokenFor('11111111-1111-4111-8111-111111111111')
    expect((await unsubscribe(token)).status).toBe(200)
  })
})
