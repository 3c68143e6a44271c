/** A link of an SRTLA sender: a socket with the conditions of a network, and a window that follows its capacity. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { buildNotice } from '../../relay-node/srtla-packets.ts'
import { EmulatedPath, type PathConditions } from './emulated-path.ts'
import { isBefore } from './srtla-sender-srt.ts'

/** Of each direction; the bandwidth is that of the way to the receiver. */
export interface LinkConditions extends PathConditions {
  /** The address of the receiver over which the link reaches it, where it has several. */
  readonly host?: string
}

/** A link is inactive when it received nothing for longer. */
const silenceMillisMax = 4_000
const keepaliveMillis = 1_000
const inFlightMax = 256

/** In thousandths of a packet, so that it can change slowly. */
const window = { initial: 20_000, min: 1_000, max: 60_000, perNak: -100, perAck: 1, perAckWhenFull: 29 } as const

export class SenderLink {
  onDatagram: (datagram: Buffer) => void = () => {}
  /** SRT packets that left over the link, including those that the conditions dropped. */
  srtPacketsSent = 0
  registrations = 0
  /** Of all datagrams in both directions, also of those that were lost. */
  bytes = 0
  readonly #target: Target
  #socket: Socket
  readonly #up: EmulatedPath
  readonly #down: EmulatedPath
  readonly #inFlight = new Set<number>()
  #window: number = window.initial
  #isRegistered = false
  #answeredAt = Number.NEGATIVE_INFINITY
  #sentAt = Number.NEGATIVE_INFINITY

  private constructor(target: Target, socket: Socket, conditions: LinkConditions, random?: () => number) {
    const { kbps: _kbps, ...downConditions } = conditions
    this.#target = target
    this.#up = new EmulatedPath(conditions, random)
    this.#down = new EmulatedPath(downConditions, random)
    this.#socket = this.#listen(socket)
  }

  static async open(target: Target, conditions: LinkConditions, random?: () => number): Promise<SenderLink> {
    const own = { ...target, host: conditions.host ?? target.host }
    return new SenderLink(own, await connect(own), conditions, random)
  }

  /** The network gives the link another address, as a NAT does. The receiver still sends to the former one. */
  async rebind(): Promise<void> {
    const socket = await connect(this.#target)
    this.#socket.close()
    this.#socket = this.#listen(socket)
  }

  get isActive(): boolean {
    return this.#isRegistered && performance.now() - this.#answeredAt < silenceMillisMax
  }

  /** The free capacity: the link with the highest score sends the next packet. */
  get score(): number {
    return this.#window / (this.#inFlight.size + 1)
  }

  kill(): void {
    this.#up.isDead = true
    this.#down.isDead = true
  }

  revive(): void {
    this.#up.isDead = false
    this.#down.isDead = false
  }

  /** @returns whether it will arrive. */
  send(datagram: Buffer): boolean {
    this.#sentAt = performance.now()
    this.bytes += datagram.length
    return this.#up.pass(datagram.length, () => this.#socket.send(datagram, () => {}))
  }

  /** @returns whether it will arrive. */
  sendSrt(datagram: Buffer, sequenceNumber: number | undefined): boolean {
    this.srtPacketsSent += 1
    if (sequenceNumber !== undefined) {
      this.#inFlight.add(sequenceNumber)
      const [oldest] = this.#inFlight
      if (this.#inFlight.size > inFlightMax && oldest !== undefined) this.#inFlight.delete(oldest)
    }
    return this.send(datagram)
  }

  sendKeepaliveWhenIdle(): void {
    if (performance.now() - this.#sentAt < keepaliveMillis) return
    const keepalive = Buffer.concat([buildNotice('keepalive'), Buffer.alloc(8)])
    keepalive.writeDoubleBE(performance.now(), 2)
    this.send(keepalive)
  }

  onRegistered(): void {
    this.registrations += 1
    this.#isRegistered = true
    this.onAnswer()
  }

  onAnswer(): void {
    this.#answeredAt = performance.now()
  }

  onSrtlaAck(sequenceNumber: number): void {
    const isFull = this.#inFlight.size * 1_000 > this.#window
    if (this.#inFlight.delete(sequenceNumber) && isFull) this.#resize(window.perAckWhenFull)
    if (this.isActive) this.#resize(window.perAck)
  }

  onSrtAck(upTo: number): void {
    for (const number of this.#inFlight) if (isBefore(number, upTo)) this.#inFlight.delete(number)
  }

  onSrtNak(sequenceNumber: number): void {
    if (this.#inFlight.delete(sequenceNumber)) this.#resize(window.perNak)
  }

  /** Starts carefully after a failure. */
  reset(): void {
    if (this.#isRegistered) this.#window = window.min
    this.#isRegistered = false
    this.#inFlight.clear()
  }

  close(): void {
    this.#up.close()
    this.#down.close()
    this.#socket.close()
  }

  #resize(change: number): void {
    this.#window = Math.min(Math.max(this.#window + change, window.min), window.max)
  }

  #listen(socket: Socket): Socket {
    // A refused datagram, while no receiver runs, is a lost one.
    return socket
      .on('error', () => {})
      .on('message', (datagram) => {
        this.bytes += datagram.length
        this.#down.pass(datagram.length, () => this.onDatagram(datagram))
      })
  }
}

export interface Target {
  readonly host: string
  readonly srtlaPort: number
}

async function connect({ host, srtlaPort }: Target): Promise<Socket> {
  const socket = createSocket({ type: isIPv6(host) ? 'udp6' : 'udp4', recvBufferSize: 1 << 21 })
  socket.connect(srtlaPort, host)
  await once(socket, 'connect')
  return socket
}
