/** The free test time on the pages: what remains, and the next step. */
import { expect, test } from 'vitest'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { mailsTo } from '../../support/mails.ts'
import { eventually, type RelayUser } from '../../support/relays.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'
import type { Browser } from '../../support/site-browser.ts'
import { ageTrial, givenNewcomer, givenStranger } from '../../support/trials.ts'

const siteUrl = await freeSiteUrl()
const service = await startFakeRelayService({
  variables: {
    SVC_SITE_URL: siteUrl,
    SVC_TRIAL_SECONDS: '3600',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300',
  },
})
const { api } = service
const site = await startSite(api, { SVC_SITE_URL: siteUrl })

async function signedIn({ email, password }: RelayUser): Promise<Browser> {
  const browser = site.browser()
  expect((await browser.post('/login', { email, password })).path).toBe('/relays')
  return browser
}

test('an address without a link of ours gets it from the relays page, and starts a relay then', async () => {
  const user = await givenStranger(service)
  const browser = await signedIn(user)
  const page = await browser.open('/relays')
  expect([page.data('trial'), page.hasForm('/relays/start')]).toEqual([['address_unverified'], false])
  expect((await browser.submit(page, '/account/verification')).notice).toBe('verification_sent')
  const link = new URL(mailsTo(api, user.email).at(-1)?.link ?? '')
  await browser.submit(await browser.open(link.pathname + link.search), '/verify-email')

  const open = await browser.open('/relays')
  expect([open.data('trial'), open.data('trial-seconds')]).toEqual([['open'], ['3600']])
  expect(open.text).toContain('1 h of your 1 h of free test time left')
  await browser.submit(open, '/relays/start')
  expect((await user.active()).sessions).toHaveLength(1)
})

test('while its relay runs the page says what remains and offers a plan, without alerts of a cycle', async () => {
  const user = await givenNewcomer(service)
  await service.startActiveRelay(user)
  await ageTrial(api, user, 3000)
  const browser = await signedIn(user)
  const page = await browser.open('/relays')
  expect([page.data('trial'), page.data('blocked')]).toEqual([['open'], ['relay_limit_reached']])
  expect(page.text).toMatch(/(9|10) min of your 1 h of free test time left/)
  expect(page.links).toContain('/account#plan')
  expect(page.data('alert')).toEqual([])
  for (const path of ['/account', '/usage']) {
    const shown = await browser.open(path)
    expect([path, shown.data('trial'), shown.text.includes('Resets on')]).toEqual([path, ['open'], false])
  }
})

test('an ended trial leads to the plan, and its relay says in the history why it ended', async () => {
  const user = await givenNewcomer(service)
  const { session_id } = await service.startActiveRelay(user)
  await ageTrial(api, user, 3600)
  // The workflow asks the Time Bank again.
  await api.services.relaySessions.wake(session_id)
  await eventually(user.active, ({ sessions }) => sessions.length === 0)
  const browser = await signedIn(user)
  const page = await browser.open('/relays')
  expect([page.data('trial'), page.data('blocked')]).toEqual([['ended'], ['plan_required']])
  expect(page.links).toContain('/account#plan')
  expect((await browser.open(`/history/${session_id}`)).text).toContain('free test time of your account is used up')
})
