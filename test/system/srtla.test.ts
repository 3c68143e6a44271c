/** SRTLA with real SRT programs, sockets and networks that lose, delay or cut datagrams. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import type { Peer } from '../../relay-node/peer.ts'
import { type SrtlaLimits, SrtlaReceiver } from '../../relay-node/srtla-receiver.ts'
import { SrtlaSender } from '../support/srtla-sender.ts'
import type { LinkConditions } from '../support/srtla-sender-link.ts'
import { testInRealTime } from './real-time.ts'
import { expectStreamGoesOn, expectWholeStream, findFreeUdpPort, StreamSink, StreamSource } from './srt-stream.ts'

const host = '127.0.0.1'
const bufferSizes = { recvBufferSize: 1 << 21, sendBufferSize: 1 << 21 }

/** A receiver that forwards the SRT packets of each group to an SRT listener. Returns its SRTLA port. */
async function givenReceiver(listenerPort: number, limits: Partial<SrtlaLimits> = {}) {
  const forwarders = new Map<Peer, Socket>()
  const endedGroups: Peer[] = []
  const srtla = createSocket({ type: 'udp4', ...bufferSizes }).bind(0, host)
  await once(srtla, 'listening')
  const openForwarder = (group: Peer): Socket => {
    const forwarder = createSocket({ type: 'udp4', ...bufferSizes })
    forwarder.on('message', (answer) => group.send(answer))
    forwarders.set(group, forwarder)
    receiver.markAdmitted(group)
    return forwarder
  }
  const receiver = new SrtlaReceiver(
    {
      sendTo: (datagram, { port, address }) => srtla.send(datagram, port, address),
      onSrtPacket: (group, datagram) =>
        (forwarders.get(group) ?? openForwarder(group)).send(datagram, listenerPort, host),
      isOfStream: () => false,
      onStranger: () => {},
      onGroupEnded: (group) => void endedGroups.push(group),
    },
    limits,
  )
  srtla.on('message', (datagram, from) => receiver.receive(datagram, from, performance.now()))
  const sweep = setInterval(() => receiver.sweep(performance.now()), 1_000)
  onTestFinished(() => {
    clearInterval(sweep)
    for (const socket of [srtla, ...forwarders.values()]) socket.close()
  })
  return { srtlaPort: srtla.address().port, receiver, endedGroups }
}

interface Scene {
  readonly links: readonly LinkConditions[]
  /** Options of the SRT connection. */
  readonly options: string
  readonly limits?: Partial<SrtlaLimits>
}

/** A stream over links with the conditions to a listener. */
async function givenStream({ links, options, limits }: Scene) {
  const listenerPort = await findFreeUdpPort()
  const sink = new StreamSink(`srt://${host}:${listenerPort}?mode=listener&${options}`)
  const { srtlaPort, receiver, endedGroups } = await givenReceiver(listenerPort, limits)
  const sender = await SrtlaSender.start({ host, srtlaPort, links })
  onTestFinished(() => sender.close())
  const source = new StreamSource(`srt://${host}:${sender.port}?mode=caller&${options}`, 4_000)
  await sink.untilReceived(500_000)
  return { sink, sender, source, receiver, endedGroups }
}

testInRealTime(
  'a stream is whole when all links die for 5 seconds, if its latency and SRT timeout are longer',
  async () => {
    const { sink, source, sender, endedGroups } = await givenStream({
      links: [{}, {}, {}],
      options: 'latency=8000&peeridletimeo=15000',
    })
    sender.kill()
    await sleep(5_000)
    sender.revive()
    await sleep(2_000)

    await expectWholeStream(source, sink)
    expect(sender.links.map(({ registrations }) => registrations)).toEqual([2, 2, 2])
    expect(sender.groupsRegistered).toBe(1)
    expect(endedGroups).toEqual([])
  },
)

testInRealTime('a stream goes on in another group when the receiver no longer has its group', async () => {
  const { sink, source, sender, endedGroups } = await givenStream({
    links: [{}, {}],
    options: 'latency=2000',
    limits: { linkSilenceMillisMax: 1_000, emptyGroupMillisMax: 1_000, registrationMillisMax: 1_000 },
  })
  sender.kill()
  await sleep(5_000)
  sender.revive()

  await expectStreamGoesOn(source, sink)
  expect(sender.groupsRegistered).toBe(2)
  expect(endedGroups).toHaveLength(1)
})
