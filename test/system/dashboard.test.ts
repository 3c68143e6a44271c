/** The relays page and the account page with a real browser: what they do by themselves, and what they keep from viewers. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { eventually, paperRelays, type RelayUser, startService } from '../support/relays.ts'
import { freeSiteUrl, startSite } from '../support/site.ts'
import { expectUsable, type Visitor, visitor } from './browser.ts'

const relaySecret = 'a secret between relays and this test'
const paper = paperRelays()
const siteUrl = await freeSiteUrl()
const { api, user: newUser } = await startService({
  around: paper.around,
  variables: {
    SVC_SITE_URL: siteUrl,
    SVC_RELAY_AUTH_SECRET: relaySecret,
    // Relays of paper report once, and then are believed to run.
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '600',
    SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '300',
    SVC_RELAY_STOP_GRACE_SECONDS: '30',
  },
})
const site = await startSite(api, { SVC_SITE_URL: siteUrl })

interface Streamer extends Visitor {
  readonly user: RelayUser
}

type Look = Parameters<typeof visitor>[0]

/** Somebody with four relays to have, at the relays page. */
async function streamer(look: Look = {}, plan?: { addons: number }): Promise<Streamer> {
  const [user, person] = [await newUser(plan), await visitor(look)]
  const { page } = person
  await page.goto(`${site.url}/login`)
  await page.getByLabel('Email address').fill(user.email)
  await page.getByLabel('Password', { exact: true }).fill(user.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.waitForURL(`${site.url}/relays`)
  return { ...person, user }
}

const state = (page: Page) => page.locator('[data-state]')
const news = (page: Page) => page.locator('[data-news]')

async function start(page: Page, name = 'default'): Promise<void> {
  await page.getByLabel('Name').fill(name)
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByRole('article', { name }).waitFor()
}

/** The relay is there and says so. */
async function report(user: RelayUser): Promise<void> {
  const { session } = await user.active()
  const sessionId = session?.session_id ?? ''
  const report = { session_id: sessionId, instance_id: paper.instanceOf(sessionId) }
  await eventually(
    () => api.post('/relay/health', report, { headers: { 'X-Relay-Auth': relaySecret } }),
    ({ status }) => status === 200,
  )
}

/** Somebody in front of a relay that is ready, with the page as it then comes. */
async function readyRelay(look?: Look): Promise<Streamer & { readonly token: string }> {
  const person = await streamer(look)
  const { page, user } = person
  await start(page)
  await report(user)
  await eventually(user.active, ({ session }) => session?.state === 'active')
  await page.reload()
  const { connect } = (await user.active()).session ?? {}
  return { ...person, token: connect?.srt_url.split('/').at(-1) ?? '' }
}

async function openKit(page: Page, software: string): Promise<void> {
  await page.getByText('Connect your software').click()
  await page.locator('.software > summary', { hasText: software }).click()
}

/** As when another tab is brought to the front. */
const hide = (page: Page, hidden: boolean) =>
  page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, value: ${hidden} })
    document.dispatchEvent(new Event('visibilitychange'))`)

const seen = async (page: Page) => (await page.evaluate('document.body.innerText')) as string

test('a relay becomes ready before one’s eyes: nothing reloads, nothing moves, and the focus stays', async () => {
  const { page, user, faults } = await streamer({ device: 'phone' })
  await start(page)
  expect(await state(page).textContent()).toBe('Starting')
  await page.evaluate('window.isStillThis = true')
  await page.getByRole('button', { name: 'Stop default' }).focus()
  const before = await page.getByRole('heading', { name: 'Start a relay' }).boundingBox()

  await report(user)
  await expect.poll(() => state(page).textContent(), { timeout: 15_000 }).toBe('Ready')
  expect(await news(page).textContent()).toBe('“default”: Ready')
  expect(await page.evaluate('[window.isStillThis, document.activeElement.textContent]')).toEqual([
    true,
    'Stop default',
  ])
  expect(await page.getByRole('heading', { name: 'Start a relay' }).boundingBox()).toEqual(before)
  await page.getByText('Connect your software').waitFor()
  expect(faults).toEqual([])
})

test('two taps on Start start one relay', async () => {
  const { page, user } = await streamer()
  await page.getByRole('button', { name: 'Start', exact: true }).dblclick()
  await page.getByRole('article', { name: 'default' }).waitFor()
  expect((await user.active()).sessions).toHaveLength(1)
})

test('a stop counts down, is taken back, and happens at once when that is asked for', async () => {
  const { page, user } = await readyRelay()
  await page.getByRole('button', { name: 'Stop default' }).dblclick()
  await page.getByRole('button', { name: 'Stop now' }).waitFor()
  expect(await state(page).textContent()).toBe('Stopping')
  const left = async () => Number((await page.getByRole('timer').textContent())?.split(':').at(-1))
  const first = await left()
  expect(first).toBeGreaterThan(20)
  await expect.poll(left, { timeout: 5000 }).toBeLessThan(first)

  await page.getByRole('button', { name: 'Go on with default' }).click()
  await expect.poll(() => state(page).textContent()).toBe('Ready')
  await page.getByRole('button', { name: 'Stop default' }).click()
  await page.getByRole('button', { name: 'Stop now' }).click()
  await page.getByText('You have no relay running.').waitFor()
  expect((await user.active()).sessions).toEqual([])
})

test('a relay that is stopped elsewhere goes from the page, and the focus that it had is not lost', async () => {
  const { page, user } = await readyRelay()
  await page.clock.install()
  await page.reload()
  await page.getByRole('button', { name: 'Stop default' }).focus()
  await user.stop({ connection_id: 'default', immediate: true })
  await eventually(user.active, ({ sessions }) => sessions.length === 0)
  await page.clock.runFor(10_000)
  await page.getByText('You have no relay running.').waitFor()
  expect(await news(page).textContent()).toBe('“default” has stopped.')
  expect(await page.evaluate('document.activeElement.id')).toBe('relays')
})

test('a button that is no longer there leaves the focus at the heading above it', async () => {
  const { page, user } = await streamer()
  const focus = () => page.evaluate('document.activeElement.textContent')
  await page.clock.install()
  await page.reload()
  await page.getByRole('button', { name: 'Start', exact: true }).focus()
  await user.start()
  await page.clock.runFor(4000)
  await expect.poll(focus).toBe('Start a relay')

  await report(user)
  await eventually(user.active, ({ session }) => session?.state === 'active')
  await page.getByRole('button', { name: 'Stop default' }).click()
  await page.getByRole('button', { name: 'Go on with default' }).focus()
  await user.start()
  await page.clock.runFor(4000)
  await expect.poll(focus).toBe('default')
})

test('an address is copied without being shown', async () => {
  const { page, context, token, faults } = await readyRelay({ device: 'phone' })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: site.url })
  await openKit(page, 'BELABOX')
  await page.getByRole('button', { name: 'Copy Stream id' }).click()
  await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(`publish/live/${token}`)
  expect(await news(page).textContent()).toBe('Copied Stream id')
  await page.locator('.software > summary', { hasText: 'Moblin' }).click()
  await page.getByRole('button', { name: 'Copy link for Moblin' }).click()
  await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toMatch(/^moblin:\/\/\?%7B.*/)
  expect(await seen(page)).not.toContain(token)
  expect(faults).toEqual([])
})

test('what is shown hides itself after a minute, and at once when the page is left', async () => {
  const { page, token } = await readyRelay()
  await page.clock.install()
  await page.reload()
  await openKit(page, 'BELABOX')
  const show = page.locator('summary', { hasText: 'Stream id' })
  await show.click()
  expect(await seen(page)).toContain(token)
  await page.clock.runFor(58_000)
  expect(await seen(page)).toContain(token)
  await page.clock.runFor(3000)
  expect(await seen(page)).not.toContain(token)

  await show.click()
  expect(await seen(page)).toContain(token)
  await hide(page, true)
  expect(await seen(page)).not.toContain(token)
})

test('one tap hands the settings to the app on this phone, and shows nothing of them', async () => {
  const { page, context, user, token } = await readyRelay({ device: 'phone' })
  const browser = await context.newCDPSession(page)
  await browser.send('Page.enable')
  const wanted: string[] = []
  browser.on('Page.frameRequestedNavigation', ({ url }) => void wanted.push(url))
  await openKit(page, 'Moblin')
  await page.getByRole('button', { name: 'Open in Moblin' }).click()
  await expect.poll(() => wanted).toHaveLength(1)
  const { streams } = JSON.parse(decodeURIComponent(wanted[0]?.split('?').slice(1).join('?') ?? ''))
  expect(streams).toMatchObject([{ url: (await user.active()).session?.connect?.srtla_url }])
  expect(await seen(page)).not.toContain(token)
})

test('what somebody is reading stays where it is while the relay changes', async () => {
  const { page, user, token } = await readyRelay()
  await page.clock.install()
  await page.reload()
  await openKit(page, 'OBS')
  await page.locator('summary', { hasText: 'Show Input' }).click()
  await user.stop({ connection_id: 'default' })
  await eventually(user.active, ({ session }) => session?.state === 'grace')
  await page.clock.runFor(10_000)
  await expect.poll(() => state(page).textContent()).toBe('Stopping')
  expect(await seen(page)).toContain(`streamid=play/live/${token}&latency=2000000`)
})

test('nothing that a viewer could see, or hear read out, has a secret in it until it is shown', async () => {
  const { page, token } = await readyRelay()
  await page.getByText('Connect your software').click()
  for (const software of await page.locator('.software > summary').all()) await software.click()
  await expect.poll(() => page.locator('[data-copy]:visible').count()).toBe(11)
  expect(await seen(page)).not.toContain(token)
  expect(await page.locator('main').ariaSnapshot()).not.toContain(token)
  expect(await page.title()).not.toContain(token)
})

test('who looks elsewhere is not kept up to date, and is at once when they come back', async () => {
  const { page, user } = await streamer()
  await page.clock.install()
  await page.reload()
  const asked: string[] = []
  page.on('request', (request) => {
    if (request.resourceType() === 'fetch') asked.push(new URL(request.url()).pathname)
  })
  await hide(page, true)
  await page.clock.runFor(120_000)
  expect(asked).toEqual([])
  await user.start()
  await hide(page, false)
  await page.getByRole('article', { name: 'default' }).waitFor()
  expect(asked).toEqual(['/api/v1/relay/active', '/relays'])
})

test('a page that is told to wait does so, and says since when it is not up to date', async () => {
  const { page } = await streamer()
  await page.clock.install()
  await page.reload()
  let asked = 0
  await page.route('**/api/v1/relay/active*', async (route) => {
    asked += 1
    await route.fulfill({ status: 429, headers: { 'Retry-After': '40' } })
  })
  await page.clock.runFor(3500)
  await page.getByText(/^Not up to date since \d\d:\d\d:\d\d\.$/).waitFor()
  await page.clock.runFor(38_000)
  expect(asked).toBe(1)
  await page.unroute('**/api/v1/relay/active*')
  await page.clock.runFor(3000)
  await expect.poll(() => page.locator('[data-freshness]').textContent()).toBe('')
})

test('an access token that is over is renewed behind the page, and a sign-in that is over leads to the login', async () => {
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

test('a renewal that the service cannot do just now is tried again, and the page stays', async () => {
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

test('a question that is never answered is given up and asked again', async () => {
  const { page, user } = await streamer()
  await page.clock.install()
  await page.reload()
  // A phone that changed its network waits for what was sent over the old one.
  await page.route('**/api/v1/relay/active*', () => {}, { times: 1 })
  await page.clock.runFor(3500)
  await page.clock.runFor(46_000)
  await page.getByText(/^Not up to date since/).waitFor()
  await user.start()
  await page.clock.runFor(4000)
  await page.getByRole('article', { name: 'default' }).waitFor()
})

test('a sign-in that is over behind a refused form leads to the login, and sends the form no second time', async () => {
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

test('without script relays are started, looked after, connected to and stopped all the same', async () => {
  const { page, user, token } = await readyRelay({ device: 'phone', script: false })
  await openKit(page, 'BELABOX')
  expect(await page.locator('.scripted:visible').count()).toBe(0)
  await page.locator('summary', { hasText: 'Stream id' }).click()
  await page.getByText(`publish/live/${token}`, { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Stop default' }).click()
  await page.getByRole('button', { name: 'Stop now' }).click()
  await page.getByRole('link', { name: 'Refresh' }).click()
  await page.getByText('You have no relay running.').waitFor()
  expect((await user.active()).sessions).toEqual([])
})

test('another sign-in is ended from the account page', async () => {
  const { page, user } = await streamer({ device: 'phone' })
  const plugin = await api.given.signIn(user, 'OBS at home')
  await page.getByRole('link', { name: 'Account' }).click()
  await page.getByRole('button', { name: 'Sign out OBS at home' }).click()
  await page.getByText('Signed out there.').waitFor()
  expect((await api.get('/auth/session', { bearer: plugin.bearer })).status).toBe(401)
})

const pages: Readonly<Record<string, () => Promise<Visitor>>> = {
  'relays-none': () => streamer({ device: 'phone' }),
  'relays-no-plan': async () => {
    const person = await streamer({ device: 'phone' })
    await api.sql`update users set plan_tier = 'free', addons = 0 where id = ${person.user.userId}`
    await person.page.reload()
    return person
  },
  'relays-awaited': async () => {
    const person = await streamer({ device: 'phone' })
    await start(person.page)
    return person
  },
  'relays-long-name': async () => {
    const person = await streamer({ device: 'phone' })
    await start(person.page, 'w'.repeat(64))
    await report(person.user)
    await expect.poll(() => news(person.page).textContent(), { timeout: 15_000 }).toMatch(/^“w{64}”: Ready$/)
    return person
  },
  'relays-ready': () => readyRelay({ device: 'phone' }),
  'relays-kit': async () => {
    const person = await readyRelay({ device: 'phone' })
    const { page } = person
    await page.getByText('Connect your software').click()
    for (const summary of await page.locator('.software > summary').all()) await summary.click()
    for (const summary of await page.locator('[data-secret] > summary').all()) await summary.click()
    return person
  },
  'relays-stopping': async () => {
    const person = await readyRelay({ device: 'phone' })
    await person.page.getByRole('button', { name: 'Stop default' }).click()
    await person.page.getByRole('button', { name: 'Stop now' }).waitFor()
    return person
  },
  'relays-refused': async () => {
    const person = await streamer({ device: 'phone' }, { addons: 0 })
    await person.user.start({ connection_id: 'plugin' })
    await person.page.getByRole('button', { name: 'Start', exact: true }).click()
    await person.page.getByRole('alert').waitFor()
    return person
  },
  account: async () => {
    const person = await streamer({ device: 'phone' })
    const { userId } = person.user
    await api.given.signIn(person.user, 'OBS at home, on the big machine under the desk')
    await api.sql`insert into user_oauth_accounts (user_id, provider, provider_user_id) values (${userId}, 'twitch', ${userId})`
    await person.page.goto(`${site.url}/account?done=linked`)
    return person
  },
}

test.for(Object.keys(pages))('everybody can read and use the page: %s', async (name) => {
  const person = await pages[name]?.()
  if (!person) throw new Error(`there is no page ${name}`)
  await expectUsable(person, name)
})
