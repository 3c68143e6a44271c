/** An encoder with several networks publishes over SRTLA through a relay, and a player receives the stream. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { givenControlPlane, startRelay, statsOf, streamToken } from '../relay-node/running.ts'
import { SrtlaSender } from '../support/srtla-sender.ts'
import type { LinkConditions } from '../support/srtla-sender-link.ts'
import { expectStreamGoesOn, expectWholeStream, StreamSink, StreamSource } from './srt-stream.ts'

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
  return { plane, relay, state, sender, sink, source }
}

test('a stream over three links is whole when one dies, one delays by 300 ms and all lose 2 percent', async () => {
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
})

test('a stream goes on in its group after all links died for 5 seconds', async () => {
  const { sender, sink, source } = await givenStream([{}, {}, {}], 'latency=2000')
  sender.kill()
  await sleep(5_000)
  sender.revive()

  await expectStreamGoesOn(source, sink)
  expect(sender.groupsRegistered).toBe(1)
})

test('100,000 arbitrary datagrams a second from 1,000 addresses disturb no stream and occupy no memory', async () => {
  const { relay, state, sender, sink, source } = await givenStream([{}, {}], 'latency=4000')
  const before = residentBytes(relay.child.pid)
  const sent = await flood([state.srtlaPort, state.publishPort, state.playPort], 100_000, 10)

  await expectWholeStream(source, sink)
  expect(sent).toBeGreaterThan(500_000)
  expect(residentBytes(relay.child.pid) - before).toBeLessThan(64 << 20)
  expect((await statsOf(state)).groups).toMatchObject([{ id: 'srtla', conn_count: 2 }])
  expect(sender.groupsRegistered).toBe(1)
})

/** Sends arbitrary datagrams to the ports. Resolves with their number. */
async function flood(ports: readonly number[], perSecond: number, seconds: number): Promise<number> {
  const program = resolve('test/system/datagram-flood.ts')
  const values = [ports.join(), `${perSecond}`, `${seconds}`]
  const child = spawn(process.execPath, ['--import', 'tsx', program, ...values], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  child.stdout.on('data', (text) => {
    output += text
  })
  await once(child, 'close')
  return Number(output)
}

const residentBytes = (pid: number | undefined): number =>
  Number(execFileSync('ps', ['-o', 'rss=', '-p', `${pid}`], { encoding: 'utf8' })) * 1024
