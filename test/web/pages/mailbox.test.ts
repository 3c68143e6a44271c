/** The mailbox of a service for development, in a browser without scripts. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { freeSiteUrl, startApiAndSite, startSite } from '../../support/site.ts'

const mailbox = { SVC_MAILBOX: 'true' }
const { api, site } = await startApiAndSite({ api: mailbox, site: mailbox })

test('a visitor who is not signed in reads a mail and follows its link', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  await browser.post('/forgot-password', { email: user.email })
  const list = await browser.open('/mailbox')
  expect([list.status, list.name]).toEqual([200, 'mailbox'])
  const [id] = list.data('mail')
  const mail = await browser.open(`/mailbox/${id}`)
  expect([mail.status, mail.name, mail.data('mail')]).toEqual([200, 'mailbox-mail', [id]])
  expect(mail.text).toContain(user.email)
  const link = mail.links.find((address) => address.includes('/reset-password?token=')) ?? ''
  const reset = await browser.open(link.replace(site.url, ''))
  expect([reset.status, reset.name]).toEqual([200, 'reset-password'])
})

test('the list shows the newest mail first, and every page leads to it', async () => {
  const { mailer, sql } = api.services
  for (const to of ['first@example.com', 'second@example.com'])
    await mailer.send(sql, null, { to, subject: 'password_changed', link: `${site.url}/forgot-password` })
  const { text } = await site.browser().open('/mailbox')
  expect(text.indexOf('second@example.com')).toBeLessThan(text.indexOf('first@example.com'))
  expect((await site.browser().open('/login')).links).toContain('/mailbox')
})

test('markup in a mail is shown as text, and only addresses of pages become links', async () => {
  const { mailer, sql } = api.services
  const evil = '<script>alert(1)</script>'
  await mailer.send(sql, null, {
    to: 'jane@example.com',
    subject: 'notification',
    title: evil,
    paragraphs: [evil, 'javascript:alert(1)'],
    link: 'https://site.example/relays',
    linkText: evil,
    unsubscribeLink: 'https://site.example/off',
  })
  const browser = site.browser()
  const list = await browser.open('/mailbox')
  const mail = await browser.open(`/mailbox/${list.data('mail')[0]}`)
  for (const page of [list, mail]) {
    expect(page.text).toContain(evil)
    expect(page.html).not.toContain(evil)
  }
  expect(mail.links).toEqual(expect.arrayContaining(['https://site.example/relays', 'https://site.example/off']))
  expect(mail.links.filter((address) => address.startsWith('javascript'))).toEqual([])
})

test('a visitor from another machine finds no mailbox, neither on its page nor as an API', async () => {
  const behindProxy = await startSite(api, {
    ...mailbox,
    SVC_SITE_URL: await freeSiteUrl(),
    SVC_TRUSTED_PROXY_HOPS: '1',
  })
  const from = async (ip: string, path: string) =>
    (await behindProxy.browser().request('GET', path, { headers: { 'X-Forwarded-For': ip } })).status
  expect([await from('127.0.0.1', '/mailbox'), await from('203.0.113.7', '/mailbox')]).toEqual([200, 404])
  expect(await from('127.0.0.1', '/api/v1/mailbox')).toBe(404)
})

test('a mail that does not exist is not found', async () => {
  expect((await site.browser().open(`/mailbox/${randomUUID()}`)).status).toBe(404)
})

test('without the setting there is no mailbox, and no page leads to one', async () => {
  const plain = await startApiAndSite()
  const browser = plain.site.browser()
  expect((await browser.open('/mailbox')).status).toBe(404)
  expect((await browser.open('/login')).links).not.toContain('/mailbox')
})
