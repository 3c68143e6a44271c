/**
 * One admitted SRT connection: forwards datagrams between a peer and its end of the engine. The engine has not seen the
 * induction of the peer, which the gate has answered, so the connection begins with one of its own and replaces the
 * cookie of the conclusion.
 */
import { createSocket, type Socket } from 'node:dgram'
import type { RelayRefusal } from '../domain/relay/refusals.ts'
import { now as clockNow } from './clock.ts'
import type { Engine, EngineEnd } from './engine.ts'
import { contain, type Log } from './log.ts'
import { type LossReportCounters, LossReports } from './loss-reports.ts'
import { PacketLoss } from './packet-loss.ts'
import type { Peer } from './peer.ts'
import { PlayerReading } from './player-reading.ts'
import {
  buildInduction,
  buildShutdown,
  destinationOf,
  type Handshake,
  isData,
  isHandshake,
  isLossReport,
  isPassphraseRefusal,
  isRetransmitted,
  isShutdown,
  parseAcknowledgement,
  parseHandshake,
  payloadBytes,
  replaceCookie,
  replaceStreamId,
  sequenceNumberOf,
} from './srt-packets.ts'
import type { Role } from './stream-access.ts'
import type { ThroughputCap } from './throughput-cap.ts'

/** The process of an engine needs a moment until it listens. */
const inductionMillis = 20
/** After this time the peer has given up. */
const openMillisMax = 3_000

export interface ConnectionOptions {
  readonly role: Role
  readonly peer: Peer
  /** The handshake by which the peer was admitted. */
  readonly conclusion: Buffer
  /** That of the handshake. */
  readonly streamId: string | undefined
  /** The hash of the play key that admitted it; undefined for the stream token. */
  readonly playKey: string | undefined
  readonly engine: Engine
  readonly cap: ThroughputCap | undefined
  readonly now: number
  /** For what any datagram may cause. */
  readonly log: Log
  /** The engine refuses the caller, whose connection is closed then. */
  readonly onRefused: (reason: RelayRefusal) => void
  /** Called with the size of each data packet of the peer; once where several copies of it arrive. */
  readonly onData?: ((bytes: number, now: number) => void) | undefined
  /** Called once, when no datagram is forwarded any more. */
  readonly onClosed: (reason: string) => void
}

/** What was received from the peer. Times are in milliseconds. */
export interface ConnectionCounters {
  datagrams: number
  /** Of all datagrams. */
  bytes: number
  /** The packets of the stream: of each the first copy counts, as for its bytes. */
  dataPackets: number
  dataBytes: number
  /** Further copies. */
  copies: number
  /** What was sent again: further copies, and first ones where the packet had been lost. */
  repeats: number
  readonly loss: PacketLoss
  lastAt: number
  /** Infinite before the first data packet. */
  firstDataAt: number
  lastDataAt: number
  rttMillis: number | undefined
  /** The capacity of the network path, as the engine estimates it; undefined before. */
  packetsPerSecondMax: number | undefined
  latencyMillis: number
}

export class SrtConnection {
  readonly role: Role
  readonly peer: Peer
  readonly streamId: string | undefined
  readonly playKey: string | undefined
  readonly openedAt: number
  /** When the engine let the peer in; undefined before. */
  establishedAt: number | undefined
  readonly counters: ConnectionCounters
  /** The SRT socket of the peer. Another one from the same address is a new connection. */
  readonly peerSocketId: number

  readonly #options: ConnectionOptions
  #state: 'opening' | 'open' | 'closed' = 'opening'
  #end: EngineEnd | undefined
  #upstream: Socket | undefined
  #induction: NodeJS.Timeout | undefined
  #engineCookie: number | undefined
  #engineSocketId: number | undefined
  readonly #lossReports: LossReports | undefined
  readonly #reading: PlayerReading | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.role = options.role
    this.peer = options.peer
    this.streamId = options.streamId
    this.playKey = options.playKey
    this.openedAt = options.now
    this.peerSocketId = parseHandshake(options.conclusion)?.socketId ?? 0
    this.counters = {
      datagrams: 0,
      bytes: 0,
      dataPackets: 0,
      dataBytes: 0,
      copies: 0,
      repeats: 0,
      loss: new PacketLoss(),
      lastAt: options.now,
      firstDataAt: Number.POSITIVE_INFINITY,
      lastDataAt: Number.NEGATIVE_INFINITY,
      rttMillis: undefined,
      packetsPerSecondMax: undefined,
      latencyMillis: 0,
    }
    if (this.role === 'play') this.#reading = new PlayerReading(options.now)
    const { loss } = this.counters
    if (this.role === 'publish' && this.peer.bond !== undefined)
      this.#lossReports = new LossReports(this.peer, this.peer.bond, {
        hasArrived: (sequenceNumber) => loss.hasArrived(sequenceNumber),
        latencyMillis: () => this.counters.latencyMillis,
      })
    void this.#open().catch((error: Error) => this.close(error.message))
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Whether it is a player that reads nothing. */
  isStalled(now: number): boolean {
    const { latencyMillis, lastAt } = this.counters
    return this.#reading?.isStalled(latencyMillis, lastAt, now) === true
  }

  /** What is done about lost packets; undefined for a peer with one address. */
  get bonding(): LossReportCounters | undefined {
    return this.#lossReports?.counters
  }

  /** Whether a datagram is data of this connection, by two numbers that only its two ends know. */
  isOwnData(datagram: Buffer): boolean {
    if (!this.isOpen || !isData(datagram) || destinationOf(datagram) !== this.#engineSocketId) return false
    return this.counters.loss.isUnderWay(sequenceNumberOf(datagram))
  }

  /** Forwards a datagram of the peer to the engine. */
  receive(datagram: Buffer, now: number): void {
    if (this.#state === 'closed') return
    const destination = destinationOf(datagram)
    const isRepeatedConclusion = isHandshake(datagram) && destination === 0
    // Any other one is a delayed packet of a former connection from the same address, or a forged one.
    if (!isRepeatedConclusion && (destination === undefined || destination !== this.#engineSocketId)) return
    this.#count(datagram, now)
    if (this.#reading !== undefined) this.#readAcknowledgement(this.#reading, datagram, now)
    if (this.#engineCookie === undefined) return
    if (isHandshake(datagram)) this.#sendConclusion(datagram)
    else if (this.#options.cap) this.#options.cap.push(datagram.length, () => this.#forward(datagram))
    else this.#forward(datagram)
  }

  /** Also ends the connection of the peer and the engine's end. */
  close(reason: string): void {
    if (this.#state === 'closed') return
    const wasOpening = this.#state === 'opening'
    this.#state = 'closed'
    clearInterval(this.#induction)
    this.#lossReports?.close()
    this.peer.send(buildShutdown(this.peerSocketId))
    if (this.#engineSocketId !== undefined) this.#send(buildShutdown(this.#engineSocketId))
    this.#upstream?.close()
    this.#end?.close()
    this.#options.onClosed(wasOpening ? `not established: ${reason}` : reason)
  }

  async #open(): Promise<void> {
    const { engine, role, conclusion } = this.#options
    const end = await engine.open(role, this.peer.protocol)
    this.#end = end
    if (this.#isClosed()) {
      end.close()
      return
    }
    void end.ended.then((reason) => this.close(reason))
    const upstream = createSocket({ type: 'udp4', recvBufferSize: 1 << 21, sendBufferSize: 1 << 21 })
    this.#upstream = upstream
    // Refused datagrams until the engine listens, and after it has ended.
    upstream.on('error', () => {})
    upstream.on('message', (datagram) =>
      contain(this.#options.log, 'a datagram of the engine could not be handled', () =>
        this.#receiveFromEngine(datagram),
      ),
    )
    upstream.connect(end.port, end.address)
    await new Promise<void>((done) => upstream.once('connect', done))
    if (this.#isClosed()) return
    const induction = buildInduction(conclusion)
    const until = performance.now() + openMillisMax
    const send = () => {
      if (performance.now() > until) this.close('the engine does not answer')
      else this.#send(induction)
    }
    send()
    this.#induction = setInterval(send, inductionMillis)
  }

  // A method, since the state changes during an await.
  #isClosed(): boolean {
    return this.#state === 'closed'
  }

  #receiveFromEngine(datagram: Buffer): void {
    if (this.#state === 'closed') return
    if (isHandshake(datagram)) this.#receiveHandshake(datagram)
    else if (isShutdown(datagram)) this.close('ended by the engine')
    else if (!isLossReport(datagram) || this.#lossReports?.take(datagram) !== true) {
      this.#countAcknowledgement(datagram)
      this.peer.send(datagram)
    }
  }

  #receiveHandshake(datagram: Buffer): void {
    const handshake = parseHandshake(datagram)
    if (handshake?.phase === 'induction') this.#receiveCookie(handshake)
    else {
      this.peer.send(datagram)
      if (handshake?.phase === 'conclusion' && handshake.fault === undefined) this.#receiveAgreement(handshake)
      // Any other type is a refusal of the engine.
      else {
        this.#options.onRefused(isPassphraseRefusal(datagram) ? 'passphrase' : 'engine')
        this.close('refused by the engine')
      }
    }
  }

  #receiveCookie({ cookie }: Handshake): void {
    if (this.#engineCookie !== undefined) return
    clearInterval(this.#induction)
    this.#engineCookie = cookie
    this.#sendConclusion(this.#options.conclusion)
  }

  #receiveAgreement({ socketId, latencyMillis }: Handshake): void {
    if (this.#state === 'open') return
    this.#state = 'open'
    this.establishedAt = clockNow()
    this.counters.latencyMillis = latencyMillis
    this.#engineSocketId = socketId
    this.#end?.connected()
  }

  /** What cannot be sent is lost, as on the way. */
  #send(datagram: Buffer): void {
    contain(this.#options.log, 'a datagram could not be passed to the engine', () => this.#upstream?.send(datagram))
  }

  #sendConclusion(conclusion: Buffer): void {
    const streamId = this.#end?.streamId
    const rewritten = streamId === undefined ? conclusion : replaceStreamId(conclusion, streamId)
    this.#send(replaceCookie(rewritten, this.#engineCookie ?? 0))
  }

  /** The end of a connection takes effect here, after all data that the cap has delayed. */
  #forward(datagram: Buffer): void {
    if (this.#state === 'closed') return
    this.#send(datagram)
    if (isData(datagram)) this.#end?.received?.()
    if (isShutdown(datagram)) this.close('ended by the peer')
  }

  #count(datagram: Buffer, now: number): void {
    const { counters } = this
    counters.datagrams += 1
    counters.bytes += datagram.length
    counters.lastAt = now
    if (!isData(datagram)) return
    counters.firstDataAt = Math.min(counters.firstDataAt, now)
    counters.lastDataAt = now
    const [sequenceNumber, isRepeat] = [sequenceNumberOf(datagram), isRetransmitted(datagram)]
    const isFirst = counters.loss.receive(sequenceNumber, isRepeat)
    if (isRepeat || !isFirst) counters.repeats += 1
    // The original may arrive after its repeat.
    if (isFirst || !isRepeat) {
      const lateMillis = this.#lossReports?.receive(sequenceNumber, isRepeat)
      if (lateMillis !== undefined) this.peer.bond?.receiveData({ sequenceNumber, isRepeat, lateMillis })
    }
    if (!isFirst) {
      counters.copies += 1
      return
    }
    counters.dataPackets += 1
    const bytes = payloadBytes(datagram)
    counters.dataBytes += bytes
    this.#options.onData?.(bytes, now)
  }

  #readAcknowledgement(reading: PlayerReading, datagram: Buffer, now: number): void {
    const acknowledgement = parseAcknowledgement(datagram)
    if (acknowledgement) reading.acknowledge(acknowledgement.next, acknowledgement.roomPackets, now)
  }

  #countAcknowledgement(datagram: Buffer): void {
    const acknowledgement = parseAcknowledgement(datagram)
    if (acknowledgement === undefined) return
    const { next, rttMillis, packetsPerSecondMax } = acknowledgement
    if (rttMillis !== undefined) this.counters.rttMillis = rttMillis
    if (packetsPerSecondMax !== undefined) this.counters.packetsPerSecondMax = packetsPerSecondMax
    this.counters.loss.acknowledge(next)
    this.#lossReports?.acknowledge(next)
    if (this.#lossReports) this.peer.bond?.acknowledge(next)
  }
}
