/** An encoder with several networks publishes over SRTLA through a relay, and a player receives the stream. */
import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import type { PublishersReply } from '../../relay-node/stats.ts'
import { givenControlPlane, startRelay, statsOf, streamToken } from '../relay-node/running.ts'
import { SrtlaSender } from '../support/srtla-sender.ts'
import type { LinkConditions } from '../support/srtla-sender-link.ts'
import { testInRealTime } from './real-time.ts'
import { expectStreamGoesOn, expectWholeStream, StreamSink, StreamSource } from './srt-stream.ts'
import { startFlood } from './udp-flood.ts'

/** A relay with a player, and an encoder whose links have the conditions. */
async function givenStream(links: readonly LinkConditions[], options: string) {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url, variables: { PATH: process.env.PATH } })
  const state = await relay.up()
  const sender = await SrtlaSender.start({ host: state.host, srtlaPort: state.srtlaPort, links })
  onTestFinished(() => sender.close())
  const sink = new StreamSink(
    `srt://${state.host}:${state.playPort}?mode=caller&streamid=play/live/${streamToken}&${options}`,
  )
  const source = new StreamSource(
    `srt://127.0.0.1:${sender.port}?mode=caller&streamid=publish/live/${streamToken}&${options}`,
    4_000,
  )
  await sink.untilReceived(500_000)
  return { plane, state, sender, sink, source }
}

testInRealTime(
  'a stream over three links is whole when one dies, one delays by 300 ms and all lose 2 percent',
  async () => {
    const { plane, sender, sink, source, state } = await givenStream(
      [{ lossPercent: 2 }, { lossPercent: 2, delayMillis: 300 }, { lossPercent: 2 }],
      'latency=2500',
    )
    await sleep(4_000)
    const { groups } = await statsOf(state)
    expect(groups).toMatchObject([{ id: 'srtla', conn_count: 3 }])
    expect(groups[0]?.connections.every(({ pkts }) => pkts > 50)).toBe(true)
    expect(plane.reports.at(-1)?.body.stats).toMatchObject({ publishing: true, links: 3 })
    sender.links[0]?.kill()
    await sleep(11_500)

    await expectWholeStream(source, sink)
    expect((await statsOf(state)).groups).toMatchObject([{ conn_count: 2 }])
    expect(sender.groupsRegistered).toBe(1)
  },
)

testInRealTime('a stream goes on in its group after all links died for 5 seconds', async () => {
  const { sender, sink, source } = await givenStream([{}, {}, {}], 'latency=2000')
  sender.kill()
  await sleep(5_000)
  sender.revive()

  await expectStreamGoesOn(source, sink)
  expect(sender.groupsRegistered).toBe(1)
})

testInRealTime('a bonded encoder that asks for the latency of SRT gets a second', async () => {
  const { state, sink, source } = await givenStream([{}, { delayMillis: 200 }], 'latency=120')
  await sink.untilReceived(2_000_000)
  const publisher = `publish/live/${streamToken}`
  const reply = await fetch(`http://${state.host}:${state.statsPort}/stats?publisher=${publisher}`)
  const { publishers } = (await reply.json()) as PublishersReply
  expect(publishers[publisher]?.latency).toBe(1_000)
  expect((await statsOf(state)).bonding).toMatchObject({ held: expect.any(Number), reported: expect.any(Number) })

  await expectWholeStream(source, sink)
})

testInRealTime(
  '200,000 arbitrary datagrams from 1,000 addresses, up to 100,000 a second, disturb no stream and occupy no memory',
  async () => {
    const { state, sender, sink, source } = await givenStream([{}, {}], 'latency=2000')
    const before = residentBytes(state.pid)
    const flood = startFlood({ host: state.host, ports: [state.srtlaPort] })
    onTestFinished(async () => void (await flood.stop()))
    await sleep(10_000)
    await flood.stop(200_000)

    await expectWholeStream(source, sink)
    expect(residentBytes(state.pid) - before).toBeLessThan(80_000_000)
    expect((await statsOf(state)).groups).toMatchObject([{ id: 'srtla', conn_count: 2 }])
    expect(sender.groupsRegistered).toBe(1)
  },
)

const residentBytes = (pid: number): number =>
  Number(execFileSync('ps', ['-o', 'rss=', '-p', `${pid}`], { encoding: 'utf8' })) * 1024
