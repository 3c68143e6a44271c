/** Links to the legal pages, and the version of the terms that forms state, in a browser without scripts. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { newProviderAccount, startOAuthApi } from '../support/oauth-api.ts'
import { newCustomer } from '../support/sandbox-customers.ts'
import { freeSiteUrl, startSite } from '../support/site.ts'

const legal = {
  SVC_TERMS_URL: 'https://example.com/terms',
  SVC_TERMS_VERSION: '2026-06-19',
  SVC_PRIVACY_URL: 'https://example.com/privacy',
  SVC_IMPRINT_URL: 'https://example.com/imprint',
  SVC_REFUND_URL: 'https://example.com/refunds',
  SVC_ABUSE_CONTACT: 'abuse@example.com',
}
const addresses = [
  legal.SVC_TERMS_URL,
  legal.SVC_PRIVACY_URL,
  legal.SVC_IMPRINT_URL,
  legal.SVC_REFUND_URL,
  'mailto:abuse@example.com',
]
const version = legal.SVC_TERMS_VERSION

const { api, providers } = await startOAuthApi({ SVC_SITE_URL: await freeSiteUrl(), ...legal })
const site = await startSite(api, legal)
const bare = await startSite(api, { SVC_SITE_URL: await freeSiteUrl() })

const acceptedBy = (email: string) =>
  api.sql`select version from terms_acceptances join users on id = user_id where email = ${email}`

test('the footer of each page links to the legal pages that are configured, and to no others', async () => {
  const customer = await newCustomer(api)
  const [browser, other] = [site.browser(), bare.browser()]
  for (const own of [browser, other]) own.cookies.set('svc_session', customer.bearer)
  for (const path of ['/help', '/status', '/account', '/relays', '/no-such-page']) {
    expect((await browser.open(path)).links, path).toEqual(expect.arrayContaining(addresses))
    const { html } = await other.open(path)
    expect([html.includes('https://example.com'), html.includes('aria-label="Legal"')], path).toEqual([false, false])
  }
})

test('a contact for abuse that is a page is linked as it is', async () => {
  const page = await startSite(api, {
    SVC_SITE_URL: await freeSiteUrl(),
    SVC_ABUSE_CONTACT: 'https://example.com/abuse',
  })
  expect((await page.browser().open('/help')).links).toContain('https://example.com/abuse')
})

test('signing up states the version of the terms, and records it', async () => {
  const [browser, email] = [site.browser(), `${randomUUID()}@example.com`]
  const page = await browser.open('/sign-up')
  expect(page.data('terms-version')).toEqual([version])
  expect(page.text).toContain(`By creating an account you accept the terms (version ${version}).`)
  await browser.submit(page, '/sign-up', { email, password: 'a few words in a row' })
  expect(await acceptedBy(email)).toEqual([{ version }])
})

test('a form with an outdated version is refused, and shown again with the present one', async () => {
  const [browser, email] = [site.browser(), `${randomUUID()}@example.com`]
  const fields = { email, password: 'a few words in a row', terms_version: '2025-01-01' }
  const refused = await browser.post('/sign-up', fields)
  expect([refused.status, refused.problem]).toEqual([409, 'terms_outdated'])
  expect(refused.form('/sign-up').fields).toMatchObject({ email, terms_version: version })
})

test('signing in with a provider states the terms where that can create an account', async () => {
  for (const path of ['/sign-up', '/login']) {
    const [browser, account] = [site.browser(), newProviderAccount()]
    const page = await browser.open(path)
    expect(page.data('terms-version'), path).toEqual([version])
    const forwarding = await browser.submit(page, '/oauth/google/start')
    providers.google.account = account
    const parameters = await providers.google.visit(forwarding.continuesTo ?? '')
    await browser.open(`/oauth/google/callback?${new URLSearchParams({ ...parameters })}`, { from: 'cross-site' })
    expect(await acceptedBy(account.email ?? ''), path).toEqual([{ version }])
  }
})

test('checkout and account page name the terms and the page about refunds', async () => {
  const customer = await newCustomer(api)
  const [browser, other] = [site.browser(), bare.browser()]
  for (const own of [browser, other]) own.cookies.set('svc_session', customer.bearer)
  const order = await customer.openSubscription({ plan: 'paid' })
  for (const path of ['/account', `/sandbox/checkout/${order}`]) {
    const page = await browser.open(path)
    expect(page.data('terms-version'), path).toEqual([version])
    expect(page.text).toContain('Refunds and withdrawal')
    expect((await other.open(path)).text).not.toContain('Refunds')
  }
})
