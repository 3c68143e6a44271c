/** The checklist of an account's first hour, in a browser without scripts. */
import { expect, test } from 'vitest'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'
import type { Page } from '../../support/site-page.ts'
import { longRelayTimeouts } from '../../support/subscribers.ts'

const siteUrl = await freeSiteUrl()
const service = await startFakeRelayService({ variables: { ...longRelayTimeouts, SVC_SITE_URL: siteUrl } })
const site = await startSite(service.api, { SVC_SITE_URL: siteUrl })

/** A signed-in account with a plan, and its relays page. */
async function newStreamer() {
  const [user, browser] = [await service.user(), site.browser()]
  return { user, browser, page: await browser.post('/login', { email: user.email, password: user.password }) }
}

/** The steps of the checklist that are done. */
const doneOn = (page: Page) => page.data('step').filter((_, index) => page.data('done')[index] === 'true')

test('the first steps of an account are listed with what comes next, until all are done', async () => {
  const { user, browser, page: none } = await newStreamer()
  expect([none.data('step'), doneOn(none)]).toEqual([['address', 'plan', 'relay', 'phone', 'obs'], ['plan']])
  expect(none.hasForm('/account/verification')).toBe(true)
  expect(none.links).toEqual(expect.arrayContaining(['#start', '#connect-obs']))

  const { session_id: id } = await service.startActiveRelay(user)
  const ready = await browser.open('/relays')
  expect(doneOn(ready)).toEqual(['plan', 'relay'])
  expect(ready.links).toEqual(expect.arrayContaining([`#kit-phone-${id}`, `#kit-obs-${id}`]))
  expect(ready.html).toContain(`id="kit-phone-${id}"`)
  expect(ready.html).toContain(`id="kit-obs-${id}"`)

  const stats = { publishing: true, bitrate_kbps: 4_000, links: 2, bytes_total: 1_000_000, players: 1 }
  await service.sendReport(id, { stats })
  expect(doneOn(await browser.open('/relays'))).toEqual(['plan', 'relay', 'phone', 'obs'])
  await service.api.sql`update users set email_verified_at = now() where id = ${user.userId}`
  expect((await browser.open('/relays')).data('step')).toEqual([])
  // A plan that ends later is not a first step.
  await service.api.sql`update users set plan_tier = 'free', addons = 0 where id = ${user.userId}`
  expect((await browser.open('/relays')).data('step')).toEqual([])
})

test('the first steps are hidden for the account that has hidden them, and for no other', async () => {
  const { browser, page: first } = await newStreamer()
  const hidden = await browser.submit(first, '/relays/hide-first-steps')
  expect([hidden.path, hidden.data('step'), hidden.notice]).toEqual(['/relays', [], 'email_unverified'])
  expect((await browser.open('/relays')).data('step')).toEqual([])
  const other = await service.user()
  const page = await browser.post('/login', { email: other.email, password: other.password })
  expect(page.data('step')).toHaveLength(5)
  await browser.post('/relays/hide-first-steps', { account_id: 'not an id' })
  expect((await browser.open('/relays')).data('step')).toHaveLength(5)
})
