/**
 * An SRTLA sender on real UDP sockets, as an encoder with several networks runs it: SRT packets of a local caller leave
 * over the link with the most free capacity, and the answers of all links return to the caller. Each link can lose or
 * delay datagrams, or be dead.
 */
import { randomBytes } from 'node:crypto'
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { buildRegistration, parsePacket } from '../../relay-node/srtla-packets.ts'
import { type LinkConditions, SenderLink, type Target } from './srtla-sender-link.ts'
import { readSrtAck, readSrtNak } from './srtla-sender-srt.ts'

const housekeepingMillis = 250
/** How long the answer to a registration may take before another group is requested. */
const registrationMillisMax = 1_000

export interface SenderOptions extends Target {
  /** One entry per link. */
  readonly links: readonly LinkConditions[]
  /** As `Math.random`, for the conditions of the links. */
  readonly random?: () => number
}

export class SrtlaSender {
  readonly links: readonly SenderLink[]
  /** How often a group was registered: 1 while the receiver has the first. */
  groupsRegistered = 0
  /** Called for each SRT packet of the caller that leaves over a link, with whether it will arrive. */
  onSent: (datagram: Buffer, link: SenderLink, willArrive: boolean) => void = () => {}
  /** Called for each SRT packet of the receiver, once per link over which it arrives. */
  onReceived: (datagram: Buffer) => void = () => {}
  readonly #local: Socket
  readonly #housekeeping: NodeJS.Timeout
  #caller: RemoteInfo | undefined
  #groupId = randomBytes(256)
  /** The link over which a group was requested. */
  #requestedOver: SenderLink | undefined
  #registeringSince = Number.NEGATIVE_INFINITY

  private constructor(local: Socket, links: readonly SenderLink[]) {
    this.#local = local
    this.links = links
    local.on('message', (datagram, caller) => this.#onCallerPacket(datagram, caller))
    for (const link of links) link.onDatagram = (datagram) => this.#onDatagram(link, datagram)
    this.#housekeeping = setInterval(() => this.#keepLinks(), housekeepingMillis)
    this.#keepLinks()
  }

  static async start({ links, random, ...target }: SenderOptions): Promise<SrtlaSender> {
    const local = createSocket({ type: 'udp4', recvBufferSize: 1 << 21 })
    local.bind(0, '127.0.0.1')
    await once(local, 'listening')
    return new SrtlaSender(
      local,
      await Promise.all(links.map((conditions) => SenderLink.open(target, conditions, random))),
    )
  }

  /** The local port for the SRT caller. */
  get port(): number {
    return this.#local.address().port
  }

  /** Cuts all links. */
  kill(): void {
    for (const link of this.links) link.kill()
  }

  revive(): void {
    for (const link of this.links) link.revive()
  }

  close(): void {
    clearInterval(this.#housekeeping)
    this.#local.close()
    for (const link of this.links) link.close()
  }

  #onCallerPacket(datagram: Buffer, caller: RemoteInfo): void {
    this.#caller = caller
    const packet = parsePacket(datagram)
    const [best] = this.links.filter((link) => link.isActive).sort((a, b) => b.score - a.score)
    if (best === undefined) return
    const willArrive = best.sendSrt(datagram, packet?.kind === 'srt' ? packet.sequenceNumber : undefined)
    this.onSent(datagram, best, willArrive)
  }

  #onDatagram(link: SenderLink, datagram: Buffer): void {
    const packet = parsePacket(datagram)
    switch (packet?.kind) {
      case 'reg_ngp':
        // Not a sign of life: the receiver does not know the group.
        if (this.links.every((other) => !other.isActive) && !this.#isRegistering) this.#requestGroup(link)
        return
      case 'reg2':
        if (link === this.#requestedOver) this.#onGroupRegistered(packet.id)
        return
      case 'reg3':
        link.onRegistered()
        return
      case 'keepalive':
        link.onAnswer()
        return
      case 'ack':
        link.onAnswer()
        for (const number of packet.sequenceNumbers) for (const member of this.links) member.onSrtlaAck(number)
        return
      case 'srt':
        link.onAnswer()
        this.#onReceiverPacket(datagram)
    }
  }

  #onReceiverPacket(datagram: Buffer): void {
    this.onReceived(datagram)
    const acknowledged = readSrtAck(datagram)
    const lost = readSrtNak(datagram)
    for (const link of this.links) {
      if (acknowledged !== undefined) link.onSrtAck(acknowledged)
      for (const number of lost) link.onSrtNak(number)
    }
    if (this.#caller) this.#local.send(datagram, this.#caller.port, this.#caller.address)
  }

  /** Answers to earlier registrations of other links may arrive meanwhile. */
  get #isRegistering(): boolean {
    return performance.now() - this.#registeringSince < registrationMillisMax
  }

  #requestGroup(link: SenderLink): void {
    this.#requestedOver = link
    this.#registeringSince = performance.now()
    link.send(buildRegistration('reg1', this.#groupId))
  }

  #onGroupRegistered(id: Buffer): void {
    if (!id.subarray(0, 128).equals(this.#groupId.subarray(0, 128))) return
    this.#requestedOver = undefined
    this.#registeringSince = performance.now()
    this.#groupId = Buffer.from(id)
    this.groupsRegistered += 1
    for (const link of this.links) link.send(buildRegistration('reg2', id))
  }

  #keepLinks(): void {
    for (const link of this.links) {
      if (link.isActive) link.sendKeepaliveWhenIdle()
      else {
        link.reset()
        link.send(buildRegistration('reg2', this.#groupId))
      }
    }
  }
}
