import { expect, test } from 'vitest'
import { startApiAndSite } from '../support/site.ts'

const { api, site } = await startApiAndSite()

test('a person who signs in comes to the page they wanted', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  const login = await browser.open('/login?next=/account')
  expect(login.heading).toBe('Sign in')
  const page = await browser.submit(login, '/login', { email: user.email, password: user.password })
  expect(page.path).toBe('/account')
  expect(browser.cookies.attributesOf('svc_session')).toBe('Path=/; Max-Age=2592000; HttpOnly; Secure; SameSite=Strict')
})

test('somebody who comes from another site is still signed in', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  const page = await browser.open('/login?next=/account', { from: 'cross-site' })
  expect(page.visited).toEqual(['GET /login?next=/account', 'GET /login?next=/account', 'GET /account'])
})
