/** The links over which one encoder sends its SRT connection, as one peer. */
import { LinkLosses } from './link-losses.ts'
import { LinkMeasures, type LinkReading } from './link-measures.ts'
import type { ArrivedPacket, Bond, Peer, Remote } from './peer.ts'
import { RateLimit } from './rate-limit.ts'
import { isAcknowledgement } from './srt-packets.ts'

/**
 * Encoders send one each second over an idle link. An echo between two relays returns sooner than half a second, so it
 * soon ends.
 */
const keepalivesPerSecond = 2
const keepalivesBurst = 4

/** A network path of an encoder, identified by its source address. */
export interface Link {
  /** Says nothing about the address. */
  readonly id: string
  readonly addr: string
  readonly remote: Remote
  readonly group: SrtlaGroup
  bytes: number
  pkts: number
  readonly firstAt: number
  lastAt: number
  /** Sequence numbers for the next SRTLA ACK. */
  readonly unacknowledged: number[]
  /** The bytes received, minus those sent. */
  credit: number
  readonly keepalives: RateLimit
  readonly measures: LinkMeasures
  /** The lowest number that no other link of the group has. */
  readonly place: number
}

export interface GroupReading extends LinkReading {
  /** The part of the packets that was lost, from 0 to 1; undefined while too little is known. */
  readonly lost: number | undefined
}

interface GroupOptions {
  readonly key: string
  readonly id: string
  /** The IP address that requested the group. */
  readonly origin: string
  readonly createdAt: number
  readonly sendTo: (datagram: Buffer, remote: Remote) => void
}

export class SrtlaGroup implements Peer {
  readonly key: string
  readonly id: string
  readonly host: string
  readonly protocol = 'srtla'
  readonly bond: Bond = {
    pathCount: () => this.links.size,
    sendOverAll: (datagram) => this.#sendOverAll(datagram),
    receiveData: (packet) => this.#receiveData(packet),
    acknowledge: (next) => this.#losses?.acknowledge(next, this.latestLink?.lastAt ?? 0),
  }
  readonly links = new Map<string, Link>()
  /** The link of the latest registration or SRT packet. */
  latestLink: Link | undefined
  /** Since when the group has no link, if it has none. */
  emptySince: number
  readonly #sendTo: GroupOptions['sendTo']
  /** From the first data packet on, since it is large and anyone may register groups. */
  #losses: LinkLosses | undefined

  constructor({ key, id, origin, createdAt, sendTo }: GroupOptions) {
    this.key = key
    this.id = id
    this.host = origin
    this.emptySince = createdAt
    this.#sendTo = sendTo
  }

  /**
   * Sends an SRT packet to the encoder: acknowledgements over every link, others over the link with the latest packet.
   * A loss report over several links would make the encoder repeat its packets several times.
   */
  send(datagram: Buffer): void {
    if (isAcknowledgement(datagram)) this.#sendOverAll(datagram)
    else if (this.latestLink) this.sendOver(this.latestLink, datagram)
  }

  /** What was measured about a link. */
  read(link: Link, now: number): GroupReading {
    return { ...link.measures.read(now), lost: this.#losses?.lossOf(link.place, now) }
  }

  #receiveData({ sequenceNumber, isRepeat, lateMillis }: ArrivedPacket): void {
    const link = this.latestLink
    if (link === undefined) return
    this.#losses ??= new LinkLosses()
    this.#losses.receive(sequenceNumber, link.place, isRepeat)
    if (!isRepeat) link.measures.receiveData(lateMillis)
  }

  #sendOverAll(datagram: Buffer): void {
    for (const link of this.links.values()) this.sendOver(link, datagram)
  }

  /**
   * A link may be registered with a forged address, and only that of the request for the group has received its id. Any
   * other one gets no more bytes than came from it, so that the feedback of a stream cannot flood a forged address.
   */
  sendOver(link: Link, datagram: Buffer): void {
    const isProven = link.remote.address === this.host
    if (!isProven && link.credit < datagram.length) return
    link.credit -= datagram.length
    this.#sendTo(datagram, link.remote)
  }

  addLink(id: string, addr: string, remote: Remote, now: number): Link {
    const counters = { bytes: 0, pkts: 0, firstAt: now, lastAt: now, unacknowledged: [], credit: 0 }
    const keepalives = new RateLimit(keepalivesPerSecond, keepalivesBurst)
    const measures = new LinkMeasures(now)
    const link: Link = { id, addr, remote, group: this, ...counters, keepalives, measures, place: this.#findPlace() }
    this.links.set(addr, link)
    this.latestLink = link
    return link
  }

  #findPlace(): number {
    const taken = new Set([...this.links.values()].map(({ place }) => place))
    let place = 0
    while (taken.has(place)) place += 1
    return place
  }

  removeLink(link: Link, now: number): void {
    this.links.delete(link.addr)
    if (this.links.size === 0) this.emptySince = now
    if (this.latestLink === link) {
      this.latestLink = [...this.links.values()].sort((a, b) => b.lastAt - a.lastAt)[0]
    }
  }

  /** The group sends nothing any more. */
  removeLinks(): void {
    this.links.clear()
    this.latestLink = undefined
  }
}
