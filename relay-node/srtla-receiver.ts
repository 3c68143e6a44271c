/**
 * The receiving end of SRTLA. It joins the links of an encoder to one peer for the gate: SRT packets of all links pass
 * in the order of their arrival, and the answers return over the links. It has no socket, timer or clock: the caller
 * passes datagrams and the time, in milliseconds of a clock that never goes back.
 *
 * Registration has no authentication. The stream id, which the gate checks, decides who may publish, and everything
 * that is stored here is limited.
 */
import { subscriberOf } from './addresses.ts'
import { addressOf, type Peer, type Remote } from './peer.ts'
import { type BudgetLimits, defaultBudget, ReplyBudget } from './reply-budget.ts'
import { type GroupReading, type Link, SrtlaGroup } from './srtla-group.ts'
import { GroupIds } from './srtla-group-ids.ts'
import {
  buildAck,
  buildNotice,
  buildRegistration,
  packetsPerAck,
  parsePacket,
  readKeepaliveRtt,
} from './srtla-packets.ts'

export interface SrtlaDeps {
  /** Sends a datagram from the SRTLA port. */
  sendTo(datagram: Buffer, remote: Remote): void
  onSrtPacket(group: Peer, datagram: Buffer): void
  /** Whether a packet, which came from any address, is one of the admitted publisher's stream. */
  isOfStream(datagram: Buffer): boolean
  /** An SRT packet came from an address that is no link. It gets no answer, as in other receivers. */
  onStranger(datagram: Buffer): void
  /** Called once per group: all its links were silent for too long, or other groups needed its place. */
  onGroupEnded(group: Peer): void
}

export interface SrtlaLimits {
  /** Above this number of groups, one that is not admitted is removed. At least 2. */
  readonly groupsMax: number
  readonly linksPerGroupMax: number
  /** A silent link is removed. Encoders send keepalives every second. */
  readonly linkSilenceMillisMax: number
  /** A link that is silent for longer may be replaced: its address may join another group, another link its own. */
  readonly linkStaleMillis: number
  /** A group remains known after its last link was removed, so that its encoder can return. */
  readonly emptyGroupMillisMax: number
  /** How long after the request a group can be created. */
  readonly registrationMillisMax: number
  /**
   * Of requests for groups, and of registrations with groups that do not exist: their ids are computed, which costs
   * more than to forward a packet. Encoders repeat them every second.
   */
  readonly answersPerSecond: BudgetLimits
}

const defaultLimits: SrtlaLimits = {
  groupsMax: 64,
  linksPerGroupMax: 16,
  linkSilenceMillisMax: 10_000,
  linkStaleMillis: 3_000,
  emptyGroupMillisMax: 10_000,
  registrationMillisMax: 10_000,
  answersPerSecond: defaultBudget,
}

/** The counters of a link. They start at 0 when the link registers, and count SRT packets. */
export interface LinkCounters {
  /** Stable while the link is registered. */
  readonly id: string
  /** `ip:port`. */
  readonly addr: string
  readonly bytes: number
  readonly pkts: number
  readonly firstAt: number
  /** The arrival of the latest datagram, which may be a keepalive. */
  readonly lastAt: number
  /** Undefined for a caller with one address. */
  readonly reading?: GroupReading
}

export class SrtlaReceiver {
  readonly #deps: SrtlaDeps
  readonly #limits: SrtlaLimits
  readonly #ids: GroupIds
  readonly #requests: ReplyBudget
  /** Apart from the requests, so that a flood of one does not take the answers of the other. */
  readonly #registrations: ReplyBudget
  readonly #groups = new Map<string, SrtlaGroup>()
  readonly #links = new Map<string, Link>()
  #groupsCreated = 0
  #linksCreated = 0
  #admitted: SrtlaGroup | undefined

  constructor(deps: SrtlaDeps, limits: Partial<SrtlaLimits> = {}) {
    this.#deps = deps
    this.#limits = { ...defaultLimits, ...limits }
    this.#ids = new GroupIds(this.#limits.registrationMillisMax)
    this.#requests = new ReplyBudget(this.#limits.answersPerSecond)
    this.#registrations = new ReplyBudget(this.#limits.answersPerSecond)
  }

  receive(datagram: Buffer, from: Remote, now: number): void {
    const packet = parsePacket(datagram)
    if (packet?.kind === 'reg1') {
      if (!this.#requests.take(from.address, now)) return
      this.#deps.sendTo(buildRegistration('reg2', this.#ids.issue(packet.id, from.address, now)), from)
    } else if (packet?.kind === 'reg2') {
      const answer = this.#register(packet.id, from, now)
      const link = this.#links.get(addressOf(from))
      if (link) link.credit += datagram.length
      if (answer && link) link.group.sendOver(link, buildNotice(answer))
      else if (answer) this.#deps.sendTo(buildNotice(answer), from)
    } else if (packet?.kind === 'keepalive' || packet?.kind === 'srt') {
      const link = this.#links.get(addressOf(from)) ?? this.#followStream(datagram, from, now)
      // Without an answer, as in other receivers: the sender registers again when a link stays silent.
      if (!link) {
        if (packet.kind === 'srt') this.#deps.onStranger(datagram)
        return
      }
      link.lastAt = now
      link.credit += datagram.length
      link.measures.receive(now)
      // An echo looks like a keepalive, so two relays with forged links to each other would echo one without end.
      if (packet.kind === 'keepalive') {
        link.measures.rttMillis = readKeepaliveRtt(datagram) ?? link.measures.rttMillis
        if (link.keepalives.take(now)) link.group.sendOver(link, datagram)
      } else this.#forward(datagram, packet.sequenceNumber, link)
    }
  }

  /** Removes silent links and groups without links. To be called about every second. */
  sweep(now: number): void {
    for (const link of this.#links.values()) {
      if (now - link.lastAt > this.#limits.linkSilenceMillisMax) this.#removeLink(link, now)
    }
    for (const group of this.#groups.values()) {
      if (group.links.size === 0 && now - group.emptySince > this.#limits.emptyGroupMillisMax) this.#endGroup(group)
    }
  }

  /** Protects the publisher's group from displacement, in place of the previous publisher's. Ignores other peers. */
  markAdmitted(group: Peer): void {
    if (group instanceof SrtlaGroup && this.#groups.get(group.id) === group) this.#admitted = group
  }

  /** The links of the admitted group. */
  links(now: number): LinkCounters[] {
    return [...(this.#admitted?.links.values() ?? [])]
      .filter((link) => now - link.lastAt <= this.#limits.linkSilenceMillisMax)
      .map((link) => {
        const { id, addr, bytes, pkts, firstAt, lastAt } = link
        return { id, addr, bytes, pkts, firstAt, lastAt, reading: link.group.read(link, now) }
      })
  }

  /**
   * A network that gives a link another port loses what is sent from there until the sender notices, which takes it
   * seconds. The stream itself shows whose the port is: its packets have numbers that no stranger knows.
   */
  #followStream(datagram: Buffer, from: Remote, now: number): Link | undefined {
    const group = this.#admitted
    if (group === undefined || !this.#deps.isOfStream(datagram)) return undefined
    const isKnownHost = [...group.links.values()].some(({ remote }) => remote.address === from.address)
    if (!isKnownHost) return undefined
    return this.#addLink(group, from, now) === 'reg3' ? this.#links.get(addressOf(from)) : undefined
  }

  #forward(datagram: Buffer, sequenceNumber: number | undefined, link: Link): void {
    link.bytes += datagram.length
    link.pkts += 1
    link.group.latestLink = link
    if (sequenceNumber !== undefined) {
      link.unacknowledged.push(sequenceNumber)
      if (link.unacknowledged.length >= packetsPerAck) {
        link.group.sendOver(link, buildAck(link.unacknowledged))
        link.unacknowledged.length = 0
      }
    }
    this.#deps.onSrtPacket(link.group, datagram)
  }

  /** Adds the link to the group. Returns the answer, if there is one. */
  #register(groupId: Buffer, remote: Remote, now: number): 'reg3' | 'reg_err' | 'reg_ngp' | undefined {
    const id = groupId.toString('latin1')
    const known = this.#groups.get(id)
    if (!known && !this.#registrations.take(remote.address, now)) return undefined
    const group = known ?? this.#createGroup(id, groupId, now)
    return group ? this.#addLink(group, remote, now) : 'reg_ngp'
  }

  #addLink(group: SrtlaGroup, remote: Remote, now: number): 'reg3' | 'reg_err' {
    const addr = addressOf(remote)
    const known = this.#links.get(addr)
    if (known?.group === group) {
      known.lastAt = now
      group.latestLink = known
      return 'reg3'
    }
    // A forged registration must not take a working link from the publisher.
    if (known && known.group === this.#admitted && !this.#isStale(known, now)) return 'reg_err'
    if (!this.#hasPlaceForLink(group, now)) return 'reg_err'
    if (known) this.#removeLink(known, now)
    this.#linksCreated += 1
    this.#links.set(addr, group.addLink(`link-${this.#linksCreated}`, addr, remote, now))
    return 'reg3'
  }

  #createGroup(id: string, groupId: Buffer, now: number): SrtlaGroup | undefined {
    const issued = this.#ids.verify(groupId, now)
    if (!issued) return undefined
    if (this.#groups.size >= this.#limits.groupsMax) this.#displaceGroup()
    this.#groupsCreated += 1
    const key = `srtla-${this.#groupsCreated}`
    const group = new SrtlaGroup({ key, id, origin: issued.origin, createdAt: now, sendTo: this.#deps.sendTo })
    this.#groups.set(id, group)
    return group
  }

  /**
   * Ends the oldest group of the subscriber that has the most groups, so that one who registers many groups displaces
   * only those.
   */
  #displaceGroup(): void {
    const byOrigin = new Map<string, { readonly oldest: SrtlaGroup; count: number }>()
    for (const group of this.#groups.values()) {
      if (group === this.#admitted) continue
      const origin = subscriberOf(group.host)
      const counted = byOrigin.get(origin)
      if (counted) counted.count += 1
      // A map keeps the order of insertion.
      else byOrigin.set(origin, { oldest: group, count: 1 })
    }
    const [most] = [...byOrigin.values()].sort((a, b) => b.count - a.count)
    if (most) this.#endGroup(most.oldest)
  }

  /** Removes a stale link of a full group: a network that changes the port of a link leaves the old address behind. */
  #hasPlaceForLink(group: SrtlaGroup, now: number): boolean {
    if (group.links.size < this.#limits.linksPerGroupMax) return true
    const stale = [...group.links.values()].find((link) => this.#isStale(link, now))
    if (stale) this.#removeLink(stale, now)
    return stale !== undefined
  }

  #isStale(link: Link, now: number): boolean {
    return now - link.lastAt > this.#limits.linkStaleMillis
  }

  #removeLink(link: Link, now: number): void {
    this.#links.delete(link.addr)
    link.group.removeLink(link, now)
  }

  #endGroup(group: SrtlaGroup): void {
    for (const addr of group.links.keys()) this.#links.delete(addr)
    group.removeLinks()
    this.#groups.delete(group.id)
    if (this.#admitted === group) this.#admitted = undefined
    this.#deps.onGroupEnded(group)
  }
}
