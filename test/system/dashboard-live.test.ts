/** Updates of the relays page while the network, the service or the sign-in fails. */
import { expect, test } from 'vitest'
import { hide, startDashboard } from './streamers.ts'

const { api, streamer } = await startDashboard()

test('a hidden page does not poll, and updates as soon as it is visible again', async () => {
  const { page, user } = await streamer()
  await page.clock.install()
  await page.reload()
  const requested: string[] = []
  page.on('request', (request) => {
    if (request.resourceType() === 'fetch') requested.push(new URL(request.url()).pathname)
  })
  await hide(page, true)
  await page.clock.runFor(120_000)
  expect(requested).toEqual([])
  await user.start()
  await hide(page, false)
  await page.getByRole('article', { name: 'default' }).waitFor()
  expect(requested).toEqual(['/api/v1/relay/active', '/relays'])
})

test('after a 429 response the page waits for Retry-After, and shows since when it is out of date', async () => {
  const { page } = await streamer()
  await page.clock.install()
  await page.reload()
  let requested = 0
  await page.route('**/api/v1/relay/active*', async (route) => {
    requested += 1
    await route.fulfill({ status: 429, headers: { 'Retry-After': '40' } })
  })
  await page.clock.runFor(3500)
  await page.getByText(/^Not up to date since \d\d:\d\d:\d\d\.$/).waitFor()
  await page.clock.runFor(38_000)
  expect(requested).toBe(1)
  await page.unroute('**/api/v1/relay/active*')
  await page.clock.runFor(3000)
  await expect.poll(() => page.locator('[data-freshness]').textContent()).toBe('')
})

test('an expired access token is renewed in the background, and an ended sign-in leads to the login page', async () => {
  const { page, user, faults } = await streamer()
  await page.clock.install()
  await page.reload()
  const renewed = page.waitForResponse('**/api/v1/auth/refresh')
  await page.route('**/api/v1/relay/active*', (route) => route.fulfill({ status: 401 }), { times: 1 })
  await page.evaluate('window.isStillThis = true')
  await page.clock.runFor(3500)
  expect((await renewed).status()).toBe(200)
  await user.start()
  await page.clock.runFor(11_000)
  await page.getByRole('article', { name: 'default' }).waitFor()
  expect(await page.evaluate('window.isStillThis')).toBe(true)

  await api.sql`update auth_sessions set revoked_at = now(), revoked_for = 'revoked' where user_id = ${user.userId}`
  await page.clock.runFor(11_000)
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(new URL(page.url()).searchParams.get('next')).toBe('/relays')
  expect(faults).toEqual([])
})

test('a renewal that fails temporarily is retried, and the page stays', async () => {
  const { page, user } = await streamer()
  await page.clock.install()
  await page.reload()
  await page.evaluate('window.isStillThis = true')
  await page.route('**/api/v1/relay/active*', (route) => route.fulfill({ status: 401 }), { times: 2 })
  await page.route('**/api/v1/auth/refresh', (route) => route.fulfill({ status: 503 }), { times: 1 })
  await page.clock.runFor(3500)
  await page.getByText(/^Not up to date since/).waitFor()
  await user.start()
  const renewed = page.waitForResponse('**/api/v1/auth/refresh')
  await page.clock.runFor(3500)
  expect((await renewed).status()).toBe(200)
  await page.clock.runFor(11_000)
  await page.getByRole('article', { name: 'default' }).waitFor()
  expect(await page.evaluate('window.isStillThis')).toBe(true)
})

test('a request without a response times out and is sent again', async () => {
  const { page, user } = await streamer()
  await page.clock.install()
  await page.reload()
  // After a change of network a phone never gets the responses of the old connection.
  await page.route('**/api/v1/relay/active*', () => {}, { times: 1 })
  await page.clock.runFor(3500)
  await page.clock.runFor(46_000)
  await page.getByText(/^Not up to date since/).waitFor()
  await user.start()
  await page.clock.runFor(4000)
  await page.getByRole('article', { name: 'default' }).waitFor()
})

test('a form that is refused because the sign-in has ended leads to the login page and is not sent again', async () => {
  const { page, user } = await streamer({}, { addons: 0 })
  await user.start({ connection_id: 'plugin' })
  await page.clock.install()
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByRole('alert').waitFor()
  const sent: string[] = []
  page.on('request', (request) => {
    if (request.isNavigationRequest()) sent.push(`${request.method()} ${new URL(request.url()).pathname}`)
  })
  await api.sql`update auth_sessions set revoked_at = now(), revoked_for = 'revoked' where user_id = ${user.userId}`
  await page.clock.runFor(11_000)
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(sent.filter((one) => one.startsWith('POST'))).toEqual([])
  expect(new URL(page.url()).searchParams.get('next')).toBe('/relays')
})
