/**
 * What breaks a stream, each brought about with real SRT programs and named on the relays page in Chromium, with the
 * settings of a fresh installation.
 */
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { expect, onTestFinished } from 'vitest'
import type { SandboxEventType } from '../../providers/billing/sandbox-events.ts'
import { billingEvent, sandboxSender } from '../support/billing.ts'
import { openDatagramPath } from '../support/datagram-path.ts'
import { eventually, operator, startService, type TestService } from '../support/relays.ts'
import { freeSiteUrl, startSite } from '../support/site.ts'
import { SrtlaSender } from '../support/srtla-sender.ts'
import { signIn, visitor } from './browser.ts'
import { testInRealTime } from './real-time.ts'
import { SignalPage } from './signal-page.ts'
import { StreamSink, StreamSource } from './srt-stream.ts'

const siteUrl = await freeSiteUrl()
const service: TestService = await startService({
  variables: {
    PATH: process.env.PATH ?? '',
    SVC_SITE_URL: siteUrl,
    SVC_RELAY_HEALTH_INTERVAL_SECONDS: '10',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '30',
    SVC_RELAY_GRACE_SECONDS: '300',
    SVC_RELAY_REPLACEMENT_SECONDS: '120',
    SVC_RELAY_SRT_PASSPHRASE: 'of-these-tests-only',
  },
})
await startSite(service.api, { SVC_SITE_URL: siteUrl })

/** An active relay, and its owner on the relays page. */
async function givenRelay() {
  const { user, session } = await service.activeRelay()
  const { page } = await visitor()
  await page.goto(`${siteUrl}/login`)
  await signIn(page, user)
  await page.waitForURL(`${siteUrl}/relays`)
  onTestFinished(() => page.close())
  const { connect } = session
  if (!connect) throw new Error('an active relay has no addresses')
  return { user, session, connect, signal: new SignalPage(page) }
}

/** `srt-live-transmit` takes the addresses of the connection kit as they are. */
const withLatency = (url: string) => `${url}&latency=1000`

/** The SRT address with another host and port: that of a network between the caller and the relay. */
const over = (port: number, url: string) => url.replace(/\/\/[^/?]+\?/, `//127.0.0.1:${port}?`)
const portOf = (url: string) => Number(/:(\d+)\?/.exec(url)?.[1])

testInRealTime(
  'networks that are gone, a bitrate that collapses and loss are named, each within five seconds',
  async () => {
    const { user, connect, signal } = await givenRelay()
    const sender = await SrtlaSender.start({
      host: '127.0.0.1',
      srtlaPort: portOf(connect.srtla_url),
      links: [{}, {}, {}],
    })
    onTestFinished(() => sender.close())
    await signal.until('phone', ['no_caller'], 30)
    const source = new StreamSource(withLatency(over(sender.port, connect.srt_url)), 5_000)
    new StreamSink(connect.player_url)
    await signal.until('phone', ['receiving'], 15)
    await signal.until('obs', ['playing'], 15)
    // What is usual for the stream, its bitrate too, is known after some seconds.
    await eventually(user.active, ({ session }) => session?.ingest?.usual_links === 3)
    const [first] = sender.links
    const phone = { end: 'phone', healthy: 'receiving' } as const
    await signal.expectNamed({
      ...phone,
      name: 'one of three links gone',
      code: 'link_lost',
      bringAbout: () => first?.kill(),
      takeBack: () => first?.revive(),
    })
    await signal.expectNamed({
      ...phone,
      name: 'bitrate collapsed',
      code: 'bitrate_dropped',
      bringAbout: () => source.changeRate(1_200),
      takeBack: () => source.changeRate(5_000),
    })
    await signal.expectNamed({
      ...phone,
      name: 'all networks lost',
      code: 'lost',
      bringAbout: () => sender.kill(),
      takeBack: () => sender.revive(),
    })
  },
)

testInRealTime('loss at a good bitrate is named within five seconds', async () => {
  const { connect, signal } = await givenRelay()
  const path = await openDatagramPath(portOf(connect.srt_url), Math.random)
  new StreamSource(withLatency(over(path.port, connect.srt_url)), 5_000)
  new StreamSink(connect.player_url)
  await signal.expectNamed({
    name: 'loss at a good bitrate',
    end: 'phone',
    healthy: 'receiving',
    code: 'loss_high',
    bringAbout: () => path.change({ lossPercent: 12, delayMillis: 10 }),
    takeBack: () => path.change({}),
  })
})

testInRealTime('callers that are refused are named within five seconds, and so is who does not call', async () => {
  const { connect, signal } = await givenRelay()
  await signal.until('phone', ['no_caller'], 30)
  await signal.until('obs', ['no_player'], 30)
  let wrong: StreamSource | undefined
  await signal.expectNamed({
    name: 'wrong stream ID',
    end: 'phone',
    healthy: 'no_caller',
    code: 'wrong_stream_id',
    bringAbout: () => {
      wrong = new StreamSource(connect.srt_url.replace(/publish\/live\/\w+/, 'publish/live/AAAAAAAA'), 2_000)
    },
  })
  wrong?.vanish()
  // The right one takes the place of the wrong one.
  const startedAt = performance.now()
  const source = new StreamSource(connect.srt_url, 2_000)
  await signal.until('phone', ['receiving'], 5)
  process.stdout.write(`wrong stream ID: cleared after ${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`)
  let second: StreamSource | undefined
  await signal.expectNamed({
    name: 'a second publisher refused',
    end: 'phone',
    healthy: 'receiving',
    code: 'second_publisher',
    bringAbout: () => {
      second = new StreamSource(connect.srt_url, 2_000, { isReconnecting: false })
    },
  })
  second?.vanish()
  await signal.until('phone', ['receiving'], 15)
  source.vanish()
  await signal.until('phone', ['lost', 'ended'], 10)
  let stranger: StreamSource | undefined
  await signal.expectNamed({
    name: 'wrong passphrase',
    end: 'phone',
    healthy: 'lost',
    code: 'wrong_passphrase',
    bringAbout: () => {
      stranger = new StreamSource(connect.srt_url.replace(/passphrase=[^&]*/, 'passphrase=another-passphrase'), 2_000)
    },
  })
  stranger?.vanish()
})

testInRealTime('players that are missing, read nothing or are too many are named within five seconds', async () => {
  const { connect, signal } = await givenRelay()
  new StreamSource(connect.srt_url, 4_000)
  const sinks: StreamSink[] = []
  await signal.expectNamed({
    name: 'no player',
    end: 'obs',
    healthy: 'no_player',
    code: 'playing',
    bringAbout: () => void sinks.push(new StreamSink(connect.player_url, { isReconnecting: false })),
    takeBack: () => sinks.pop()?.end(),
  })
  sinks.push(new StreamSink(connect.player_url))
  await signal.expectNamed({
    name: 'a player that reads nothing',
    end: 'obs',
    healthy: 'playing',
    code: 'not_reading',
    bringAbout: () => sinks[0]?.pause(),
    takeBack: () => sinks[0]?.resume(),
  })
  for (let count = 1; count < 8; count += 1) sinks.push(new StreamSink(connect.player_url))
  await Promise.all(sinks.map((sink) => sink.untilReceived(sink.receivedBytes + 100_000)))
  let ninth: StreamSink | undefined
  await signal.expectNamed({
    name: 'a ninth player refused',
    end: 'obs',
    healthy: 'playing',
    code: 'players_full',
    bringAbout: () => {
      ninth = new StreamSink(connect.player_url)
    },
    // The ninth takes the place that is free.
    takeBack: () => sinks.pop()?.end(),
  })
  ninth?.end()
})

testInRealTime('a relay that is killed is named within five seconds, and its replacement too', async () => {
  const { session, connect, signal } = await givenRelay()
  new StreamSource(connect.srt_url, 4_000)
  await signal.until('phone', ['receiving'], 15)
  const pids = service.relaysOf(session.session_id)
  expect(pids.length).toBeGreaterThan(0)
  execFileSync('kill', ['-KILL', ...pids.map(String)])
  const named = await signal.until('relay', ['silent', 'lost'], 5)
  const back = await signal.until('relay', ['running', 'waiting'], 30)
  process.stdout.write(`relay killed: named after ${named.toFixed(1)} s, replaced after another ${back.toFixed(1)} s\n`)
})

testInRealTime('a plan that ends and a region that takes no relays are named within five seconds', async () => {
  const { user, session, signal } = await givenRelay()
  const { page } = signal
  const subscription = { user_id: user.userId, subscription_id: `sub_${randomUUID()}` }
  const deliver = (type: SandboxEventType) =>
    sandboxSender(service.api).send(billingEvent(type, subscription, Date.now()))
  await deliver('subscription.activated')
  await eventually(
    async () => (await service.api.sql`select addons from users where id = ${user.userId}`)[0],
    // Those that the test gave are not part of the subscription.
    (row) => row?.addons === 0,
  )
  const startedAt = performance.now()
  await deliver('subscription.downgraded')
  const ended = page.locator(`[data-ended="${session.session_id}"]`)
  await ended.waitFor({ timeout: 5_000 })
  expect(await ended.textContent()).toContain('because your plan or your account changed')
  process.stdout.write(`plan ended: named after ${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`)

  await deliver('subscription.activated')
  await eventually(
    async () => (await service.api.sql`select plan_tier from users where id = ${user.userId}`)[0],
    (row) => row?.planTier === 'paid',
  )
  const change = (action: string) =>
    service.api.post(`/admin/regions/${session.region}/${action}`, { reason: 'maintenance' }, { headers: operator })
  onTestFinished(async () => void (await change('resume')))
  expect((await change('drain')).status).toBe(200)
  // How full regions are is looked at once a second.
  const form = async () => {
    await page.reload()
    return page.locator('form.fields[action="/relays/start"]').textContent()
  }
  await expect.poll(form, { timeout: 5_000, interval: 500 }).toContain('Full')
})
