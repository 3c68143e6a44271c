/** The stream record on the page of a session, its copy as CSV, and the link that shares it, without scripts. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { addEvening } from '../../support/evenings.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'

const siteUrl = await freeSiteUrl()
const service = await startFakeRelayService({
  worker: false,
  variables: { SVC_SITE_URL: siteUrl, SVC_RATE_LIMITS: 'login=1000,relay_history=1000,shared=200' },
})
const site = await startSite(service.api, { SVC_SITE_URL: siteUrl })
const { sql } = service.api

async function givenEvening(hours = 4, connectionId = 'secret-name') {
  const user = await service.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  const evening = await addEvening(sql, { userId: user.userId, hours, connectionId })
  return { user, browser, evening, path: `/history/${evening.id}` }
}

const share = async (browser: ReturnType<typeof site.browser>, path: string) => {
  const page = await browser.post(`${path}/share`, {})
  const [, url = ''] = /<code id="share-url">([^<]+)</.exec(page.html) ?? []
  return { page, path: new URL(url).pathname }
}

test('the page has the whole evening as a chart, its events with seconds, and a table', async () => {
  const { browser, path, evening } = await givenEvening()
  const page = await browser.open(path)
  expect(page.html).toContain('Bitrate: 300 kbps to 4.0 Mbps, 3.8 Mbps on average. 6 events, listed below.')
  expect(page.html.match(/<polyline/g)).toHaveLength(1)
  expect(page.data('event')).toEqual([
    'command',
    'stream_started',
    'stream_weak',
    'stream_lost',
    'stream_recovered',
    'stream_ended',
  ])
  expect(page.links).toContain(`${path}?at=${encodeURIComponent(evening.middle.toISOString())}#evening`)
  expect(page.html.match(/<th scope="row">/g)).toHaveLength(24)
  expect(page.text).toContain('300 kbps 300 kbps 9 % 1 1')
  const loss = await browser.open(`${path}?series=loss`)
  expect(loss.html.match(/<polyline/g)).toHaveLength(2)
  expect(loss.text).toContain('Loss, up to 9 %')
  expect((await browser.open(`${path}?series=moon`)).html.match(/<polyline/g)).toHaveLength(1)
})

test('16 hours are rendered with at most the drawn points, within the time that a page may take', async () => {
  const { browser, path } = await givenEvening(16)
  await browser.open(path)
  const begunAt = performance.now()
  const { html } = await browser.open(path)
  expect(performance.now() - begunAt).toBeLessThan(1500)
  const [, points = ''] = /<polyline points="([^"]+)"/.exec(html) ?? []
  expect(points.split(' ').length).toBeGreaterThan(600)
  expect(points.split(' ').length).toBeLessThanOrEqual(1200)
})

test('a moment of the address is marked with the events beside it, and an invalid one is ignored', async () => {
  const { browser, path, evening } = await givenEvening()
  const at = new Date(evening.middle.getTime() + 12_000).toISOString()
  const page = await browser.open(`${path}?at=${encodeURIComponent(at)}`)
  expect(page.text).toContain('Stream weak, 300 kbps (12 s earlier) · Stream lost (18 s later)')
  expect(page.html).toContain('class="moment"')
  for (const invalid of ['moon', '2020-01-01T00:00:00Z', '25:00', '%00', '<script>']) {
    const ignored = await browser.open(`${path}?at=${encodeURIComponent(invalid)}`)
    expect([ignored.status, ignored.html.includes('class="moment"')]).toEqual([200, false])
    expect(ignored.html).not.toContain('<script>')
  }
})

test('a session whose points are deleted keeps its events', async () => {
  const { browser, path, evening } = await givenEvening()
  await sql`delete from stream_records where session_id = ${evening.id}`
  const page = await browser.open(path)
  expect(page.data('record')).toEqual(['empty'])
  expect(page.data('event')).toHaveLength(6)
  expect(page.text).not.toContain('Download CSV')
})

test('the points can be downloaded as CSV by their owner', async () => {
  const { browser, path, evening } = await givenEvening(1)
  const { headers, html: csv } = await browser.open(`${path}/record.csv`)
  expect(headers.get('content-type')).toContain('text/csv')
  expect(headers.get('content-disposition')).toMatch(/^attachment; filename="stream-\d{4}-\d\d-\d\d\.csv"$/)
  const [head, first, ...rows] = csv.trimEnd().split('\r\n')
  expect(head).toBe('at_utc,bitrate_kbps,links,loss_pct,rtt_ms,players')
  expect(first).toBe(`${evening.startedAt.toISOString()},4000,3,0.5,60,1`)
  expect(rows).toHaveLength(359)
  const other = await givenEvening(1)
  expect((await other.browser.open(`${path}/record.csv`)).status).toBe(404)
})

test('a share link is shown once, opens for anyone without names, and ends when it is revoked', async () => {
  const { user, browser, path, evening } = await givenEvening()
  expect((await browser.open(path)).data('share')).toEqual(['none'])
  const { page, path: sharedPath } = await share(browser, path)
  expect([page.status, page.data('notice'), page.data('share')]).toEqual([200, ['share_created'], ['valid']])
  const again = await browser.open(path)
  expect([again.data('share'), again.html.includes(sharedPath)]).toEqual([['valid'], false])

  for (const visitor of [site.browser(), browser]) {
    const shared = await visitor.open(sharedPath)
    expect([shared.status, shared.name]).toEqual([200, 'shared'])
    expect(shared.data('event')).toHaveLength(5)
    expect(shared.headers.get('x-robots-tag')).toBe('noindex')
    expect(shared.headers.get('referrer-policy')).toBe('no-referrer')
    expect(shared.headers.get('cache-control')).toBe('no-store')
    expect(shared.html).toContain('<meta name="referrer" content="no-referrer"/>')
    expect(shared.html).toContain('<meta name="robots" content="noindex"/>')
    const day = evening.startedAt.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', timeZone: 'UTC' })
    expect(shared.html).toContain(`<meta property="og:title" content="Stream of ${day}"/>`)
    for (const secret of ['secret-name', user.email, user.userId, evening.id, '/sign-out'])
      expect([secret, shared.html.includes(secret)]).toEqual([secret, false])
  }

  const ended = await browser.post(`${path}/share/revoke`, {})
  expect([ended.path, ended.data('share'), ended.data('notice')]).toEqual([
    `${path}?done=share_revoked`,
    ['none'],
    ['share_revoked'],
  ])
  const unknown = await site.browser().open(sharedPath)
  expect([unknown.status, unknown.name, unknown.headers.get('x-robots-tag')]).toEqual([
    404,
    'error-not_found',
    'noindex',
  ])
})

test('the session of another account, and an unknown one, cannot be shared', async () => {
  const { path } = await givenEvening(1)
  const other = await givenEvening(1)
  for (const act of [`${path}/share`, `${path}/share/revoke`, `/history/${randomUUID()}/share`])
    expect([act, (await other.browser.post(act, {})).status]).toEqual([act, 404])
  for (const token of ['x', '%00', 'x'.repeat(300), '..%2f..%2fauth%2fsession'])
    expect([token, (await site.browser().open(`/shared/${token}`)).status]).toEqual([token, 404])
})
