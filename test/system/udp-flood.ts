/**
 * Sends garbage, or questions, from many addresses of this machine, in a process of its own, as fast as it can up to a
 * rate.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { buildRegistration } from '../../relay-node/srtla-packets.ts'
import { handshake } from '../support/srt-packets.ts'

export interface FloodTarget {
  readonly host: string
  readonly ports: readonly number[]
  /**
   * Sends questions of callers, to the first port of SRT and to the second of SRTLA, from this number of networks. Else
   * garbage.
   */
  readonly networks?: number
  readonly perSecond?: number
}

const addresses = 1_000
const tickMillis = 5

export interface Flood {
  untilSent(datagrams: number): Promise<void>
  /** Ends the flood when this many datagrams have been sent, however long that takes. */
  stop(datagramsMin?: number): Promise<void>
}

export function startFlood(target: FloodTarget): Flood {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(target)], { execArgv: ['--import', 'tsx'] })
  let ended: Promise<void> | undefined
  return {
    untilSent: (datagrams) => untilSent(child, datagrams),
    stop(datagramsMin = 0) {
      ended ??= end(child, datagramsMin)
      return ended
    },
  }
}

async function untilSent(child: ChildProcess, datagrams: number): Promise<void> {
  const answer = once(child, 'message')
  child.send(datagrams)
  await answer
}

async function end(child: ChildProcess, datagramsMin: number): Promise<void> {
  await untilSent(child, datagramsMin)
  child.kill('SIGKILL')
}

/** Truncated and mutated handshakes of SRT and SRTLA, SRTLA registrations with random ids, and random bytes. */
function createGarbage(): Buffer {
  if (randomInt(5) === 0) return buildRegistration(randomInt(2) === 0 ? 'reg1' : 'reg2', randomBytes(256))
  const garbage = randomBytes(randomInt(1, 400))
  const types = [0x8000, 0x8002, 0x8005, 0x9000, 0x9100, 0x9200, 0x9201, 0x9202]
  const type = types[randomInt(types.length * 2)]
  if (type !== undefined && garbage.length >= 2) garbage.writeUInt16BE(type, 0)
  // The type and the phase of a handshake for a new connection.
  if (type === 0x8000 && garbage.length >= 48) {
    garbage.writeUInt32BE(0, 12)
    garbage.writeUInt32BE(randomInt(2) === 0 ? 1 : 0xffff_ffff, 36)
  }
  return garbage
}

async function flood({ host, ports, networks, perSecond = 100_000 }: FloodTarget): Promise<void> {
  const sockets = await Promise.all(Array.from({ length: addresses }, (_, n) => openSocket(n, networks)))
  const questions = () => [handshake({ version: 4 }), buildRegistration('reg1', randomBytes(256))]
  // A number that is divided by the number of ports, so that each kind of question goes to one port.
  const garbage = Array.from({ length: 500 }, () => (networks === undefined ? [createGarbage()] : questions())).flat()
  const startedAt = performance.now()
  let sent = 0
  let datagramsMin = Number.POSITIVE_INFINITY
  process.on('message', (count) => {
    datagramsMin = Number(count)
  })
  setInterval(() => {
    const due = Math.min(((performance.now() - startedAt) / 1000) * perSecond, sent + perSecond / 20)
    for (; sent < due; sent += 1) {
      sockets[sent % sockets.length]?.send(garbage[sent % garbage.length] ?? '', ports[sent % ports.length], host)
    }
    if (sent < datagramsMin) return
    datagramsMin = Number.POSITIVE_INFINITY
    process.send?.('sent')
  }, tickMillis)
}

async function openSocket(n: number, networks = 4): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', lookup: (address, _options, done) => done(null, address, 4) })
  // Linux has all addresses that begin with 127.
  const listening = once(socket, 'listening')
  socket.bind(0, `127.1.${n % networks}.${Math.floor(n / networks) + 1}`)
  await listening
  socket.on('error', () => {})
  return socket
}

const [argument] = process.argv.slice(2)
if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url) && argument !== undefined)
  await flood(JSON.parse(argument) as FloodTarget)
