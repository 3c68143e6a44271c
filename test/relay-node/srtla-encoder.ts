/** An encoder without sockets, which passes its datagrams to a receiver and collects the answers of each link. */
import { randomBytes } from 'node:crypto'
import { addressOf, type Peer, type Remote } from '../../relay-node/peer.ts'
import { buildNotice, buildRegistration, parsePacket, type SrtlaPacket } from '../../relay-node/srtla-packets.ts'
import { type SrtlaLimits, SrtlaReceiver } from '../../relay-node/srtla-receiver.ts'

export const remote = (port: number, address = '198.51.100.7'): Remote => ({ address, port, family: 'IPv4' })
export const ipv6Remote = (port: number, address = '2001:db8::7'): Remote => ({ address, port, family: 'IPv6' })

/** An SRT data packet with the sequence number. */
export function srtData(sequenceNumber: number, bytes = 1_332): Buffer {
  const packet = Buffer.alloc(bytes)
  packet.writeUInt32BE(sequenceNumber, 0)
  return packet
}

/** An SRT control packet of the type. */
export function srtControl(type: number): Buffer {
  const packet = Buffer.alloc(20)
  packet.writeUInt16BE(0x8000 + type, 0)
  return packet
}

/** For tests that are not about floods, in which time stands still. */
const unlimited = { perNetwork: Number.POSITIVE_INFINITY, total: Number.POSITIVE_INFINITY }

export interface Sent {
  readonly to: string
  readonly datagram: Buffer
}

export class Scene {
  now = 1_000_000
  readonly sent: Sent[] = []
  readonly srtPackets: { readonly group: Peer; readonly datagram: Buffer }[] = []
  readonly endedGroups: Peer[] = []
  /** Of the publisher's stream. */
  isOfStream: (datagram: Buffer) => boolean = () => false
  readonly receiver: SrtlaReceiver

  constructor(limits: Partial<SrtlaLimits> = {}) {
    this.receiver = new SrtlaReceiver(
      {
        sendTo: (datagram, to) => void this.sent.push({ to: addressOf(to), datagram }),
        onSrtPacket: (group, datagram) => void this.srtPackets.push({ group, datagram }),
        isOfStream: (datagram) => this.isOfStream(datagram),
        onStranger: () => {},
        onGroupEnded: (group) => void this.endedGroups.push(group),
      },
      { answersPerSecond: unlimited, ...limits },
    )
  }

  /** Passes a datagram to the receiver, and returns the datagrams that it sent meanwhile. */
  receive(datagram: Buffer, from: Remote): Sent[] {
    const before = this.sent.length
    this.receiver.receive(datagram, from, this.now)
    return this.sent.slice(before)
  }

  /** The answer to a datagram, if the receiver returned one to its source. */
  answer(datagram: Buffer, from: Remote): SrtlaPacket | undefined {
    const [answer] = this.receive(datagram, from).filter(({ to }) => to === addressOf(from))
    return answer && parsePacket(answer.datagram)
  }

  pass(millis: number): void {
    this.now += millis
    this.receiver.sweep(this.now)
  }

  requestGroup(from: Remote, requested: Buffer = randomBytes(256)): Buffer {
    const answer = this.answer(buildRegistration('reg1', requested), from)
    if (answer?.kind !== 'reg2') throw new Error(`the answer to REG1 is ${answer?.kind}`)
    return answer.id
  }

  join(id: Buffer, from: Remote): string | undefined {
    return this.answer(buildRegistration('reg2', id), from)?.kind
  }

  /** Whether the receiver returns a keepalive, as it does for the links of its groups. */
  isLink(from: Remote): boolean {
    return this.answer(buildNotice('keepalive'), from) !== undefined
  }

  /** Registers a group with the links, sends an SRT packet over each, and returns its peer and its id. */
  register(...links: readonly Remote[]): { peer: Peer; id: Buffer } {
    const id = this.requestGroup(links[0] as Remote)
    for (const link of links) {
      if (this.join(id, link) !== 'reg3') throw new Error('the link was refused')
      this.receive(srtControl(0), link)
    }
    const peer = this.srtPackets.at(-1)?.group
    if (!peer) throw new Error('no SRT packet arrived')
    return { peer, id }
  }
}
