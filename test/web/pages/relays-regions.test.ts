/** Regions, the longest duration and failed starts on the pages of the site, in a browser without scripts. */
import { beforeEach, expect, test } from 'vitest'
import type { Region } from '../../../web/api-replies.ts'
import { pingOriginsOf } from '../../../web/pages/relays-regions.tsx'
import { writeActive, writeAge, writeProvisionFailed } from '../../support/relay-rows.ts'
import { eventually, startService } from '../../support/relays.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'
import type { Browser } from '../../support/site-browser.ts'

const regions = JSON.stringify([
  { region: 'fra', display_name: 'Frankfurt', provider: 'local', default: true },
  { region: 'pdx', display_name: 'Oregon', provider: 'local', capacity: 40 },
])
const siteUrl = await freeSiteUrl()
const service = await startService({ worker: false, variables: { SVC_SITE_URL: siteUrl, SVC_REGIONS: regions } })
const site = await startSite(service.api, { SVC_SITE_URL: siteUrl })
const { sql } = service.api

beforeEach(() => sql`delete from regions`)

async function newStreamer() {
  const user = await service.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  return { user, browser }
}

const choices = (html: string) =>
  [...html.matchAll(/<input type="radio" name="region" value="([\w-]+)"( checked)?( disabled)?/g)].map(([, ...found]) =>
    found.filter(Boolean).join(''),
  )

test('the form offers any region with free places at first, and shows which regions are full', async () => {
  const { user, browser } = await newStreamer()
  const page = await browser.open('/relays')
  expect(choices(page.html)).toEqual(['auto checked', 'fra', 'pdx'])
  expect(page.data('capacity')).toEqual(['available', 'available'])
  await sql`insert into regions (region, drained_at) values ('fra', now())`
  const drained = await eventually(
    () => browser.open('/relays'),
    ({ html }) => choices(html).includes('fra disabled'),
  )
  expect(drained.data('capacity')).toEqual(['full', 'available'])
  const started = await browser.submit(drained, '/relays/start')
  expect(started.problem).toBeUndefined()
  expect((await user.active()).session?.region).toBe('pdx')
})

test('the page may connect to the ping addresses of its regions, and to no other host', async () => {
  const connectSources = async (browser: Browser, path: string) =>
    /connect-src ([^;]*)/.exec((await browser.open(path)).headers.get('content-security-policy') ?? '')?.[1]
  const { browser } = await newStreamer()
  expect(await connectSources(browser, '/relays')).toBe("'self'")

  const regionsWithPing = JSON.stringify([
    { region: 'fra', display_name: 'Frankfurt', provider: 'local', ping_url: 'https://fra.example.net/ping?a=1;b' },
    { region: 'pdx', display_name: 'Oregon', provider: 'local', ping_url: 'http://127.0.0.1:9/ping' },
  ])
  const other = await startService({ worker: false, variables: { SVC_REGIONS: regionsWithPing } })
  const otherSite = await startSite(other.api, { SVC_SITE_URL: await freeSiteUrl() })
  const user = await other.user()
  const otherBrowser = otherSite.browser()
  await otherBrowser.post('/login', { email: user.email, password: user.password })
  expect(await connectSources(otherBrowser, '/relays')).toBe("'self' https://fra.example.net http://127.0.0.1:9")
  expect(await connectSources(otherBrowser, '/history')).toBe("'self'")
})

test('a site with TLS allows no connections without it', () => {
  const regions = [{ ping_url: 'https://fra.example.net/ping' }, { ping_url: 'http://10.0.0.1/ping' }] as Region[]
  expect(pingOriginsOf(regions, 'https://relays.example.com')).toEqual(['https://fra.example.net'])
})

test('a start in a region that was drained meanwhile is refused with what to do', async () => {
  const { browser } = await newStreamer()
  const form = await browser.open('/relays')
  await sql`insert into regions (region, drained_at) values ('pdx', now())`
  const refused = await browser.submit(form, '/relays/start', { region: 'pdx' })
  expect([refused.status, refused.problem]).toEqual([503, 'capacity_exhausted'])
  expect(refused.text).toContain('This region takes no new relays right now. Choose another region')
})

test('a relay has a warning from an hour before it may end as idle, with both times and what to do', async () => {
  const { user, browser } = await newStreamer()
  const { session_id } = (await user.start()).body.session
  await writeActive(sql, session_id)
  const age = 15 * 3600
  await writeAge(sql, session_id, age - 60)
  expect((await browser.open('/relays')).data('ending-soon')).toEqual([])
  await writeAge(sql, session_id, age + 1)
  const page = await browser.open('/relays')
  const { ends_at, idle_ends_at } = (await user.active()).session ?? {}
  expect(page.data('ending-soon')).toEqual([ends_at])
  expect(page.text).toContain('This relay may end soon.')
  expect(page.text).toContain(`${ends_at?.slice(11, 16)} UTC`)
  // With its date, if it is another day.
  expect(page.text).toMatch(
    new RegExp(`From (\\d+ \\w+ \\d+, )?${idle_ends_at?.slice(11, 16)} UTC on it ends when no video has come in`),
  )
  expect(page.text).toContain('Your stream token stays the same')
})

test('the history says why a relay could not be created, and what to do', async () => {
  const { user, browser } = await newStreamer()
  const { session_id } = (await user.start()).body.session
  await writeProvisionFailed(sql, session_id, 'capacity')
  for (const path of ['/history', `/history/${session_id}`])
    expect((await browser.open(path)).text).toContain(
      'It could not be started. The provider had no free machine in its region. Try again in a few minutes',
    )
})
