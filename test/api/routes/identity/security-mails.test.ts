/**
 * Mails about changes of an account that another person may have made. They are read from the outbox of a service with
 * SMTP.
 */
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { openMessage } from '../../../../db/notifications/outbox.ts'
import { notificationKinds } from '../../../../domain/notifications/kinds.ts'
import type { GivenUser } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { beginMerge } from '../../../support/merges.ts'
import { newProviderAccount, startOAuthApi } from '../../../support/oauth-api.ts'

const oauth = await startOAuthApi({
  SVC_SMTP_URL: 'smtp://localhost:1',
  SVC_RATE_LIMITS: highLimits(),
})
const { api, authorize } = oauth
const { sql, services } = api

let user: GivenUser
beforeEach(async () => {
  user = await api.given.user()
  await setVerified(true)
})

const setVerified = (isVerified: boolean) =>
  sql`update users set email_verified_at = case when ${isVerified} then now() end where id = ${user.userId}`

interface Sent {
  readonly to: string
  readonly subject: string
  readonly link: string
  readonly methods?: readonly string[]
}

/** All mails about the account, in the order in which they were enqueued. */
const mails = async (): Promise<Sent[]> => {
  const rows = await sql<{ id: string; content: Buffer }[]>`
    select id, content from outbox_messages where user_id = ${user.userId} order by created_at, kind`
  return rows.map((row) => openMessage(services.sealing, row) as Sent)
}
const linkSubjects = ['reset_password', 'change_email', 'verify_email']
const news = async () => (await mails()).filter(({ subject }) => !linkSubjects.includes(subject))
const newestToken = async () => new URL((await mails()).at(-1)?.link ?? '').searchParams.get('token')

const chosen = 'another good password'
const bearerOf = () => ({ bearer: user.bearer })
const changePassword = () =>
  api.post('/auth/password/change', { current_password: user.password, new_password: chosen }, bearerOf())
const link = () => authorize('twitch', newProviderAccount(), { intent: 'link', ...bearerOf() })
const unlink = () => api.delete('/auth/oauth/twitch', bearerOf())
const scheduleDeletion = () => api.post('/auth/account/delete', { password: user.password }, bearerOf())
const resetPassword = async () => {
  await api.post('/auth/password/forgot', { email: user.email })
  return api.post('/auth/password/reset', { token: await newestToken(), password: chosen })
}
const changeEmail = async (email: string) => {
  await api.post('/auth/email/change', { email, password: user.password }, bearerOf())
  return api.post('/auth/email/change/confirm', { token: await newestToken() })
}
const freshEmail = () => `${randomUUID()}@example.com`

describe('the owner is mailed', () => {
  test('that the password was changed', async () => {
    expect((await changePassword()).status).toBe(204)
    expect(await news()).toEqual([
      { subject: 'password_changed', to: user.email, link: `${services.config.siteUrl}/forgot-password` },
    ])
  })

  test('that the password was reset, and which ways to sign in this removed', async () => {
    await link()
    expect((await resetPassword()).status).toBe(204)
    expect(await news()).toMatchObject([
      { subject: 'sign_in_method_added', methods: ['twitch'] },
      { subject: 'password_reset', to: user.email, link: `${services.config.siteUrl}/account/security` },
      { subject: 'sign_in_method_removed', to: user.email, methods: ['twitch'] },
    ])
  })

  test('at the former address, that the address was changed', async () => {
    expect((await changeEmail(freshEmail())).status).toBe(204)
    expect(await news()).toEqual([
      { subject: 'email_changed', to: user.email, link: `${services.config.siteUrl}/help` },
    ])
  })

  test('that a way to sign in was added and removed, once each however often it is repeated', async () => {
    const person = newProviderAccount()
    for (let times = 0; times < 2; times += 1) await authorize('twitch', person, { intent: 'link', ...bearerOf() })
    for (let times = 0; times < 2; times += 1) await unlink()
    expect(await news()).toMatchObject([
      { subject: 'sign_in_method_added', to: user.email, methods: ['twitch'] },
      { subject: 'sign_in_method_removed', to: user.email, methods: ['twitch'] },
    ])
  })

  test('that a merge added a way to sign in, when it is confirmed', async () => {
    const { confirm } = await beginMerge(oauth, user)
    expect(await news()).toEqual([])
    expect((await confirm({ password: user.password })).status).toBe(200)
    expect(await news()).toMatchObject([{ subject: 'sign_in_method_added', to: user.email, methods: ['google'] }])
  })

  test('of what changed when they take over an account that another person created with their address', async () => {
    await setVerified(false)
    await link()
    expect((await authorize('google', newProviderAccount({ email: user.email }))).status).toBe(200)
    expect(await news()).toMatchObject([
      { subject: 'sign_in_method_added', to: user.email, methods: ['google'] },
      { subject: 'sign_in_method_removed', to: user.email, methods: ['password', 'twitch'] },
    ])
  })

  test('whatever notifications are off', async () => {
    const settings = notificationKinds.map((kind) => ({ kind, channel: 'email', enabled: false }))
    expect((await api.post('/notifications/settings', { settings }, bearerOf())).status).toBe(204)
    await changePassword()
    expect(await news()).toMatchObject([{ subject: 'password_changed' }])
    const setting = { kind: 'password_changed', channel: 'email', enabled: false }
    expect((await api.post('/notifications/settings', setting, bearerOf())).status).toBe(400)
  })
})

describe('nothing is mailed', () => {
  test.each([
    ['a changed password', changePassword],
    ['a changed address', () => changeEmail(freshEmail())],
    ['an added way to sign in', link],
    ['a scheduled deletion', scheduleDeletion],
  ])('of %s to an address that is not verified', async (_, change) => {
    await setVerified(false)
    expect((await change()).status).toBeLessThan(300)
    expect(await news()).toEqual([])
  })

  test('of a new account that a provider creates', async () => {
    const { body } = await authorize('google', newProviderAccount())
    const { body: summary } = await api.get<{ user: { id: string } }>('/auth/session', {
      bearer: body.cp_access_jwt ?? '',
    })
    user = { ...user, userId: summary.user.id }
    expect(await news()).toEqual([])
  })

  test('of a change that is refused', async () => {
    const taken = freshEmail()
    await api.post('/auth/email/change', { email: taken, password: user.password }, bearerOf())
    const token = await newestToken()
    await sql`update users set email = ${taken} where id = ${(await api.given.user()).userId}`
    expect((await api.post('/auth/email/change/confirm', { token })).status).toBe(409)
    const person = newProviderAccount()
    await authorize('twitch', person, { intent: 'link', bearer: (await api.given.user()).bearer })
    expect((await authorize('twitch', person, { intent: 'link', ...bearerOf() })).status).toBe(409)
    expect(await news()).toEqual([])
  })
})
