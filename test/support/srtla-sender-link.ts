/** A link of an SRTLA sender: a socket with the conditions of a network, and a window that follows its capacity. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { buildNotice } from '../../relay-node/srtla-packets.ts'
import { isBefore } from './srtla-sender-srt.ts'

export interface LinkConditions {
  /** In each direction. */
  readonly lossPercent?: number
  /** In each direction. */
  readonly delayMillis?: number
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
  lossPercent: number
  delayMillis: number
  readonly #socket: Socket
  readonly #delayed = new Set<NodeJS.Timeout>()
  readonly #inFlight = new Set<number>()
  #window: number = window.initial
  #isDead = false
  #isRegistered = false
  #answeredAt = Number.NEGATIVE_INFINITY
  #sentAt = Number.NEGATIVE_INFINITY

  private constructor(socket: Socket, { lossPercent = 0, delayMillis = 0 }: LinkConditions) {
    this.#socket = socket
    this.lossPercent = lossPercent
    this.delayMillis = delayMillis
    socket.on('message', (datagram) => this.#impair(() => this.onDatagram(datagram)))
    // A refused datagram, while no receiver runs, is a lost one.
    socket.on('error', () => {})
  }

  static async open(host: string, srtlaPort: number, conditions: LinkConditions): Promise<SenderLink> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 21 })
    socket.connect(srtlaPort, host)
    await once(socket, 'connect')
    return new SenderLink(socket, conditions)
  }

  get isActive(): boolean {
    return this.#isRegistered && performance.now() - this.#answeredAt < silenceMillisMax
  }

  /** The free capacity: the link with the highest score sends the next packet. */
  get score(): number {
    return this.#window / (this.#inFlight.size + 1)
  }

  kill(): void {
    this.#isDead = true
  }

  revive(): void {
    this.#isDead = false
  }

  send(datagram: Buffer): void {
    this.#sentAt = performance.now()
    this.#impair(() => this.#socket.send(datagram, () => {}))
  }

  sendSrt(datagram: Buffer, sequenceNumber: number | undefined): void {
    this.srtPacketsSent += 1
    if (sequenceNumber !== undefined) {
      this.#inFlight.add(sequenceNumber)
      const [oldest] = this.#inFlight
      if (this.#inFlight.size > inFlightMax && oldest !== undefined) this.#inFlight.delete(oldest)
    }
    this.send(datagram)
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
    for (const timer of this.#delayed) clearTimeout(timer)
    this.#delayed.clear()
    this.#socket.close()
  }

  #resize(change: number): void {
    this.#window = Math.min(Math.max(this.#window + change, window.min), window.max)
  }

  /** Runs `pass` under the conditions of the link, for a datagram in either direction. */
  #impair(pass: () => void): void {
    if (this.#isDead || Math.random() * 100 < this.lossPercent) return
    if (this.delayMillis === 0) {
      pass()
      return
    }
    const timer = setTimeout(() => {
      this.#delayed.delete(timer)
      if (!this.#isDead) pass()
    }, this.delayMillis)
    this.#delayed.add(timer)
  }
}
