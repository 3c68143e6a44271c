/** The page of a relay about the links of a stream, in Chromium. */
import { randomUUID } from 'node:crypto'
import { expect, onTestFinished } from 'vitest'
import { issueLinksTicket } from '../../platform/links-tickets.ts'
import { eventually, givenControlPlane, secret, startRelay, streamToken } from '../relay-node/running.ts'
import { SrtlaSender } from '../support/srtla-sender.ts'
import { expectUsable, visitor } from './browser.ts'
import { testInRealTime } from './real-time.ts'
import { StreamSink, StreamSource } from './srt-stream.ts'

testInRealTime('the owner sees which link is bad, and nothing about single links reaches the service', async () => {
  const plane = await givenControlPlane()
  const sessionId = randomUUID()
  const relay = startRelay({ apiUrl: plane.url, sessionId, variables: { PATH: process.env.PATH } })
  const { host, srtlaPort, playPort, statsPort } = await relay.up()
  const url = `http://${host}:${statsPort}/links?ticket=${issueLinksTicket([secret], sessionId, Date.now())}`
  const owner = await visitor()
  const { page } = owner
  await page.goto(url)
  await page.getByText('No stream comes in. Start it in your encoder.').waitFor()

  const links = [{ delayMillis: 20 }, { delayMillis: 40, lossPercent: 15 }]
  const sender = await SrtlaSender.start({ host, srtlaPort, links })
  onTestFinished(() => sender.close())
  const sink = new StreamSink(`srt://${host}:${playPort}?mode=caller&streamid=play/live/${streamToken}&latency=200`)
  new StreamSource(
    `srt://127.0.0.1:${sender.port}?mode=caller&streamid=publish/live/${streamToken}&latency=2000`,
    4_000,
  )
  await sink.untilReceived(100_000)
  const bad = page.locator('li[data-verdict="weak"], li[data-verdict="useless"]')
  await expect
    .poll(() => bad.locator('.sentence').textContent(), { timeout: 60_000 })
    .toMatch(/^Link 2 is (weak|useless): it .*repeats \d+ %\. Your stream would be better without it\.$/)
  expect(await page.locator('li').count()).toBe(2)
  expect(await page.locator('li .rate').first().textContent()).toMatch(/^\d+(\.\d)? [kM]bps$/)
  expect(await page.locator('li polyline').first().getAttribute('points')).toMatch(/\d,\d/)
  // With its address, which the public statistics mask.
  expect(await page.locator('li').first().textContent()).toContain('127.0.0.1:')

  const reported = () => plane.reports.filter(({ body }) => body.stats.links === 2)
  await eventually(reported, ({ length }) => length > 2)
  // Of the stream as a whole. The first report of a stream can come before its round trip is measured.
  const members = [
    'bitrate_kbps',
    'bytes_total',
    'engine',
    'links',
    'loss_pct',
    'peak_bitrate_kbps',
    'players',
    'publishing',
  ]
  const others = ['publishing_ms_total', 'refused', 'repeat_pct', 'rtt_ms', 'started_at_ms']
  const ofPath = ['last_call_age_ms', 'last_refused', 'stalled_players', 'usual_bitrate_kbps', 'usual_links']
  for (const { body } of reported())
    expect([...members, ...others, ...ofPath]).toEqual(expect.arrayContaining(Object.keys(body.stats)))
  expect(JSON.stringify(plane.reports)).not.toMatch(/127\.0\.0|verdict|link-\d|gap_ms/)
  await expectUsable(owner, 'links')
})
