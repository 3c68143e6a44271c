/**
 * The gate in front of the SRT engine. It answers the first phase of the SRT handshake itself, without a state per
 * caller, and admits a caller by the stream id of the second phase. Only datagrams of admitted callers reach the
 * engine, so forged and random datagrams cost neither memory nor a process.
 */
import type { RelayRefusal } from '../domain/relay/refusals.ts'
import type { Admission } from './admission.ts'
import type { Engine } from './engine.ts'
import { HandshakeCookies } from './handshake-cookies.ts'
import { type Log, limitLog } from './log.ts'
import type { Peer } from './peer.ts'
import { Refusals } from './refusals.ts'
import { ReplyBudget } from './reply-budget.ts'
import { SrtConnection } from './srt-connection.ts'
import {
  buildInductionReply,
  buildRejection,
  destinationOf,
  type Handshake,
  isHandshake,
  parseHandshake,
  type Rejection,
} from './srt-packets.ts'
import { buildNotice, isRegistration } from './srtla-packets.ts'
import { StartBudget } from './start-budget.ts'
import { judgeAccess, type Role } from './stream-access.ts'
import { ThroughputCap } from './throughput-cap.ts'

/** SRT's own limit (SRTO_PEERIDLETIMEO). Callers send a keepalive every second. */
const idleMillisMax = 5_000
/**
 * After this time without a packet a publisher gives way to another caller. Its connection goes on when none comes, as
 * that of an encoder whose links have all vanished for a while.
 */
const quietMillisMax = 1_500
/** Sweeps with more time between them mean that this process stood still: packets wait that nothing has read. */
const sweepGapMillisMax = 1_000
const playersMax = 8

export interface GateOptions {
  /** Undefined: all callers are refused. */
  readonly engine: Engine | undefined
  /** Undefined: all callers are refused until {@link SrtGate.admit} sets it. */
  readonly admission: Admission | undefined
  readonly capMbps: number
  readonly log: Log
  /** The pause before a refusal. A second by default. */
  readonly refusalMillis?: number
  /** A caller gets a refusal. */
  readonly onRefused?: (reason: RelayRefusal, role: Role) => void
  /** The publisher's connection was opened or closed. */
  readonly onPublisher?: (connection: SrtConnection | undefined) => void
  /** Called with the size of each data packet of the publisher. */
  readonly onPublished?: (bytes: number, now: number) => void
}

interface Call {
  readonly conclusion: Buffer
  readonly streamId: string | undefined
  /** The hash of the play key that admits it; undefined for the stream token. */
  readonly playKey: string | undefined
}

export class SrtGate {
  #admission: Admission | undefined
  /** The hashes of the play keys with which callers were admitted, until they are taken. */
  readonly #usedPlayKeys = new Set<string>()
  readonly #options: GateOptions
  readonly #connections = { publish: new Map<string, SrtConnection>(), play: new Map<string, SrtConnection>() }
  readonly #refusals: Refusals
  readonly #limitedLog: Log
  readonly #starts = new StartBudget()
  #lastCallAt: number | undefined
  #sweptAt: number | undefined
  /** When the process went on after it had stood still. */
  #wokenAt = Number.NEGATIVE_INFINITY
  readonly #cookies = new HandshakeCookies()
  /**
   * SRTLA has its own, so that a flood of inductions with forged addresses does not keep out an encoder that has
   * registered.
   */
  readonly #inductions = { srt: new ReplyBudget(), srtla: new ReplyBudget() }

  constructor(options: GateOptions) {
    this.#options = options
    this.#admission = options.admission
    this.#limitedLog = limitLog(options.log)
    this.#refusals = new Refusals(options.refusalMillis ?? 1_000)
  }

  get admission(): Admission | undefined {
    return this.#admission
  }

  /** Sets whom the gate admits from now on, and closes the connections that it would not admit any more. */
  admit(admission: Admission): void {
    this.#admission = admission
    for (const [role, connections] of Object.entries(this.#connections) as [Role, Map<string, SrtConnection>][]) {
      for (const connection of connections.values()) {
        const access = judgeAccess(role, connection.streamId, admission)
        if (access.objection !== undefined) connection.close('its key or token was withdrawn')
      }
    }
  }

  /** The hashes of the play keys with which callers were admitted since the last call, and of those that play. */
  takeUsedPlayKeys(): string[] {
    const used = new Set(this.#usedPlayKeys)
    this.#usedPlayKeys.clear()
    for (const { playKey } of this.#connections.play.values()) if (playKey !== undefined) used.add(playKey)
    return [...used]
  }

  /** The connection of the publisher, which may still be opening. There is one at most. */
  get publisher(): SrtConnection | undefined {
    return this.#connections.publish.values().next().value
  }

  /** The connections that play. */
  get players(): SrtConnection[] {
    return [...this.#connections.play.values()].filter(({ isOpen }) => isOpen)
  }

  /** When a caller on the ports for publishers proved its address last; undefined when none has. */
  get lastCallAt(): number | undefined {
    return this.#lastCallAt
  }

  /** When a caller of the role was let in last; undefined when none has been. */
  establishedAt(role: Role): number | undefined {
    const times = [...this.#connections[role].values()].flatMap(({ establishedAt }) => establishedAt ?? [])
    return times.length === 0 ? undefined : Math.max(...times)
  }

  /**
   * Handles a datagram that was received from a peer on the port of a role.
   * @param now milliseconds of a clock that never goes back.
   */
  receive(role: Role, datagram: Buffer, peer: Peer, now: number): void {
    const connection = this.#connections[role].get(peer.key)
    if (isHandshake(datagram) && destinationOf(datagram) === 0) this.#receiveHandshake(role, datagram, peer, now)
    else if (connection !== undefined) connection.receive(datagram, now)
    else if (isRegistration(datagram)) this.#refuseRegistration(role, peer, now)
  }

  /** The peer has no network path left. */
  endPeer(role: Role, peer: Peer): void {
    this.#connections[role].get(peer.key)?.close('the peer has no link left')
  }

  /** Closes the connections whose peers have vanished. */
  sweep(now: number): void {
    if (this.#sweptAt !== undefined && now - this.#sweptAt > sweepGapMillisMax) this.#wokenAt = now
    this.#sweptAt = now
    for (const connection of this.#all()) {
      if (this.#quietMillis(connection, now) > idleMillisMax) connection.close('timed out')
    }
    this.#cookies.sweep(now)
  }

  /** Closes all connections, with a notice to their peers. */
  close(reason: string): void {
    for (const connection of this.#all()) connection.close(reason)
    this.#refusals.close()
  }

  #all(): SrtConnection[] {
    return [...this.#connections.publish.values(), ...this.#connections.play.values()]
  }

  #receiveHandshake(role: Role, datagram: Buffer, peer: Peer, now: number): void {
    const handshake = parseHandshake(datagram)
    // A relay that answered replies would, after one forged datagram, exchange answers with another one for ever. No
    // socket has the id 0, with which the reply to a request would look like a request.
    if (handshake === undefined || handshake.isReply || handshake.socketId === 0) return
    if (handshake.phase !== 'conclusion') {
      this.#answerFirst(role, datagram, handshake, peer, now)
      return
    }
    const current = this.#connections[role].get(peer.key)
    if (handshake.fault === undefined && current?.peerSocketId === handshake.socketId) current.receive(datagram, now)
    else if (this.#isProven(role, peer, handshake, current, now)) this.#decide(role, datagram, handshake, peer, now)
  }

  #answerFirst(role: Role, handshake: Buffer, { phase, socketId }: Handshake, peer: Peer, now: number): void {
    if (!this.#inductions[peer.protocol].take(peer.host, now)) return
    if (phase === 'induction')
      peer.send(buildInductionReply(handshake, this.#cookies.issue({ role, peerKey: peer.key, socketId }, now)))
    else {
      this.#options.onRefused?.('bad_mode', role)
      peer.send(buildRejection(handshake, 'bad_mode'))
    }
  }

  /**
   * A socket whose handshake began before the present connection does not replace it, except while that has sent no
   * data.
   */
  #isProven(
    role: Role,
    peer: Peer,
    { socketId, cookie }: Handshake,
    current: SrtConnection | undefined,
    now: number,
  ): boolean {
    const isPreviousValid = current?.counters.dataPackets === 0
    return this.#cookies.isValid({ role, peerKey: peer.key, socketId }, cookie, now, isPreviousValid)
  }

  /** An encoder that sends SRTLA to a port of SRT would wait for ever. */
  #refuseRegistration(role: Role, peer: Peer, now: number): void {
    if (!this.#inductions.srt.take(peer.host, now)) return
    this.#options.onRefused?.('srtla_at_srt_port', role)
    peer.send(buildNotice('reg_err'))
  }

  #decide(role: Role, conclusion: Buffer, { fault, streamId }: Handshake, peer: Peer, now: number): void {
    const { engine } = this.#options
    if (role === 'publish') this.#lastCallAt = now
    const access = judgeAccess(role, streamId, this.#admission)
    const objection = fault ?? access.objection ?? this.#findConflict(role, peer, now)
    if (objection !== undefined) this.#refuse(role, peer, conclusion, objection)
    else if (engine === undefined) this.#refuse(role, peer, conclusion, 'down')
    else if (this.#starts.take(role, peer.host, now))
      this.#open(engine, role, { conclusion, streamId, playKey: access.playKey }, peer, now)
  }

  #refuse(role: Role, peer: Peer, conclusion: Buffer, rejection: Rejection): void {
    this.#refusals.refuse(peer, conclusion, rejection, () => this.#options.onRefused?.(rejection, role))
  }

  #findConflict(role: Role, peer: Peer, now: number): Rejection | undefined {
    const others = [...this.#connections[role].values()].filter((connection) => connection.peer.key !== peer.key)
    if (role === 'publish') return others.every((other) => this.#isQuiet(other, now)) ? undefined : 'conflict'
    return others.length < playersMax ? undefined : 'overload'
  }

  #isQuiet(connection: SrtConnection, now: number): boolean {
    return this.#quietMillis(connection, now) > quietMillisMax
  }

  #quietMillis({ counters }: SrtConnection, now: number): number {
    return now - Math.max(counters.lastAt, this.#wokenAt)
  }

  #open(engine: Engine, role: Role, call: Call, peer: Peer, now: number): void {
    const { log, capMbps, onPublisher, onPublished } = this.#options
    const connections = this.#connections[role]
    this.#refusals.withdraw(peer)
    connections.get(peer.key)?.close('replaced by a new connection from the same address')
    if (role === 'publish') this.publisher?.close('it was quiet, and another publisher has come')
    const cap = role === 'publish' ? new ThroughputCap(capMbps) : undefined
    const connection = new SrtConnection({
      role,
      peer,
      ...call,
      engine,
      cap,
      now,
      log: this.#limitedLog,
      onRefused: (reason) => this.#options.onRefused?.(reason, role),
      onData: role === 'publish' ? onPublished : undefined,
      onClosed: (reason) => {
        cap?.close()
        if (connections.get(peer.key) === connection) connections.delete(peer.key)
        log('info', `${role} connection closed`, { reason })
        if (role === 'publish') onPublisher?.(this.publisher)
      },
    })
    connections.set(peer.key, connection)
    this.#cookies.admit({ role, peerKey: peer.key }, now)
    if (call.playKey !== undefined) this.#usedPlayKeys.add(call.playKey)
    log('info', `${role} connection admitted`)
    if (role === 'publish') onPublisher?.(connection)
  }
}
