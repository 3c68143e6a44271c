/** Starting, watching and stopping relays, in a browser without scripts. */
import { expect, test } from 'vitest'
import { type GivenUser, startApi } from '../../support/api.ts'
import { highLimits } from '../../support/environment.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { eventually, passageTo, type RelayUser, startService } from '../../support/relays.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'
import type { Browser } from '../../support/site-browser.ts'
import type { Page } from '../../support/site-page.ts'

const regions = JSON.stringify([
  { region: 'fra', display_name: 'Frankfurt', provider: 'local', default: true },
  { region: 'pdx', display_name: 'Oregon', provider: 'local', capacity: 0 },
])
const siteUrl = await freeSiteUrl()
/** A relay keeps its state until a test changes it, and a form is submitted in time on any machine. */
const longTimes = {
  SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '300',
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300',
  SVC_RELAY_STOP_GRACE_SECONDS: '300',
}
const service = await startFakeRelayService({
  variables: { ...longTimes, SVC_SITE_URL: siteUrl, SVC_REGIONS: regions },
})
const site = await startSite(service.api, { SVC_SITE_URL: siteUrl, SVC_OBS_PROVIDER_ID: 'provider-of-these-tests' })

async function signedIn(user: GivenUser): Promise<Browser> {
  const browser = site.browser()
  const page = await browser.post('/login', { email: user.email, password: user.password })
  expect(page.path).toBe('/relays')
  return browser
}

/** A signed-in account with four relays, unless the plan says otherwise. */
async function newStreamer(plan?: { addons: number }): Promise<{ user: RelayUser; browser: Browser }> {
  const user = await service.user(plan)
  return { user, browser: await signedIn(user) }
}

async function startedRelay() {
  const { user, browser } = await newStreamer()
  const page = await browser.submit(await browser.open('/relays'), '/relays/start')
  expect(page.path).toBe('/relays')
  const { session } = await user.active()
  if (!session) throw new Error('no relay was started')
  return { user, browser, session, stopPath: `/relays/${session.session_id}/stop` }
}

/** State and reason of each relay on the page. */
const statesOn = (page: Page) =>
  page.data('relay-state').map((state, index) => `${state} ${page.data('relay-reason')[index]}`)

async function activeRelay() {
  const started = await startedRelay()
  const { user, browser, session } = started
  await eventually(user.active, ({ sessions }) => sessions[0]?.instance_id != null)
  await service.sendReport(session.session_id)
  const { sessions } = await eventually(user.active, ({ sessions }) => sessions[0]?.state === 'active')
  return { ...started, session: sessions[0] ?? session, page: await browser.open('/relays') }
}

test('a relay is started, stopped, kept running, and stopped at once', async () => {
  const { user, browser, stopPath, page: ready } = await activeRelay()
  expect(ready.text).toContain('Frankfurt')
  expect(ready.html).toMatch(/<details class="kit"/)
  expect(ready.text).toContain('1 of 4')

  const stopping = await browser.submit(ready, stopPath)
  expect([stopping.path, statesOn(stopping)]).toEqual(['/relays', ['grace stop_requested']])
  expect(stopping.html).toMatch(/data-seconds-left="(300|2\d\d)"/)

  const running = await browser.submit(stopping, '/relays/start', {}, { connection_id: 'default' })
  expect(running.data('relay-state')).toEqual(['active'])

  await browser.submit(running, stopPath)
  const stopped = await browser.submit(await browser.open('/relays'), stopPath)
  expect(stopped.data('session')).toEqual(['none'])
  expect((await user.active()).sessions).toEqual([])
})

test('a relay that is being provisioned has no addresses yet', async () => {
  const withoutWorker = await startService({ variables: { SVC_SITE_URL: siteUrl }, worker: false })
  const otherSite = await startSite(withoutWorker.api, { SVC_SITE_URL: await freeSiteUrl() })
  const user = await withoutWorker.user()
  const browser = otherSite.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  const page = await browser.submit(await browser.open('/relays'), '/relays/start')
  expect(page.data('relay-state')).toEqual(['provisioning'])
  expect(page.html).not.toMatch(/<details class="kit"/)
})

test('a form that is submitted twice starts one relay', async () => {
  const { user, browser } = await newStreamer()
  const form = await browser.open('/relays')
  const pages = await Promise.all([browser.submit(form, '/relays/start'), browser.submit(form, '/relays/start')])
  expect(pages.map((page) => [page.path, page.problem])).toEqual([
    ['/relays', undefined],
    ['/relays', undefined],
  ])
  expect((await user.active()).sessions).toHaveLength(1)
})

test('a form that is submitted again after its relay stopped starts nothing, and a new form does', async () => {
  const { user, browser } = await newStreamer()
  const form = await browser.open('/relays')
  await browser.submit(form, '/relays/start')
  await user.stop({ connection_id: 'default', immediate: true })
  await eventually(user.active, ({ sessions }) => sessions.length === 0)

  const again = await browser.submit(form, '/relays/start')
  expect([again.status, again.problem]).toEqual([409, 'form_already_used'])
  const other = await browser.submit(form, '/relays/start', { connection_id: 'other' })
  expect([other.status, other.problem]).toEqual([422, 'idempotency_key_reused'])
  expect((await user.active()).sessions).toEqual([])

  await browser.submit(other, '/relays/start', {}, { connection_id: 'other' })
  expect((await user.active()).sessions).toMatchObject([{ connection_id: 'other' }])
})

test('a stop that is submitted twice keeps its grace period', async () => {
  const { user, browser, stopPath } = await activeRelay()
  await browser.post(stopPath, {})
  await browser.post(stopPath, {})
  expect((await user.active()).session).toMatchObject({ state: 'grace', reason: 'stop_requested' })
})

test('the relay of another account cannot be stopped', async () => {
  const { user, stopPath } = await activeRelay()
  const { browser } = await newStreamer()
  const page = await browser.post(stopPath, { at_once: 'yes' })
  expect([page.status, page.problem]).toEqual([404, 'not_found'])
  const invalidId = await browser.post('/relays/nonsense/stop', {})
  expect([invalidId.status, invalidId.problem]).toEqual([404, 'not_found'])
  expect((await user.active()).session).toMatchObject({ state: 'active' })
})

test('without a sign-in the page and its forms redirect to the login page', async () => {
  const { user, stopPath } = await activeRelay()
  const anonymous = site.browser()
  expect((await anonymous.open('/relays')).path).toBe('/login?next=%2Frelays')
  for (const path of ['/relays/start', stopPath]) {
    const page = await anonymous.post(path, { at_once: 'yes' })
    expect(page.name).toBe('login')
    expect(page.path).toMatch(/^\/login/)
  }
  expect((await user.active()).session).toMatchObject({ state: 'active' })
})

test('a cross-origin form stops nothing', async () => {
  const { user, browser, stopPath } = await activeRelay()
  expect((await browser.post(stopPath, { at_once: 'yes' }, { from: 'cross-site' })).status).toBe(403)
  expect((await user.active()).session).toMatchObject({ state: 'active' })
})

test('addresses and secrets of a relay are inside closed details elements only', async () => {
  const { user, browser } = await activeRelay()
  const { connect } = (await user.active()).session ?? {}
  const { html } = await browser.open('/relays')
  const { hostname, port, search } = new URL(connect?.srtla_url ?? '')
  const token = search.split('/').at(-1) ?? ''
  const playKey = new URL(connect?.player_url ?? '').search.split('/').at(-1) ?? ''
  const secrets = [
    hostname,
    token,
    playKey,
    port,
    new URL(connect?.player_url ?? '').port,
    new URL(connect?.stats_url ?? '').port,
  ]
  expect(token).toMatch(/^\w{8}$/)
  expect(playKey).toMatch(/^[\w-]{22}$/)

  const blocks = [...html.matchAll(/<details data-secret="true">.*?<\/details>/gs)].map(([block]) => block)
  expect(blocks).toHaveLength(13)
  for (const secret of [connect?.srt_url, `${connect?.stats_url}/${playKey}`, `streamid=play/live/${playKey}`])
    expect(blocks.join('').replaceAll('&amp;', '&')).toContain(secret)
  // Random ids, the digest of the kit and the advised settings have the digits of a port now and then.
  const random =
    /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|data-version="[\da-f]{12}"|analyzeduration=\d+ probesize=\d+/g
  const outside = blocks.reduce((rest, block) => rest.replace(block, ''), html).replaceAll(random, '')
  expect(secrets.filter((secret) => outside.includes(secret))).toEqual([])
  expect(html).not.toMatch(/<details data-secret[^>]*\bopen\b/)
  // Accessible names and tooltips of closed elements.
  const names = [...html.matchAll(/(?:<summary>(.*?)<\/summary>|<title>(.*?)<\/title>|(?:title|aria-label)="(.*?)")/gs)]
  expect(secrets.filter((secret) => names.some(([text]) => text.includes(secret)))).toEqual([])
})

test('Connect OBS shows three ways without a relay, and a button for the input of each relay that runs', async () => {
  const { browser } = await newStreamer()
  const idle = await browser.open('/relays')
  expect(idle.data('way')).toEqual(['source', 'media-source', 'script'])
  expect(idle.html).toContain(`<code id="site-address">${site.url}</code>`)
  expect(idle.links).toEqual(
    expect.arrayContaining(['/downloads/relay-control.py', '/help/obs', '/help/scene-switching']),
  )
  expect(idle.text).toContain('Start one first')
  expect(idle.data('copy')).toEqual(['site-address'])

  const { page, session } = await activeRelay()
  expect(page.data('way')).toEqual(['source', 'media-source', 'script'])
  expect(page.text).not.toContain('Start one first')
  // In the connection kit, and again among the steps.
  expect(page.data('copy').filter((id) => id === `obs-${session.session_id}`)).toHaveLength(2)
})

test('Connect OBS offers nothing to sign in with where no app can be connected', async () => {
  const withoutApps = await startSite(service.api, { SVC_SITE_URL: await freeSiteUrl() })
  const { email, password } = await service.user()
  const page = await withoutApps.browser().post('/login', { email, password })
  expect(page.data('way')).toEqual(['media-source'])
  expect(page.links).not.toContain('/downloads/relay-control.py')
})

test('the addresses over IPv6 are offered where the relay has them, and are as secret as the others', async () => {
  const { user, browser, session } = await activeRelay()
  expect((await browser.open('/relays')).html).not.toContain('over IPv6')

  await service.api.sql`update relay_sessions set relay_host_v6 = '2001:db8:7::17' where id = ${session.session_id}`
  const { connect } = (await user.active()).session ?? {}
  const html = (await browser.open('/relays')).html.replaceAll('&amp;', '&')
  const blocks = [...html.matchAll(/<details data-secret="true">.*?<\/details>/gs)].map(([block]) => block)
  const shown = (label: string) => blocks.find((block) => block.includes(label))
  expect(shown('Stream with SRTLA over IPv6')).toContain(connect?.srtla_url_v6)
  expect(shown('Stream with SRT over IPv6')).toContain(connect?.srt_url_v6)
  expect(connect?.srt_url_v6).toContain('[2001:db8:7::17]')
  expect(blocks.reduce((rest, block) => rest.replace(block, ''), html)).not.toContain('2001:db8')
})

test('a relay without health reports is shown as lost, with a countdown', async () => {
  const { browser, session } = await activeRelay()
  await service.api.sql`
    update relay_sessions set state = 'grace', reason = 'health_lost', grace_ends_at = now() + interval '5 minutes'
    where id = ${session.session_id}`
  const page = await browser.open('/relays')
  expect(statesOn(page)).toEqual(['grace health_lost'])
  expect(page.html).toMatch(/data-seconds-left="(300|2\d\d)"/)
})

test('a refused start is reported, and the form keeps its values', async () => {
  const { browser } = await newStreamer()
  const form = await browser.open('/relays')
  expect(form.html).toMatch(/<label data-capacity="full"><input [^>]*value="pdx" disabled[^>]*>.*?Oregon/)
  const full = await browser.submit(form, '/relays/start', { connection_id: 'camera', region: 'pdx' })
  expect([full.status, full.problem]).toEqual([503, 'capacity_exhausted'])
  expect(full.form('/relays/start').fields).toMatchObject({ connection_id: 'camera' })
  const named = await browser.submit(full, '/relays/start', { connection_id: '<b>camera</b>' })
  expect([named.status, named.problem]).toEqual([400, 'invalid_request'])
  expect(named.html).toContain('value="&lt;b>camera&lt;/b>"')
})

test('a start is refused while all relays of the plan are in use', async () => {
  const { user, browser } = await newStreamer({ addons: 0 })
  const form = await browser.open('/relays')
  await user.start({ connection_id: 'plugin' })
  const refused = await browser.submit(form, '/relays/start')
  expect([refused.status, refused.problem]).toEqual([403, 'relay_limit_reached'])
  expect(refused.text).toContain('1 of 1')
  expect([refused.data('blocked'), refused.hasForm('/relays/start')]).toEqual([['relay_limit_reached'], false])
})

test('an account without a plan has no start form', async () => {
  const browser = await signedIn(await service.api.given.user())
  const page = await browser.open('/relays')
  expect([page.data('blocked'), page.hasForm('/relays/start')]).toEqual([['plan_required'], false])
})

test('too many starts are refused with the seconds to wait', async () => {
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
  expect([page.status, page.problem]).toEqual([429, 'rate_limited'])
  expect(page.text).toMatch(/ [1-9]\d? seconds?\b/)
})

test('pages report that the database is unavailable, and recover', async () => {
  const passage = await passageTo((await startApi()).services.config.database.url)
  const api = await startApi({ DATABASE_URL: passage.url })
  const user = await api.given.user()
  const browser = (await startSite(api)).browser()
  browser.cookies.set('svc_session', user.bearer)
  await passage.block()
  const relays = await browser.open('/relays')
  expect([relays.status, relays.problem]).toEqual([503, 'temporarily_unavailable'])
  const account = await browser.open('/account')
  expect([account.status, account.name]).toEqual([503, 'error-away'])
  await passage.open()
  const recovered = await eventually(
    () => browser.open('/relays'),
    ({ status }) => status === 200,
  )
  expect(recovered.data('session')).toEqual(['none'])
})

test('a start with the name of a relay that is running is reported, and starts no other one', async () => {
  const { user, browser, session } = await activeRelay()
  const page = await browser.submit(
    await browser.open('/relays'),
    '/relays/start',
    { connection_id: 'default' },
    { connection_id: 'second' },
  )
  expect([page.path, page.notice]).toEqual(['/relays?running=default', 'relay_already_running'])
  expect(page.text).toContain('“default” is already running')
  expect((await user.active()).sessions.map(({ session_id }) => session_id)).toEqual([session.session_id])
  expect((await browser.open('/relays?running=other')).notice).toBeUndefined()
})

test('a form that is submitted again while its relay runs reports nothing', async () => {
  const { browser } = await newStreamer()
  const form = await browser.open('/relays')
  await browser.submit(form, '/relays/start')
  const again = await browser.submit(form, '/relays/start')
  expect([again.path, again.notice, again.problem]).toEqual(['/relays', undefined, undefined])
})

test('each step of the connection kit is open until the service has seen what it leads to', async () => {
  const { browser, session, page: ready } = await activeRelay()
  expect(ready.data('kit')).toEqual(['phone', 'obs', 'more'])
  expect(ready.data('kit-state')).toEqual(['open', 'open'])
  const stats = { publishing: true, bitrate_kbps: 4_000, links: 2, bytes_total: 1_000_000 }
  await service.sendReport(session.session_id, { stats: { ...stats, players: 0 } })
  expect((await browser.open('/relays')).data('kit-state')).toEqual(['done', 'open'])
  await service.sendReport(session.session_id, { stats: { ...stats, players: 1 } })
  const live = await browser.open('/relays')
  expect(live.data('kit-state')).toEqual(['done', 'done'])
  expect(live.html).not.toMatch(/<details class="kit"[^>]*\bopen\b/)
})

test('a relay that has ended is shown with its reason, is started again, and can be hidden', async () => {
  const { user, browser, session } = await activeRelay()
  await user.stop({ session_id: session.session_id, immediate: true })
  const ended = await browser.open('/relays')
  expect([ended.data('ended'), ended.data('reason')]).toEqual([[session.session_id], ['stop_requested']])
  expect(ended.text).toContain('You stopped it.')
  expect(ended.links).toContain(`/history/${session.session_id}`)

  const again = await browser.submit(ended, '/relays/start', {}, { again: 'yes' })
  expect([again.data('ended'), again.data('name')]).toEqual([[], ['default']])
  const second = (await user.active()).session
  expect(second).toMatchObject({ connection_id: 'default', region: 'fra' })
  await user.stop({ connection_id: 'default', immediate: true })
  const endedAgain = await browser.open('/relays')
  expect(endedAgain.data('ended')).toEqual([second?.session_id])

  const hidden = await browser.submit(endedAgain, `/relays/${second?.session_id}/hide`)
  expect([hidden.path, hidden.data('ended')]).toEqual(['/relays', []])
  expect((await browser.open('/relays')).data('ended')).toEqual([])
})

test('a relay that ended more than an hour ago is part of the history only', async () => {
  const { user, browser, session } = await activeRelay()
  await user.stop({ session_id: session.session_id, immediate: true })
  await service.api
    .sql`update relay_sessions set stopped_at = stopped_at - interval '61 minutes' where id = ${session.session_id}`
  expect((await browser.open('/relays')).data('ended')).toEqual([])
  expect((await browser.open('/history')).data('ended')).toEqual([session.session_id])
})

test('the end of surplus relays is announced with its time', async () => {
  const { user, browser } = await activeRelay()
  await user.start({ connection_id: 'second' })
  const endsAt = new Date(Date.now() + 300_000)
  await service.api.sql`update users set addons = 0, surplus_ends_at = ${endsAt} where id = ${user.userId}`
  const page = await browser.open('/relays')
  expect(page.data('surplus')).toEqual(['1'])
  expect(page.html).toMatch(new RegExp(`datetime="${endsAt.toISOString()}" data-seconds-left="(300|2\\d\\d)"`))
})

test('a QR code is an image for the owner of its relay only, and its address has no secret', async () => {
  const { user, browser, session } = await activeRelay()
  const { html } = await browser.open('/relays')
  const paths = [...html.matchAll(/<img class="qr[^"]*" data-src="([^"]*)"/g)].map(([, path = '']) => path)
  expect(paths).toEqual(['moblin', 'irl-pro', 'larix'].map((app) => `/relays/${session.session_id}/qr/${app}.svg`))
  for (const path of paths) {
    const image = await browser.request('GET', path)
    expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
    expect(image.headers.get('cache-control')).toBe('no-store')
    expect(image.text).toMatch(/^<svg [^>]*><title>QR code<\/title>/)
  }
  const { browser: other } = await newStreamer()
  for (const [visitor, path] of [
    [other, paths[0]],
    [browser, `/relays/${session.session_id}/qr/other.svg`],
    [browser, `/relays/${session.session_id}/qr/constructor`],
  ] as const)
    expect((await visitor.open(path ?? '')).status).toBe(404)
  expect((await site.browser().open(paths[0] ?? '')).name).toBe('login')
  await user.stop({ session_id: session.session_id, immediate: true })
  expect((await browser.open(paths[0] ?? '')).status).toBe(404)
})

test('a relay with a stream has a link to its own page about links, with an address that is valid at that moment', async () => {
  const { user, browser, session, page } = await activeRelay()
  const path = `/relays/${session.session_id}/links`
  expect(page.links).not.toContain(path)
  await service.sendReport(session.session_id, { stats: { publishing: true, bitrate_kbps: 5_000, links: 3 } })
  expect((await browser.open('/relays')).links).toContain(path)

  const { sessions } = await user.active()
  expect((await browser.open(path)).continuesTo).toBe(sessions[0]?.connect?.links_url)
  const { browser: stranger } = await newStreamer()
  expect((await stranger.open(path)).status).toBe(404)
})
