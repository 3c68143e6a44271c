/** Relays that are reached over IPv4 and IPv6. The machine needs `::1`, the loopback address of IPv6. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { findBindError } from '../../platform/bindable-host.ts'
import { givenControlPlane, startRelay, statsOf, streamToken } from '../relay-node/running.ts'
import { SrtlaSender } from '../support/srtla-sender.ts'
import { testInRealTime } from './real-time.ts'
import { expectWholeStream, StreamSink, StreamSource } from './srt-stream.ts'

const [ipv4, ipv6] = ['127.0.0.1', '::1']
const options = 'latency=2000'

/** A relay at all addresses of the machine. */
async function givenRelay() {
  // Without IPv6 a relay serves IPv4 only, and the tests would fail later with another reason.
  expect(await findBindError(ipv6), 'this machine needs ::1 for these tests').toBeNull()
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url, variables: { PATH: process.env.PATH, SVC_RELAY_HOST: '0.0.0.0' } })
  return { plane, relay, state: await relay.up() }
}

const play = (host: string, port: number) =>
  new StreamSink(`srt://${host}:${port}?mode=caller&streamid=play/live/${streamToken}&${options}`)

const publish = (host: string, port: number) =>
  new StreamSource(`srt://${host}:${port}?mode=caller&streamid=publish/live/${streamToken}&${options}`, 4_000)

testInRealTime(
  'a stream over a link of IPv4 and one of IPv6 is whole when the one of IPv4 dies, and both families play it',
  async () => {
    const { plane, state } = await givenRelay()
    const sender = await SrtlaSender.start({
      host: ipv4,
      srtlaPort: state.srtlaPort,
      links: [{ host: ipv4 }, { host: ipv6 }],
    })
    onTestFinished(() => sender.close())
    const sinks = [play(ipv4, state.playPort), play(`[${ipv6}]`, state.playPort)]
    const source = publish(ipv4, sender.port)
    await Promise.all(sinks.map((sink) => sink.untilReceived(1_000_000)))

    const { groups } = await statsOf({ host: `[${ipv6}]`, statsPort: state.statsPort })
    expect(groups).toMatchObject([{ id: 'srtla', conn_count: 2 }])
    const links = groups[0]?.connections ?? []
    expect(links.map(({ addr }) => addr.slice(0, addr.lastIndexOf(':'))).sort()).toEqual(['127.0.0.0', '[::]'])
    expect(links.every(({ pkts }) => pkts > 50)).toBe(true)
    expect(plane.reports.at(-1)?.body.stats).toMatchObject({ publishing: true, links: 2 })

    sender.links[0]?.kill()
    await sleep(11_500)

    for (const sink of sinks) await expectWholeStream(source, sink)
    expect((await statsOf({ host: ipv4, statsPort: state.statsPort })).groups).toMatchObject([{ conn_count: 1 }])
    expect(sender.groupsRegistered).toBe(1)
  },
)

testInRealTime('a stream is published and played over IPv6 alone, without SRTLA', async () => {
  const { relay, state } = await givenRelay()
  const sink = play(`[${ipv6}]`, state.playPort)
  const source = publish(`[${ipv6}]`, state.publishPort)
  await sink.untilReceived(1_000_000)

  await expectWholeStream(source, sink)
  const { groups } = await statsOf({ host: ipv4, statsPort: state.statsPort })
  expect(groups).toMatchObject([{ id: 'publish', connections: [{ addr: expect.stringMatching(/^\[::\]:\d+$/) }] }])
  expect(relay.output()).not.toContain('no IPv6')
})
