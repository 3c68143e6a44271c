import { expect, test } from 'vitest'
import { type GivenUser, startApi } from '../../support/api.ts'
import { highLimits } from '../../support/environment.ts'
import { eventually, freeze, passageTo, type RelayUser, startService } from '../../support/relays.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'
import type { Browser } from '../../support/site-browser.ts'
import type { Page } from '../../support/site-page.ts'

const regions = JSON.stringify([
  { region: 'fra', display_name: 'Frankfurt', provider: 'local', default: true },
  { region: 'pdx', display_name: 'Oregon', provider: 'local', capacity: 0 },
])
const siteUrl = await freeSiteUrl()
const service = await startService({ variables: { SVC_SITE_URL: siteUrl, SVC_REGIONS: regions } })
const site = await startSite(service.api, { SVC_SITE_URL: siteUrl })

async function signedIn(user: GivenUser): Promise<Browser> {
  const browser = site.browser()
  const page = await browser.post('/login', { email: user.email, password: user.password })
  expect(page.path).toBe('/relays')
  return browser
}

/** Somebody with four relays to have, at a browser. */
async function streamer(plan?: { addons: number }): Promise<{ user: RelayUser; browser: Browser }> {
  const user = await service.user(plan)
  return { user, browser: await signedIn(user) }
}

async function startedRelay() {
  const { user, browser } = await streamer()
  const page = await browser.submit(await browser.open('/relays'), '/relays/start')
  expect(page.path).toBe('/relays')
  const { session } = await user.active()
  if (!session) throw new Error('nothing was started')
  return { user, browser, session, stopPath: `/relays/${session.session_id}/stop` }
}

/** Reads the page again until it says so. */
const pageThatSays = (browser: Browser, words: string): Promise<Page> =>
  eventually(
    () => browser.open('/relays'),
    (page) => page.text.includes(words),
  )

async function activeRelay() {
  const started = await startedRelay()
  await pageThatSays(started.browser, 'Ready')
  return started
}

test('a relay is started, awaited, connected to, stopped, kept on, and stopped at once', async () => {
  const { user, browser, stopPath } = await startedRelay()
  const ready = await pageThatSays(browser, 'Ready')
  expect(ready.text).toMatch(/default Ready .* Frankfurt .* Connect your software/)
  expect(ready.text).toContain('1 of 4 in use')

  const stopping = await browser.submit(ready, stopPath)
  expect(stopping.path).toBe('/relays')
  expect(stopping.text).toMatch(/default Stopping It still runs: 0:0\d left/)

  const goesOn = await browser.submit(stopping, '/relays/start', {}, { connection_id: 'default' })
  expect(goesOn.text).toContain('default Ready')

  await browser.submit(goesOn, stopPath)
  const gone = await browser.submit(await browser.open('/relays'), stopPath)
  expect(gone.text).toContain('You have no relay running.')
  expect((await user.active()).sessions).toEqual([])
})

test('while there is no relay yet the page says that one is being got', async () => {
  const slow = await startService({ variables: { SVC_SITE_URL: siteUrl }, worker: false })
  const slowSite = await startSite(slow.api, { SVC_SITE_URL: await freeSiteUrl() })
  const user = await slow.user()
  const browser = slowSite.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  const page = await browser.submit(await browser.open('/relays'), '/relays/start')
  expect(page.text).toContain('default Starting Getting a relay …')
  expect(page.text).toContain('Addresses come with the relay.')
})

test('a form that is sent twice starts one relay', async () => {
  const { user, browser } = await streamer()
  const form = await browser.open('/relays')
  const pages = await Promise.all([browser.submit(form, '/relays/start'), browser.submit(form, '/relays/start')])
  expect(pages.map((page) => [page.path, page.problem])).toEqual([
    ['/relays', undefined],
    ['/relays', undefined],
  ])
  expect((await user.active()).sessions).toHaveLength(1)
})

test('a form that is sent again after its relay was stopped starts nothing, and a fresh one takes its place', async () => {
  const { user, browser } = await streamer()
  const form = await browser.open('/relays')
  await browser.submit(form, '/relays/start')
  await user.stop({ connection_id: 'default', immediate: true })
  await eventually(user.active, ({ sessions }) => sessions.length === 0)

  const again = await browser.submit(form, '/relays/start')
  expect([again.status, again.problem]).toEqual([409, expect.stringContaining('This form was used before')])
  const other = await browser.submit(form, '/relays/start', { connection_id: 'other' })
  expect([other.status, other.problem]).toEqual([422, expect.stringContaining('This form was used before')])
  expect((await user.active()).sessions).toEqual([])

  await browser.submit(other, '/relays/start')
  expect((await user.active()).sessions).toMatchObject([{ connection_id: 'other' }])
})

test('a stop that is sent twice by a hasty finger is still a stop with its grace', async () => {
  const { user, browser, stopPath } = await activeRelay()
  await browser.post(stopPath, {})
  await browser.post(stopPath, {})
  expect((await user.active()).session).toMatchObject({ state: 'grace', reason: 'stop_requested' })
})

test('nobody stops the relay of another', async () => {
  const { user, stopPath } = await activeRelay()
  const { browser } = await streamer()
  const page = await browser.post(stopPath, { at_once: 'yes' })
  expect([page.status, page.problem]).toEqual([404, 'You have no such relay. It may be stopped already.'])
  const nonsense = await browser.post('/relays/nonsense/stop', {})
  expect([nonsense.status, nonsense.problem]).toEqual([404, 'You have no such relay.'])
  expect((await user.active()).session).toMatchObject({ state: 'active' })
})

test('who is not signed in is led to the login page, and starts and stops nothing', async () => {
  const { user, stopPath } = await activeRelay()
  const stranger = site.browser()
  expect((await stranger.open('/relays')).path).toBe('/login?next=%2Frelays')
  for (const path of ['/relays/start', stopPath]) {
    const page = await stranger.post(path, { at_once: 'yes' })
    expect(page.heading).toBe('Sign in')
    expect(page.path).toMatch(/^\/login/)
  }
  expect((await user.active()).session).toMatchObject({ state: 'active' })
})

test('a form of another site stops nothing', async () => {
  const { user, browser, stopPath } = await activeRelay()
  expect((await browser.post(stopPath, { at_once: 'yes' }, { from: 'cross-site' })).status).toBe(403)
  expect((await user.active()).session).toMatchObject({ state: 'active' })
})

test('whatever lets somebody reach the relay or stream to it is within closed details, and nowhere else', async () => {
  const { user, browser } = await activeRelay()
  const { connect } = (await user.active()).session ?? {}
  const { html } = await browser.open('/relays')
  const { hostname, port, search } = new URL(connect?.srtla_url ?? '')
  const token = search.split('/').at(-1) ?? ''
  const secrets = [
    hostname,
    token,
    port,
    new URL(connect?.player_url ?? '').port,
    new URL(connect?.stats_url ?? '').port,
  ]
  expect(token).toMatch(/^\w{8}$/)

  const blocks = [...html.matchAll(/<details data-secret="true">.*?<\/details>/gs)].map(([block]) => block)
  expect(blocks).toHaveLength(11)
  for (const secret of [connect?.srt_url, connect?.stats_url, `streamid=play/live/${token}`])
    expect(blocks.join('').replaceAll('&amp;', '&')).toContain(secret)
  const outside = blocks.reduce((rest, block) => rest.replace(block, ''), html)
  expect(secrets.filter((secret) => outside.includes(secret))).toEqual([])
  expect(html).not.toMatch(/<details[^>]*\bopen\b/)
  // Not what a screen reader reads of a closed block, nor what a pointer that rests on it shows.
  const spoken = [
    ...html.matchAll(/(?:<summary>(.*?)<\/summary>|<title>(.*?)<\/title>|(?:title|aria-label)="(.*?)")/gs),
  ]
  expect(secrets.filter((secret) => spoken.some(([text]) => text.includes(secret)))).toEqual([])
})

test('a relay that falls silent is shown as lost, with the time that is left for it', async () => {
  const { browser, session } = await activeRelay()
  for (const pid of service.relaysOf(session.session_id)) freeze(pid)
  const page = await pageThatSays(browser, 'Lost contact')
  expect(page.text).toMatch(/It may come back: 0:0\d left/)
})

test('a refusal says in plain words what to do, and keeps what was filled in', async () => {
  const { browser } = await streamer()
  const form = await browser.open('/relays')
  expect(form.html).toContain('<option value="pdx" disabled>Oregon (full)</option>')
  const full = await browser.submit(form, '/relays/start', { connection_id: 'camera', region: 'pdx' })
  expect([full.status, full.problem]).toEqual([503, expect.stringContaining('Choose another one')])
  expect(full.form('/relays/start').fields).toMatchObject({ connection_id: 'camera' })
  const named = await browser.submit(full, '/relays/start', { connection_id: '<b>camera</b>' })
  expect([named.status, named.problem]).toEqual([400, expect.stringContaining('letters, digits, dots')])
  expect(named.html).toContain('value="&lt;b>camera&lt;/b>"')
})

test('who has all relays of the plan in use is told to stop one', async () => {
  const { user, browser } = await streamer({ addons: 0 })
  const form = await browser.open('/relays')
  await user.start({ connection_id: 'plugin' })
  const refused = await browser.submit(form, '/relays/start')
  expect([refused.status, refused.problem]).toEqual([403, expect.stringContaining('Stop one to start another')])
  expect(refused.text).toContain('1 of 1 in use')
  expect(() => refused.form('/relays/start')).toThrow()
})

test('a plan without relays says so and shows no form', async () => {
  const browser = await signedIn(await service.api.given.user())
  const page = await browser.open('/relays')
  expect(page.text).toContain('Your plan has no managed relay.')
  expect(() => page.form('/relays/start')).toThrow()
})

test('who starts too often is told for how many seconds to wait', async () => {
  const variables = { SVC_SITE_URL: siteUrl, SVC_RATE_LIMITS: highLimits({ relay_start: 1 }) }
  const strict = await startService({ variables, worker: false })
  const strictSite = await startSite(strict.api, { SVC_SITE_URL: await freeSiteUrl() })
  const user = await strict.user()
  const browser = strictSite.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  await browser.submit(await browser.open('/relays'), '/relays/start')
  const page = await browser.post('/relays/start', {
    connection_id: 'second',
    idempotency_key: '0b29c4f0-8ad0-4c1e-9a53-0d5b5dbd2f4e',
  })
  expect([page.status, page.problem]).toEqual([429, expect.stringMatching(/Wait [1-9]\d? seconds?, then try again\./)])
})

test('while the database is away the pages say so, and are there again when it is', async () => {
  const passage = await passageTo((await startApi()).services.config.database.url)
  const api = await startApi({ DATABASE_URL: passage.url })
  const user = await api.given.user()
  const browser = (await startSite(api)).browser()
  browser.cookies.set('svc_session', user.bearer)
  await passage.block()
  const relays = await browser.open('/relays')
  expect([relays.status, relays.problem]).toEqual([503, expect.stringContaining('not available for a moment')])
  const account = await browser.open('/account')
  expect([account.status, account.heading]).toEqual([503, 'One moment, please'])
  await passage.open()
  const back = await eventually(
    () => browser.open('/relays'),
    ({ status }) => status === 200,
  )
  expect(back.text).toContain('You have no relay running.')
})
