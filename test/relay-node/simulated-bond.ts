/**
 * An encoder with several links and a relay, in simulated time: a sender that chooses the link with the most free
 * window, as bonding senders do, and the receiver with what it measures about each link.
 */
import { LossGovernor } from '../../relay-node/loss-governor.ts'
import { PacketLoss } from '../../relay-node/packet-loss.ts'
import type { Peer, Remote } from '../../relay-node/peer.ts'
import { buildNotice, buildRegistration, parsePacket } from '../../relay-node/srtla-packets.ts'
import { type LinkCounters, SrtlaReceiver } from '../../relay-node/srtla-receiver.ts'
import { srtData } from './srtla-encoder.ts'

export interface SimulatedLink {
  readonly delayMillis: number
  readonly lossPercent: number
  /** From then on nothing passes. */
  readonly diesAt?: number
  /** The most that the link carries. What waits for longer than {@link queueMillis} is lost. */
  readonly packetsPerSecond?: number
}

export interface Simulation {
  readonly links: readonly SimulatedLink[]
  /** From 0 to 1. */
  readonly random: () => number
  /** Whether keepalives say what the sender knows about the link. */
  readonly isReporting: boolean
  readonly latencyMillis: number
}

const packetMillis = 3.5
const queueMillis = 400
const endsAt = 20_000

class SenderLink {
  window = 20_000
  readonly inFlight = new Set<number>()
  freeAt = 0

  constructor(
    readonly conditions: SimulatedLink,
    readonly remote: Remote,
  ) {}

  get score(): number {
    return this.window / (this.inFlight.size + 1)
  }

  resize(change: number): void {
    this.window = Math.min(Math.max(this.window + change, 1_000), 60_000)
  }

  acknowledge(number: number): void {
    const isFull = this.inFlight.size * 1_000 > this.window
    if (this.inFlight.delete(number) && isFull) this.resize(29)
    this.resize(1)
  }

  report(number: number): void {
    if (!this.inFlight.delete(number)) return
    this.resize(-100)
  }
}

/** What the receiver has measured about each link at the end. */
export function simulate({ links: conditions, random, isReporting, latencyMillis }: Simulation): LinkCounters[] {
  const events: { readonly at: number; readonly run: () => void }[] = []
  let now = 0
  const later = (millis: number, run: () => void) => {
    const at = now + millis
    let index = events.length
    while (index > 0 && (events[index - 1]?.at ?? 0) > at) index -= 1
    events.splice(index, 0, { at, run })
  }
  const links = conditions.map(
    (each, index) => new SenderLink(each, { address: '198.51.100.7', port: index + 1, family: 'IPv4' }),
  )
  const linkAt = (port: number) => links[port - 1]
  const isDead = ({ conditions: { diesAt = Number.POSITIVE_INFINITY } }: SenderLink) => now >= diesAt
  const loss = new PacketLoss()
  const governor = new LossGovernor({
    hasArrived: (number) => loss.hasArrived(number),
    latencyMillis: () => latencyMillis,
  })
  let groupId: Buffer | undefined
  let group: Peer | undefined
  let newest = -1
  let acknowledged = 0
  const receiver = new SrtlaReceiver({
    sendTo(datagram, { port }) {
      const link = linkAt(port)
      const packet = parsePacket(datagram)
      if (packet?.kind === 'reg2') groupId = packet.id
      if (link === undefined || packet?.kind !== 'ack' || isDead(link)) return
      later(link.conditions.delayMillis, () => {
        for (const number of packet.sequenceNumbers) for (const each of links) each.acknowledge(number)
      })
    },
    onSrtPacket(peer, datagram) {
      group = peer
      const sequenceNumber = datagram.readUInt32BE(0)
      const isRepeat = (datagram[4] ?? 0) > 0
      if (!loss.receive(sequenceNumber, isRepeat) && isRepeat) return
      newest = Math.max(newest, sequenceNumber)
      const lateMillis = governor.receive(sequenceNumber, isRepeat, now)
      peer.bond?.receiveData({ sequenceNumber, isRepeat, lateMillis })
    },
    isOfStream: () => false,
    onStranger() {},
    onGroupEnded() {},
  })
  const receive = (link: SenderLink, datagram: Buffer) => {
    if (!isDead(link)) receiver.receive(datagram, link.remote, now)
  }

  const send = (number: number, isRepeat: boolean) => {
    const [link] = [...links].sort((a, b) => b.score - a.score)
    if (link === undefined) return
    link.inFlight.add(number)
    const { delayMillis, lossPercent, packetsPerSecond } = link.conditions
    const waits = Math.max(0, link.freeAt - now)
    if (isDead(link) || random() * 100 < lossPercent || waits > queueMillis) return
    if (packetsPerSecond !== undefined) link.freeAt = now + waits + 1_000 / packetsPerSecond
    const datagram = srtData(number, 20)
    if (isRepeat) datagram[4] = 1
    later(delayMillis + waits + 3 * random(), () => receive(link, datagram))
  }
  const stream = (number: number) => {
    send(number, false)
    later(packetMillis * (0.5 + random()), () => stream(number + 1))
  }
  const keepAlive = () => {
    for (const link of links) {
      const keepalive = Buffer.concat([buildNotice('keepalive'), Buffer.alloc(36)])
      if (isReporting) {
        keepalive.writeUInt32BE(0xc01f_0001, 10)
        keepalive.writeUInt32BE(2 * link.conditions.delayMillis, 26)
      }
      later(link.conditions.delayMillis, () => receive(link, keepalive))
    }
    later(1_000, keepAlive)
  }
  const feedBack = () => {
    while (loss.hasArrived(acknowledged)) acknowledged += 1
    governor.acknowledge(acknowledged)
    group?.bond?.acknowledge(acknowledged)
    if (acknowledged <= newest) governor.hold([{ first: acknowledged, last: newest }])
    const { first, again } = governor.due(now)
    const upTo = acknowledged
    later(30, () => {
      for (const link of links) for (const number of link.inFlight) if (number < upTo) link.inFlight.delete(number)
      for (const range of [...first, ...again])
        for (let number = range.first; number <= range.last; number += 1) {
          for (const link of links) link.report(number)
          send(number, true)
        }
    })
    later(10, feedBack)
  }

  const [requesting] = links
  if (requesting === undefined) return []
  receive(requesting, buildRegistration('reg1', Buffer.alloc(256, 1)))
  if (groupId === undefined) throw new Error('the receiver has answered no request for a group')
  for (const link of links) receive(link, buildRegistration('reg2', groupId))
  stream(0)
  feedBack()
  keepAlive()
  for (let next = events.shift(); next !== undefined && next.at < endsAt; next = events.shift()) {
    now = next.at
    next.run()
  }
  if (group) receiver.markAdmitted(group)
  now = endsAt
  return receiver.links(now)
}

export const simulatedMillis = endsAt
