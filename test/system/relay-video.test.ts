/** Video through a relay, published and played by the SRT program of the protocol's authors. */
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listProcesses } from '../../platform/processes.ts'
import { engineAddress } from '../../relay-node/live-transmit-engine.ts'
import type { StateFile } from '../../relay-node/state-file.ts'
import {
  endOf,
  eventually,
  givenControlPlane,
  hashedToken,
  startRelay,
  statsOf,
  streamToken,
} from '../relay-node/running.ts'
import { testInRealTime } from './real-time.ts'
import { expectWholeStream, StreamSink, StreamSource } from './srt-stream.ts'
import { startFlood } from './udp-flood.ts'

/** Below the least for bonded encoders, which is not that of this port. */
const latency = 'latency=900'

async function givenRelay(variables: Readonly<Record<string, string>> = {}) {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url, variables: { PATH: process.env.PATH, ...variables } })
  return { plane, relay, state: await relay.up() }
}

const publishUrl = ({ host, publishPort }: StateFile, streamId = `publish/live/${streamToken}`, options = latency) =>
  `srt://${host}:${publishPort}?mode=caller&streamid=${streamId}&${options}`
const playUrl = ({ host, playPort }: StateFile, streamId = `play/live/${streamToken}`, options = latency) =>
  `srt://${host}:${playPort}?mode=caller&streamid=${streamId}&${options}`

/** The processes of a relay's engine. */
const enginesOf = ({ pid }: StateFile) => listProcesses((command) => command.includes(`srt://${engineAddress(pid)}:`))

const untilNoEngineIsLeft = (state: StateFile, millisMax: number) =>
  eventually(
    () => enginesOf(state),
    (engines) => engines.length === 0,
    millisMax,
  )

testInRealTime('a stream of 60 seconds reaches two players whole, and its figures are reported', async () => {
  const { plane, state } = await givenRelay()
  const players = [
    new StreamSink(playUrl(state)),
    new StreamSink(playUrl(state, `#!::r=live/${streamToken},m=request`)),
  ]
  const source = new StreamSource(publishUrl(state), 6_000)
  await Promise.all(players.map((player) => player.untilReceived(100_000)))

  await sleep(60_000)

  for (const player of players) {
    expect(player.receivedBytes).toBeGreaterThan(40_000_000)
    await expectWholeStream(source, player)
  }
  const summary = plane.reports.at(-1)?.body.stats
  expect(summary).toEqual({
    publishing: true,
    links: 1,
    usual_links: 1,
    players: 2,
    stalled_players: 0,
    last_refused: {},
    last_call_age_ms: expect.any(Number),
    engine: 'srt-live-transmit',
    bitrate_kbps: expect.any(Number),
    usual_bitrate_kbps: expect.any(Number),
    rtt_ms: expect.any(Number),
    loss_pct: 0,
    repeat_pct: 0,
    bytes_total: expect.any(Number),
    refused: {},
    started_at_ms: expect.any(Number),
    publishing_ms_total: expect.any(Number),
    peak_bitrate_kbps: expect.any(Number),
  })
  // The median, since the source sends in bursts on a busy machine.
  const bitrates = plane.reports.map(({ body }) => body.stats?.bitrate_kbps ?? 0).toSorted((a, b) => a - b)
  const median = bitrates[Math.floor(bitrates.length / 2)]
  expect(median).toBeGreaterThan(5_000)
  expect(median).toBeLessThan(7_000)
  const { host, statsPort } = state
  const key = `publish/live/${streamToken}`
  const reply = await fetch(`http://${host}:${statsPort}/stats?publisher=${encodeURIComponent(key)}`)
  expect(await reply.json()).toMatchObject({
    status: 'ok',
    publishers: { [key]: { bitrate: expect.any(Number), rtt: expect.any(Number), dropped_pkts: 0, latency: 900 } },
  })
})

describe('nothing passes, and the caller is refused,', () => {
  test.each([
    ['without a token', undefined],
    ['with a wrong token', 'publish/live/Zz99Yy88'],
    ['with the form of a player', `play/live/${streamToken}`],
  ])('when it publishes %s', async (_, streamId) => {
    const { state } = await givenRelay()
    const player = new StreamSink(playUrl(state))
    const url = publishUrl(state, streamId)
    const source = new StreamSource(streamId === undefined ? url.replace(/streamid=[^&]+&/, '') : url, 2_000)

    await eventually(source.errors, (errors) => /Application-defined rejection/.test(errors))
    await sleep(2_000)

    expect(player.receivedBytes).toBe(0)
    expect(await statsOf(state)).toMatchObject({ groups: [] })
  })

  test('when it plays with the token of another user', async () => {
    const { state } = await givenRelay()
    const stranger = new StreamSink(playUrl(state, 'play/live/Zz99Yy88'))
    const player = new StreamSink(playUrl(state))
    new StreamSource(publishUrl(state), 2_000)

    await eventually(stranger.errors, (errors) => /Application-defined rejection/.test(errors))
    await player.untilReceived(100_000)

    expect(stranger.receivedBytes).toBe(0)
  })
})

test('a second publisher is refused while the first lives, and replaces it when it has vanished', async () => {
  const { state } = await givenRelay()
  const player = new StreamSink(playUrl(state))
  const first = new StreamSource(publishUrl(state), 2_000)
  await player.untilReceived(100_000)

  const second = new StreamSource(publishUrl(state), 2_000)
  await eventually(second.errors, (errors) => /Application-defined rejection/.test(errors))
  await expectWholeStream(first, player)

  // It sends no end of its connection.
  first.vanish()
  const vanishedAt = performance.now()
  await eventually(
    () => second.sent.includes(player.received.subarray(-64)),
    (isPlayed) => isPlayed,
  )
  // Five seconds of silence, the next attempt of the second publisher, and two latencies.
  expect(performance.now() - vanishedAt).toBeLessThan(12_000)
})

test('a player that connects after a publisher vanished receives nothing that was sent before', async () => {
  const { state } = await givenRelay()
  const early = new StreamSink(playUrl(state))
  const first = new StreamSource(publishUrl(state), 2_000)
  await early.untilReceived(100_000)
  first.vanish()
  // Its links and its last blocks are still with the relay.
  await eventually(
    async () => (await statsOf(state)).groups[0]?.connections[0]?.last_ms_ago ?? 0,
    (silentMillis) => silentMillis > 2_000,
  )
  const late = new StreamSink(playUrl(state))
  const second = new StreamSource(publishUrl(state), 2_000)
  await late.untilReceived(100_000)

  expect(second.sent.indexOf(late.received.subarray(0, 64))).toBeGreaterThanOrEqual(0)
  await expectWholeStream(second, late)
})

testInRealTime('four relays on one machine do not mix their streams', async () => {
  const tokens = ['Aa11Bb22', 'Cc33Dd44', 'Ee55Ff66', 'Gg77Hh88']
  const streams = await Promise.all(
    tokens.map(async (token) => {
      const { state } = await givenRelay({ SVC_RELAY_STREAM_TOKEN_HASH: hashedToken(token) })
      const player = new StreamSink(playUrl(state, `play/live/${token}`))
      const source = new StreamSource(publishUrl(state, `publish/live/${token}`), 2_000)
      return { player, source }
    }),
  )
  for (const { player, source } of streams) {
    await player.untilReceived(1_000_000)
    await expectWholeStream(source, player)
  }
})

test('an encrypted stream passes, and one with another passphrase is refused', async () => {
  const { plane, state } = await givenRelay({ SVC_RELAY_SRT_PASSPHRASE: 'correct-horse-battery' })
  const encrypted = (passphrase: string) => `${latency}&passphrase=${passphrase}`
  const player = new StreamSink(playUrl(state, undefined, encrypted('correct-horse-battery')))
  const intruder = new StreamSource(publishUrl(state, undefined, encrypted('another-passphrase')), 2_000)
  await eventually(intruder.errors, (errors) => /REJECT/.test(errors))
  intruder.vanish()
  await eventually(
    () => plane.reports.at(-1)?.body.stats.refused.passphrase,
    (count) => (count ?? 0) > 0,
  )
  const source = new StreamSource(publishUrl(state, undefined, encrypted('correct-horse-battery')), 2_000)

  await player.untilReceived(300_000)
  await expectWholeStream(source, player)
})

test('a relay that is stopped ends the connections of publisher and player, and leaves no process behind', async () => {
  const { plane, relay, state } = await givenRelay()
  const player = new StreamSink(playUrl(state), { isReconnecting: false })
  const source = new StreamSource(publishUrl(state), 2_000, { isReconnecting: false })
  await player.untilReceived(100_000)
  const stoppedAt = performance.now()

  plane.answers({ status: 200, body: { state: 'grace', desired: 'stop', report_in_seconds: 10 } })

  await Promise.all([endOf(relay.child), source.ended, player.ended])
  expect(performance.now() - stoppedAt).toBeLessThan(3_000)
  await untilNoEngineIsLeft(state, 1_000)
})

test('the engine of a killed relay ends by itself', async () => {
  const { relay, state } = await givenRelay()
  const player = new StreamSink(playUrl(state))
  new StreamSource(publishUrl(state), 2_000)
  await player.untilReceived(100_000)
  expect(await enginesOf(state)).toHaveLength(2)

  relay.child.kill('SIGKILL')

  await untilNoEngineIsLeft(state, 15_000)
})

testInRealTime(
  '200,000 datagrams of garbage from 1,000 addresses, up to 100,000 a second, disturb neither the stream nor the memory',
  async () => {
    const { relay, state } = await givenRelay()
    const player = new StreamSink(playUrl(state))
    const source = new StreamSource(publishUrl(state), 4_000)
    await player.untilReceived(1_000_000)
    const megabytes = async () => (await residentKilobytes(state.pid)) / 1024
    const before = await megabytes()

    const flood = startFlood({ host: state.host, ports: [state.publishPort, state.playPort, state.srtlaPort] })
    onTestFinished(async () => void (await flood.stop()))
    await sleep(10_000)
    await flood.stop(200_000)

    await expectWholeStream(source, player)
    expect(relay.isRunning()).toBe(true)
    expect((await megabytes()) - before).toBeLessThan(80)
  },
)

async function residentKilobytes(pid: number): Promise<number> {
  return Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1])
}
