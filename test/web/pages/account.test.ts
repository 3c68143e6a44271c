/** The account page: plan and relay time, in a browser without scripts. */
import { expect, test } from 'vitest'
import { givePlan } from '../../support/api.ts'
import { startApiAndSite } from '../../support/site.ts'

const { api, site } = await startApiAndSite()

test('the account page shows plan and relay time', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  browser.cookies.set('svc_session', user.bearer)
  const free = await browser.open('/account')
  expect([free.data('plan-tier'), free.data('plan-status'), free.data('relays-in-use')]).toEqual([
    ['free'],
    ['none'],
    ['0/0'],
  ])
  expect([free.data('included-seconds'), free.data('consumed-seconds')]).toEqual([['0'], ['0']])

  await givePlan(api.sql, user.userId, 1)
  const paid = await browser.open('/account')
  expect([paid.data('plan-tier'), paid.data('plan-status'), paid.data('relays-in-use')]).toEqual([
    ['paid'],
    ['active'],
    ['0/2'],
  ])
  expect(paid.data('included-seconds')).toEqual([String(400 * 3600)])
  expect(paid.text).toContain('400 h')
})

test('an unknown `done` parameter shows no notice', async () => {
  const { bearer } = await api.given.user()
  const browser = site.browser()
  browser.cookies.set('svc_session', bearer)
  expect((await browser.open('/account?done=bought')).notice).toBe('bought')
  for (const other of ['Your%20account%20is%20blocked', 'constructor', '__proto__', 'toString'])
    expect((await browser.open(`/account?done=${other}`)).notice).toBeUndefined()
})
