/** The public pages: landing, help and status, in a browser without scripts. */
import { describe, expect, test } from 'vitest'
import { startApiDouble } from '../../support/api-double.ts'
import { startApiAndSite, startSite } from '../../support/site.ts'

const { api, site } = await startApiAndSite({
  api: {
    SVC_REGIONS: JSON.stringify([
      { region: 'here', display_name: 'Here & <there>', provider: 'local', default: true },
      { region: 'none', display_name: 'Nowhere', provider: 'local', capacity: 0 },
    ]),
  },
  site: {
    SVC_PLAN_PRICE: '12.50',
    SVC_ADDON_PRICE: '6',
    SVC_CURRENCY: 'EUR',
    SVC_SUPPORT_EMAIL: 'help@example.com',
    SVC_TIME_BANK_HOURS_PER_RELAY: '150',
    SVC_TIME_BANK_ENFORCEMENT: 'enforce',
  },
})

/** A site whose API replies to nothing. */
async function siteWithoutApi() {
  const double = await startApiDouble()
  await double.close()
  return startSite(double)
}

describe('the landing page', () => {
  test('is shown at the root, with the way to an account', async () => {
    const page = await site.browser().open('/')
    expect([page.status, page.name]).toEqual([200, 'landing'])
    expect(page.links).toEqual(expect.arrayContaining(['/sign-up', '/login', '/help', '/status', '/docs']))
  })

  test('leads users to their relays, also from another site', async () => {
    const user = await api.given.user()
    const browser = site.browser()
    browser.cookies.set('svc_session', user.bearer)
    expect((await browser.open('/')).path).toBe('/relays')
    expect((await browser.open('/', { from: 'cross-site' })).path).toBe('/relays')
  })

  test('names the configured prices', async () => {
    const page = await site.browser().open('/')
    expect([page.data('plan-price'), page.data('addon-price')]).toEqual([['12.5'], ['6']])
    expect(page.text).toContain('€12.50')
    expect(page.text).toContain('€6 a month each')
  })

  test('names the configured hours, and what happens when they are used up', async () => {
    const page = await site.browser().open('/')
    expect([page.data('included-hours'), page.data('at-limit')]).toEqual([['150'], ['enforce']])
    expect(page.text).toContain('150 hours of relay time a month')
    expect(page.text).toContain('4 relays with 600 hours of relay time a month')
    expect(page.text).toContain('new ones start again in the next cycle')
  })

  test('names no price of the plan where none is configured', async () => {
    const page = await (await startSite(api, { SVC_SITE_URL: 'http://localhost:0' })).browser().open('/')
    expect([page.data('plan-price'), page.data('addon-price')]).toEqual([[], ['7.99']])
  })

  test('shows the regions with their capacity', async () => {
    const page = await site.browser().open('/')
    expect([page.data('region'), page.data('capacity')]).toEqual([
      ['here', 'none'],
      ['available', 'full'],
    ])
    expect(page.html).toContain('Here &amp; &lt;there>')
  })

  test('is shown without the capacity while the API is unavailable', async () => {
    const page = await (await siteWithoutApi()).browser().open('/')
    expect([page.status, page.name, page.data('regions')]).toEqual([200, 'landing', ['unavailable']])
  })
})

describe('the help page', () => {
  test('links to the address for questions where one is configured', async () => {
    const page = await site.browser().open('/help')
    expect([page.status, page.name]).toEqual([200, 'help'])
    expect(page.links).toContain('mailto:help@example.com')
    const other = await (await siteWithoutApi()).browser().open('/help')
    expect(other.status).toBe(200)
    expect(other.links.filter((link) => link.startsWith('mailto:'))).toEqual([])
  })
})

describe('the status page', () => {
  test('shows the service and its regions, and refreshes itself', async () => {
    const page = await site.browser().open('/status')
    expect([page.status, page.data('status'), page.data('api')]).toEqual([200, ['operational'], ['up']])
    expect(page.data('capacity')).toEqual(['available', 'full'])
    expect(Number(page.headers.get('refresh'))).toBeGreaterThan(0)
  })

  test('is shown while the API is unavailable, and says so', async () => {
    const page = await (await siteWithoutApi()).browser().open('/status')
    expect([page.status, page.data('status'), page.data('api')]).toEqual([200, ['unavailable'], ['down']])
    expect(Number(page.headers.get('refresh'))).toBeGreaterThan(0)
  })

  test('distinguishes few relays from none', async () => {
    const double = await startApiDouble()
    const behind = await startSite(double)
    for (const status of ['limited', 'full']) {
      double.respondWith(({ url }) => ({
        body: url.endsWith('/incidents')
          ? { measured_since: new Date().toISOString(), regions: [], incidents: [] }
          : { status, regions: [], as_of: new Date().toISOString() },
      }))
      expect((await behind.browser().open('/status')).data('status')).toEqual([status])
    }
    // Too many requests from one network say nothing about the service, but leave it unknown.
    double.respondWith(() => ({ status: 429, body: { error: { code: 'rate_limited', message: 'Too many.' } } }))
    expect((await behind.browser().open('/status')).data('status')).toEqual(['unavailable'])
  })
})
