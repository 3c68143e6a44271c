/** An encoder that restarts behind one address, while datagrams of its former connection still arrive. */
import { expect, onTestFinished, test } from 'vitest'
import type { StateFile } from '../../relay-node/state-file.ts'
import { eventually, givenControlPlane, startRelay, streamToken } from '../relay-node/running.ts'
import { read } from '../support/srt-packets.ts'
import { SrtlaSender } from '../support/srtla-sender.ts'
import { expectWholeStream, StreamSink, StreamSource } from './srt-stream.ts'
import { startRouter } from './udp-router.ts'

const options = 'latency=1000'

async function targetOf(protocol: 'SRT' | 'SRTLA', { host, publishPort, srtlaPort }: StateFile) {
  if (protocol === 'SRT') return publishPort
  const sender = await SrtlaSender.start({ host, srtlaPort, links: [{}, {}] })
  onTestFinished(() => sender.close())
  return sender.port
}

test.each(['SRT', 'SRTLA'] as const)(
  'over %s an encoder that restarts replaces its connection, and delayed handshakes of the former one end no stream',
  async (protocol) => {
    const plane = await givenControlPlane()
    const relay = startRelay({ apiUrl: plane.url, variables: { PATH: process.env.PATH } })
    const state = await relay.up()
    const router = await startRouter('127.0.0.1', await targetOf(protocol, state))
    const url = `srt://127.0.0.1:${router.port}?mode=caller&streamid=publish/live/${streamToken}&${options}`
    const playUrl = `srt://${state.host}:${state.playPort}?mode=caller&streamid=play/live/${streamToken}&${options}`
    const early = new StreamSink(playUrl)
    const first = new StreamSource(url, 2_000)
    await early.untilReceived(100_000)
    first.vanish()
    const former = [...router.handshakes]
    expect(new Set(former.map((handshake) => read(handshake).socketId)).size).toBe(1)

    const second = new StreamSource(url, 2_000)
    const late = new StreamSink(playUrl)
    await late.untilReceived(100_000)
    // The conclusion first, then all, as when the network delays or repeats them.
    router.repeat([...former.slice(-1), ...former])
    await late.untilReceived(late.receivedBytes + 500_000)

    await expectWholeStream(second, late)
    const log = await eventually(relay.output, (text) => text.includes('replaced by a new connection'))
    expect(log.match(/publish connection (admitted|closed)/g)).toEqual([
      'publish connection admitted',
      'publish connection closed',
      'publish connection admitted',
    ])
  },
)
