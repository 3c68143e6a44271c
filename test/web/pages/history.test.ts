/** The stream of a running relay and the history of ended ones, in a browser without scripts. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { operator } from '../../support/relays.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'

const siteUrl = await freeSiteUrl()
const service = await startFakeRelayService({
  variables: {
    SVC_SITE_URL: siteUrl,
    SVC_RELAY_HEALTH_INTERVAL_SECONDS: '10',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300',
  },
})
const site = await startSite(service.api, { SVC_SITE_URL: siteUrl })

async function newStreamer() {
  const user = await service.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  return { user, browser }
}

/** A relay that has sent a first report of its stream. */
async function newRelay(stats: object) {
  const { user, browser } = await newStreamer()
  const started = (await user.start()).body.session
  const report = (fields: object) => service.sendReport(started.session_id, { stats: fields })
  await expect.poll(async () => (await user.active()).session?.instance_id).toBeTruthy()
  await report(stats)
  await expect.poll(async () => (await user.active()).session?.state).toBe('active')
  return { user, browser, report, session_id: started.session_id }
}

const noVideo = {
  publishing: false,
  bitrate_kbps: 0,
  links: 0,
  players: 0,
  bytes_total: 0,
  engine: 'srt-live-transmit',
}
const video = { ...noVideo, publishing: true, bitrate_kbps: 5240, links: 3, bytes_total: 3_440_000_000 }

/** Colour and text of the relay's badge. */
const badgeOf = ({ html }: { readonly html: string }): string =>
  (/<span class="badge (\w+)" data-relay-state[^>]*>([^<]*)</.exec(html) ?? []).slice(1).join(' ')

test('the relays page shows whether the stream arrives', async () => {
  const { browser, report, session_id } = await newRelay(noVideo)
  const waiting = await browser.open('/relays')
  expect(waiting.data('code')).toEqual(['no_caller', 'waiting', 'no_player'])
  expect(waiting.text).toContain('No video yet: connect your phone')
  expect(badgeOf(waiting)).toBe('good Ready')
  await report(video)
  const receiving = await browser.open('/relays')
  expect(receiving.data('code')).toEqual(['receiving', 'running', 'no_player'])
  expect(receiving.text).toContain('Receiving 5.2 Mbps over 3 links')
  expect(badgeOf(receiving)).toBe('live Live')
  await report({ ...video, repeat_pct: 12.4 })
  expect((await browser.open('/relays')).text).toContain('over 3 links , 12 of 100 packets repeated')
  await report({ ...video, repeat_pct: 5 })
  expect((await browser.open('/relays')).text).not.toContain('repeated')
  await report({ ...video, links: 0 })
  expect((await browser.open('/relays')).text).toContain('Receiving 5.2 Mbps ')
  await report({ ...noVideo, bytes_total: video.bytes_total })
  const gone = await browser.open('/relays')
  expect(gone.text).toContain('No video, just now : check your networks')
  expect(badgeOf(gone)).toBe('warn No video')
  await report({ ...noVideo, engine: 'none' })
  const unable = await browser.open('/relays')
  expect(unable.data('code')).toEqual(['no_caller', 'no_engine', 'no_player'])
  expect(unable.text).toContain('This relay cannot forward video')
  expect(badgeOf(unable)).toBe('bad No SRT engine')
  const labels = [waiting, receiving, gone, unable].map((page) => badgeOf(page).replace(/^\w+ /, ''))
  const help = await browser.open('/help')
  for (const label of labels) expect(help.html).toMatch(new RegExp(`<dt><span class="badge \\w+">${label}</span></dt>`))
  expect(unable.links).toContain(`/history/${session_id}`)
})

test('no text of a relay is on any page', async () => {
  const garbage = '"><script>alert(1)</script>'
  const { browser, report, session_id, user } = await newRelay({ ...video, engine: garbage, links: garbage })
  await report({ publishing: garbage, bitrate_kbps: garbage, [garbage]: garbage })
  const live = [await browser.open('/relays'), await browser.open(`/history/${session_id}`)]
  await user.stop({ session_id, immediate: true })
  const ended = [await browser.open('/history'), await browser.open(`/history/${session_id}`)]
  for (const page of [...live, ...ended]) {
    expect(page.status).toBe(200)
    expect(page.html).not.toContain('alert(1)')
  }
})

test('an ended relay is listed with why it ended and what it received', async () => {
  const { user, browser, report, session_id } = await newRelay(video)
  await service.api
    .sql`update relay_health set ingest_at = ingest_at - interval '20 seconds' where session_id = ${session_id}`
  await report({ ...video, bytes_total: 3_450_000_000 })
  await service.api.sql`update relay_sessions set active_at = active_at - interval '1 hour' where id = ${session_id}`
  const running = await browser.open(`/history/${session_id}`)
  expect(running.text).toContain('It is running.')
  const none = await browser.open('/history')
  expect([none.name, none.data('ended')]).toEqual(['history', []])

  await user.stop({ session_id, immediate: true })
  const list = await browser.open('/history')
  expect([list.data('ended'), list.data('reason')]).toEqual([[session_id], ['stop_requested']])
  expect(list.text).toContain('You stopped it.')
  expect(list.text).toMatch(/ 5.2 Mbps 5.2 Mbps You stopped it./)
  const detail = await browser.open(`/history/${session_id}`)
  expect([detail.name, detail.data('event')]).toEqual([
    'history-session',
    ['command', 'transition', 'command', 'transition', 'transition'],
  ])
  expect(detail.text).toContain('Stop requested by you')
  for (const figure of ['With video 20 s', 'Average bitrate 5.2 Mbps', 'Peak bitrate 5.2 Mbps', '3.5 GB'])
    expect(detail.text).toContain(figure)
})

test('an ended relay has the time and the bitrates that it has measured', async () => {
  const measured = { bytes_total: 3_125_000, publishing_ms_total: 10_000, peak_bitrate_kbps: 2900, started_at_ms: 1 }
  const { user, browser, session_id } = await newRelay({ ...noVideo, ...measured })
  await service.api.sql`update relay_sessions set active_at = active_at - interval '1 minute' where id = ${session_id}`
  await user.stop({ session_id, immediate: true })
  expect((await browser.open('/history')).text).toContain(' 2.5 Mbps 2.9 Mbps ')
  const { text } = await browser.open(`/history/${session_id}`)
  for (const figure of ['With video 10 s', 'Average bitrate 2.5 Mbps', 'Peak bitrate 2.9 Mbps', 'Received 3.1 MB'])
    expect(text).toContain(figure)
})

test('the history can be limited to one relay', async () => {
  const { user, browser, session_id } = await newRelay(video)
  await user.stop({ session_id, immediate: true })
  const relayOnPage = async (relay: string) =>
    (await browser.open(`/history?relay=${encodeURIComponent(relay)}`)).data('ended')
  expect(await relayOnPage('default')).toEqual([session_id])
  expect(await relayOnPage('')).toEqual([session_id])
  expect(await relayOnPage('other')).toEqual([])
  const none = await browser.open(`/history?relay=${encodeURIComponent('<b>no name</b>')}`)
  expect([none.status, none.data('ended')]).toEqual([200, []])
  expect(none.html).not.toContain('<b>no name')
  expect((await browser.open(`/history/${session_id}`)).links).toContain('/history?relay=default')
})

test('the relay of another account, and an unknown one, is a missing page', async () => {
  const { session_id } = await newRelay(video)
  const { browser } = await newStreamer()
  for (const path of [
    `/history/${session_id}`,
    `/history/${randomUUID()}`,
    '/history/x',
    '/history/%2e%2e%2fx',
    '/history?cursor=x',
  ])
    expect([path, (await browser.open(path)).status]).toEqual([path, 404])
  expect((await site.browser().open('/history')).path).toBe('/login?next=%2Fhistory')
})

test('a relay that was replaced is shown with the time that the stream was away', async () => {
  const { browser, session_id } = await newRelay(video)
  const replace = (binding: number, awaySeconds: number) => service.api.sql`
    insert into relay_replacements (session_id, binding, instance_id, replaced_by, cause, failed_at, last_report_at, restored_at)
    values (${session_id}, ${binding}, 'i-1', 'i-2', 'relay_gone', now(), now(), now() + make_interval(secs => ${awaySeconds}))`
  expect((await browser.open(`/history/${session_id}`)).text).not.toContain('was replaced')
  await replace(2, 6)
  await replace(3, 125)
  const page = await browser.open(`/history/${session_id}`)
  expect(page.data('event').filter((kind) => kind === 'relay_replaced')).toHaveLength(2)
  for (const away of ['6 s', '2 min 5 s'])
    expect(page.text).toContain(`The relay failed and was replaced. Your stream was away for ${away}`)
})

test('what a stream did is shown among the transitions of its relay, in the order of the times', async () => {
  const { user, browser, session_id } = await newRelay(noVideo)
  const kinds = ['stream_started', 'stream_weak', 'stream_recovered', 'stream_lost']
  const events = kinds.map((kind, index) => ({ seq: index + 1, kind, age_ms: 0, bitrate_kbps: 400 + index * 1_000 }))
  await service.sendReport(session_id, { events, stats: { ...video, started_at_ms: 1 } })
  await user.stop({ session_id, immediate: true })
  await expect.poll(async () => (await user.active()).sessions).toEqual([])
  const page = await browser.open(`/history/${session_id}`)
  expect(page.data('event').filter((kind) => kind.startsWith('stream_'))).toEqual([...kinds, 'stream_ended'])
  const texts = [
    'Ready',
    'Stream started, 400 kbps',
    'Stream weak, 1.4 Mbps',
    'Stream recovered, 2.4 Mbps',
    'Stream lost',
  ]
  const places = [...texts, 'Stop requested by you'].map((text) => page.text.indexOf(text))
  expect(places.every((place) => place > 0)).toBe(true)
  expect(places).toEqual(places.toSorted((a, b) => a - b))
})

test('what support says about a disconnect is shown, and its internal reason is not', async () => {
  const { browser, session_id } = await newRelay(video)
  const ending = { reason: 'a secret', public_reason: 'Music that was reported.' }
  await service.api.post(`/admin/sessions/${session_id}/disconnect`, ending, { headers: operator })
  const { text } = await browser.open(`/history/${session_id}`)
  expect(text).toContain('Support: Music that was reported.')
  expect(text).not.toContain('secret')
})
