/** The page on which users choose their notifications. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createUnsubscribeToken } from '../../../db/notifications/unsubscribe-tokens.ts'
import { type GivenUser, startApi } from '../../support/api.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'
import type { Browser } from '../../support/site-browser.ts'

const siteUrl = await freeSiteUrl()
const api = await startApi({ SVC_SITE_URL: siteUrl, SVC_RATE_LIMITS: 'login=1000,notifications=1000,unsubscribe=1000' })
const site = await startSite(api)
const { sql } = api
const { sealing } = api.services
const path = '/account/notifications'
const endpointUrl = 'https://93.184.216.34/hooks/0123456789abcdef'

let user: GivenUser
let browser: Browser

beforeEach(async () => {
  user = await api.given.user()
  await sql`update users set email_verified_at = now() where id = ${user.userId}`
  browser = site.browser()
  await browser.submit(await browser.open('/login'), '/login', { email: user.email, password: user.password })
})

afterEach(() => {
  expect(site.logged.join('')).not.toMatch(/whsec_|0123456789abcdef/)
})

/** What is on: `usage_80 by email`. */
const listOn = async () => {
  const { body } = await api.get<{ kinds: { kind: string; email: boolean; endpoint: boolean }[] }>(
    '/notifications',
    user,
  )
  return body.kinds.flatMap(({ kind, email, endpoint }) => [
    ...(email ? [`${kind} by email`] : []),
    ...(endpoint ? [`${kind} by endpoint`] : []),
  ])
}
const onAtFirst = [
  'relay_ending_soon by email',
  'payment_failed by email',
  'plan_ending by email',
  'relays_surplus by email',
]
/** What is on besides what is on at first. */
const enabled = async () => (await listOn()).filter((choice) => !onAtFirst.includes(choice))

const saveEndpoint = async (fields: Readonly<Record<string, string>> = {}) =>
  browser.submit(await browser.open(path), `${path}/endpoint`, { type: 'webhook', url: endpointUrl, ...fields })

describe('the page Notifications', () => {
  test('saves what is ticked, and turns off what is not', async () => {
    await saveEndpoint()
    const page = await browser.open(path)
    const ticked = { 'relay_ended.email': 'on', 'usage_80.email': 'on', 'usage_80.endpoint': 'on' }
    // Both channels have a hidden field of the same name.
    const names = [['channel', 'email'], ['channel', 'endpoint'], ...page.data('kind').map((kind) => ['kind', kind])]
    const body = new URLSearchParams([...names, ...Object.entries(ticked)] as [string, string][])
    const options = { body: body.toString(), headers: { 'Content-Type': 'application/x-www-form-urlencoded' } }
    expect((await browser.request('POST', path, options)).status).toBe(303)
    expect(await listOn()).toEqual(['relay_ended by email', 'usage_80 by email', 'usage_80 by endpoint'])
    expect(page.data('kind')).toHaveLength(13)
    expect((await browser.open(path)).form(path).fields).toMatchObject(ticked)
    await browser.post(path, { channel: 'email', kind: 'relay_ended' })
    expect(await listOn()).toEqual(['usage_80 by email', 'usage_80 by endpoint'])
  })

  test('shows as ticked what is on by default, and leaves a kind that its form does not have as it is', async () => {
    const page = await browser.open(path)
    expect(Object.keys(page.form(path).fields).filter((name) => name.includes('.'))).toEqual(
      onAtFirst.map((choice) => choice.replace(' by ', '.')),
    )
    await browser.post(path, { channel: 'email', kind: 'usage_80', 'usage_80.email': 'on' })
    expect(await enabled()).toEqual(['usage_80 by email'])
    expect(await listOn()).toHaveLength(onAtFirst.length + 1)
  })

  test('offers messages about the stream, off at first, after a delay that the user sets', async () => {
    const page = await browser.open(path)
    expect(page.data('kind')).toEqual(expect.arrayContaining(['stream_lost', 'stream_recovered', 'stream_weak']))
    const { fields } = page.form(path)
    expect(fields.stream_delay_seconds).toBe('30')
    expect(Object.keys(fields).filter((name) => name.startsWith('stream_') && name.includes('.'))).toEqual([])
    const form = { channel: 'email', kind: 'stream_lost', 'stream_lost.email': 'on' }
    expect(await browser.post(path, { ...form, stream_delay_seconds: '90' })).toMatchObject({ notice: 'saved' })
    expect(await enabled()).toEqual(['stream_lost by email'])
    expect((await browser.open(path)).form(path).fields).toMatchObject({
      stream_delay_seconds: '90',
      'stream_lost.email': 'on',
    })
    for (const wrong of ['601', '-1', 'soon'])
      expect(await browser.post(path, { ...form, stream_delay_seconds: wrong })).toMatchObject({
        status: 400,
        problem: 'invalid_request',
      })
    // A page that was opened before the upgrade has no such field.
    await browser.post(path, form)
    expect((await browser.open(path)).form(path).fields.stream_delay_seconds).toBe('90')
  })

  test('offers no mails to an address that is not verified', async () => {
    await sql`update users set email_verified_at = null where id = ${user.userId}`
    const page = await browser.open(path)
    expect(page.data('email')).toEqual(['unverified'])
    expect(page.form(path).fields).not.toHaveProperty('channel')
    expect(await browser.post(path, { channel: 'email', kind: 'usage_80', 'usage_80.email': 'on' })).toMatchObject({
      status: 403,
      problem: 'email_not_verified',
    })
  })

  test('shows the signing secret once', async () => {
    const saved = await saveEndpoint()
    const [secret = ''] = /whsec_[\w+/=]+/.exec(saved.html) ?? []
    expect(secret).not.toBe('')
    const page = await browser.open(path)
    expect(page.data('endpoint')).toEqual(['webhook'])
    expect(page.html).not.toContain('whsec_')
    expect(page.html).not.toContain(endpointUrl)
    const rotated = await browser.submit(page, `${path}/endpoint/rotate`)
    expect(rotated.html).toContain('whsec_')
    expect(rotated.html).not.toContain(secret)
  })

  test('says what is wrong with an address, and shows it as text', async () => {
    const url = 'https://127.0.0.1/" onfocus="alert(1)'
    const page = await saveEndpoint({ url })
    expect([page.status, page.problem]).toEqual([400, 'invalid_request'])
    expect(page.form(`${path}/endpoint`).fields.url).toBe(url)
    expect(page.html).not.toContain('" onfocus')
    expect(page.text).toContain('public address')
    expect((await saveEndpoint({ type: 'discord' })).problem).toBe('invalid_request')
  })

  test('sends a test, lists it with its state, and removes the address', async () => {
    await saveEndpoint()
    const tested = await browser.submit(await browser.open(path), `${path}/endpoint/test`)
    expect(tested).toMatchObject({ notice: 'test_requested' })
    expect([tested.data('delivery'), tested.data('state')]).toEqual([['test'], ['pending']])
    await sql`
      update outbox_messages set next_attempt_at = null, failed_at = now(), last_error = '<b>The endpoint answered 500.</b>'`
    const failed = await browser.open(path)
    expect(failed.data('state')).toEqual(['failed'])
    expect(failed.html).not.toContain('<b>The endpoint')
    const removed = await browser.submit(failed, `${path}/endpoint/remove`)
    expect([removed.notice, removed.data('endpoint')]).toEqual(['endpoint_removed', ['none']])
    expect(await browser.post(`${path}/endpoint/test`, {})).toMatchObject({ status: 404, problem: 'not_found' })
  })

  test('says why an endpoint is off', async () => {
    await saveEndpoint()
    await sql`update notification_endpoints set disabled_at = now(), disabled_reason = 'gone' where user_id = ${user.userId}`
    const page = await browser.open(path)
    expect(page.data('disabled')).toEqual(['gone'])
    expect(page.hasForm(`${path}/endpoint/test`)).toBe(false)
    expect((await saveEndpoint()).data('disabled')).toEqual([])
  })

  test('needs a sign-in', async () => {
    expect((await site.browser().open(path)).name).toBe('login')
  })
})

describe('the link that turns a notification off', () => {
  let link: string
  beforeEach(async () => {
    await sql`
      insert into notification_settings (user_id, kind, channel)
      values (${user.userId}, 'usage_80', 'email'), (${user.userId}, 'usage_95', 'email')`
    const token = createUnsubscribeToken(sealing, { userId: user.userId, kind: 'usage_80', channel: 'email' })
    link = `/notifications/off?token=${token}`
  })

  test('changes nothing when it is opened, and turns off one kind by its button, without a sign-in', async () => {
    const stranger = site.browser()
    const page = await stranger.open(link, { from: 'cross-site' })
    expect([page.name, page.data('kind'), page.data('channel')]).toEqual(['notifications-off', ['usage_80'], ['email']])
    expect(await enabled()).toHaveLength(2)
    const done = await stranger.submit(page, '/notifications/off')
    expect([done.status, done.notice]).toEqual([200, 'turned_off'])
    expect(await enabled()).toEqual(['usage_95 by email'])
  })

  test.each([
    ['application/x-www-form-urlencoded', 'List-Unsubscribe=One-Click'],
    [
      'multipart/form-data; boundary=x',
      '--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n',
    ],
  ])('works as one click of a mail program with %s', async (type, body) => {
    const reply = await fetch(site.url + link, { method: 'POST', headers: { 'Content-Type': type }, body })
    expect(reply.status).toBe(200)
    expect(await enabled()).toEqual(['usage_95 by email'])
  })

  test.each(['/notifications/off', '/notifications/off?token=x', '/notifications/off?token=a.b.c.d.e'])(
    '%s is refused',
    async (wrong) => {
      expect(await site.browser().open(wrong)).toMatchObject({ status: 400, problem: 'token_invalid' })
      expect(await site.browser().post(wrong, {})).toMatchObject({ status: 400, problem: 'token_invalid' })
    },
  )

  test('is not used by a page of another site', async () => {
    const reply = await browser.request('POST', link, { from: 'cross-site', body: {} })
    expect(reply.status).toBe(403)
    expect(await enabled()).toHaveLength(2)
  })
})
