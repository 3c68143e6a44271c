/**
 * Callers that receive the answers of a relay: they get a cookie, or register a group, send conclusions of which some
 * are damaged, and damage most packets of the connections that they get.
 */
import { randomBytes } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildRegistration, parsePacket } from '../../relay-node/srtla-packets.ts'
import { streamToken } from '../relay-node/running.ts'
import { createRandom, type Random } from '../support/random.ts'
import {
  data,
  extension,
  handshake,
  handshakeTypes,
  libraryConclusion,
  read,
  shutdown,
} from '../support/srt-packets.ts'
import { buildPacket, mutate, type RelayTarget } from './datagram-fuzz.ts'

const attemptsMax = 8
/** Of a group, which has sixteen at most. */
const forgedLinks = 20
const attemptMillis = 100
/** The process of an engine takes some time to start. */
const agreementAttemptsMax = 20

export const callKinds = ['publish', 'play', 'srtla'] as const
export type CallKind = (typeof callKinds)[number]

/** How far the conversations got. */
export interface ConversationCounts {
  ended: number
  cookies: number
  groups: number
  publishers: number
  players: number
}

type SendForged = (payload: Buffer, target: RelayTarget, port: number) => Promise<unknown>

/** What arrives at a caller, over one socket or over the links of a group. */
class Line {
  readonly #received: Buffer[] = []
  readonly #sockets: readonly Socket[]
  readonly #target: { readonly host: string; readonly port: number }
  #sent = 0

  private constructor(sockets: readonly Socket[], target: { readonly host: string; readonly port: number }) {
    this.#sockets = sockets
    this.#target = target
    for (const socket of sockets) socket.on('message', (datagram) => void this.#received.push(datagram))
  }

  static async open(random: Random, host: string, port: number, count: number): Promise<Line> {
    // Linux has all addresses that begin with 127. Those of the network share a limit of answers.
    const network = Array.from({ length: 2 }, () => Math.floor(random.next() * 256)).join('.')
    const sockets = Array.from({ length: count }, (_, n) => createSocket('udp4').bind(0, `127.${network}.${n + 1}`))
    await Promise.all(sockets.map((socket) => once(socket, 'listening')))
    for (const socket of sockets) socket.on('error', () => {})
    return new Line(sockets, { host, port })
  }

  /** Over one link after the other, or over that with the index. */
  send(datagram: Buffer, link: number | undefined = this.#sent % this.#sockets.length): void {
    this.#sent += 1
    this.#sockets[link]?.send(datagram, this.#target.port, this.#target.host)
  }

  /** Sends it until an answer fits. @returns undefined when none has come. */
  async ask(question: () => Buffer, fits: (answer: Buffer) => boolean, attempts = attemptsMax, link?: number) {
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      this.send(question(), link)
      for (let waited = 0; waited < attemptMillis; waited += 10) {
        await sleep(10)
        const answer = this.#received.find(fits)
        if (answer !== undefined) return answer
      }
    }
    return undefined
  }

  close(): void {
    for (const socket of this.#sockets) socket.close()
  }
}

const isHandshakeFor = (answer: Buffer, socketId: number) =>
  answer.length >= 64 && answer.readUInt16BE(0) === 0x8000 && read(answer).destination === socketId

export class FuzzCallers {
  readonly counts: ConversationCounts = { ended: 0, cookies: 0, groups: 0, publishers: 0, players: 0 }
  readonly #random: Random
  readonly #sendForged: SendForged

  /** @param sendForged sends a datagram from a forged source. */
  constructor(seed: number, sendForged: SendForged) {
    this.#random = createRandom(seed)
    this.#sendForged = sendForged
  }

  /**
   * One call from its first packet to its last. Calls of a publisher get a connection only while there is no other one.
   */
  async converse(kind: CallKind, target: RelayTarget): Promise<void> {
    const port = { publish: target.publishPort, play: target.playPort, srtla: target.srtlaPort }[kind]
    const line = await Line.open(this.#random, target.host, port, kind === 'srtla' ? 2 : 1)
    if (kind !== 'srtla' || (await this.#register(line, target)))
      await this.#call(line, kind === 'play' ? 'play' : 'publish')
    line.close()
    this.counts.ended += 1
  }

  /** A group with two links that are the caller's, and some that are forged. */
  async #register(line: Line, target: RelayTarget): Promise<boolean> {
    const kindOf = (answer: Buffer) => parsePacket(answer)?.kind
    const request = buildRegistration('reg1', randomBytes(256))
    const issued = await line.ask(
      () => request,
      (answer) => kindOf(answer) === 'reg2',
      attemptsMax,
      0,
    )
    if (issued === undefined) return false
    for (const link of [0, 1]) {
      line.send(mutate(this.#random, issued), link)
      const isLink = (answer: Buffer) => kindOf(answer) === 'reg3'
      if ((await line.ask(() => issued, isLink, attemptsMax, link)) === undefined) return false
    }
    for (let links = 0; links < forgedLinks; links += 1) await this.#sendForged(issued, target, target.srtlaPort)
    this.counts.groups += 1
    return true
  }

  async #call(line: Line, role: 'publish' | 'play'): Promise<void> {
    const random = this.#random
    const socketId = 1 + Math.floor(random.next() * 0x3fff_ffff)
    const induction = await line.ask(
      () => handshake({ version: 4, socketId }),
      (answer) => isHandshakeFor(answer, socketId) && read(answer).cookie !== 0,
    )
    if (induction === undefined) return
    this.counts.cookies += 1
    const { cookie } = read(induction)
    for (let flawed = Math.floor(random.next() * 12); flawed > 0; flawed -= 1)
      line.send(mutateConclusion(random, { role, socketId, cookie }))
    const agreement = await line.ask(
      () =>
        random.chance(0.9) ? whole({ role, socketId, cookie }) : mutateConclusion(random, { role, socketId, cookie }),
      (answer) => isHandshakeFor(answer, socketId) && read(answer).type !== handshakeTypes.induction,
      agreementAttemptsMax,
    )
    if (agreement === undefined || read(agreement).type !== handshakeTypes.conclusion) return
    this.counts[role === 'publish' ? 'publishers' : 'players'] += 1
    await this.#disturb(line, read(agreement).socketId)
  }

  /** @param destination the SRT socket of the engine, with which packets reach it. */
  async #disturb(line: Line, destination: number): Promise<void> {
    const random = this.#random
    let sequenceNumber = 1
    for (let burst = 0; burst < 20; burst += 1) {
      for (let n = 0; n < 10; n += 1) {
        sequenceNumber = (sequenceNumber + 1) & 0x7fff_ffff
        const packet = random.chance(0.3)
          ? data(sequenceNumber, { destination })
          : mutate(random, buildPacket(random, destination))
        // Else the gate drops it.
        if (packet.length >= 16 && random.chance(0.9)) packet.writeUInt32BE(destination, 12)
        line.send(packet)
      }
      await sleep(5)
    }
    // Without it a publisher keeps the place of the next one for five seconds.
    if (random.chance(0.8)) line.send(shutdown(destination))
  }
}

interface Call {
  readonly role: 'publish' | 'play'
  readonly socketId: number
  readonly cookie: number
}

const whole = ({ role, socketId, cookie }: Call): Buffer =>
  libraryConclusion({ socketId, cookie, streamId: `${role}/live/${streamToken}` })

/** Most of them still prove the address. */
function mutateConclusion(random: Random, call: Call): Buffer {
  const packet = random.chance(0.3)
    ? Buffer.concat([whole(call), extension(random.pick([1, 3, 5, 6, 7, 8]), randomBytes(random.pick([0, 4, 64])))])
    : mutate(random, whole(call))
  if (packet.length >= 64 && random.chance(0.8)) {
    packet.writeUInt16BE(0x8000, 0)
    packet.writeUInt32BE(0, 12)
    packet.writeUInt32BE(handshakeTypes.conclusion, 36)
    packet.writeUInt32BE(call.socketId, 40)
    packet.writeUInt32BE(call.cookie, 44)
  }
  return packet
}
