/** A gate whose engine agrees to every handshake, and callers without sockets. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { type Admission, admitPlainToken } from '../../relay-node/admission.ts'
import type { Engine } from '../../relay-node/engine.ts'
import type { Bond, Peer } from '../../relay-node/peer.ts'
import { SrtGate } from '../../relay-node/srt-gate.ts'
import type { Role } from '../../relay-node/stream-access.ts'
import { conclusion, handshake, handshakeTypes, read } from '../support/srt-packets.ts'
import { eventually } from './running.ts'

export const token = 'Ab12Cd34'
export const publish = `publish/live/${token}`
export const play = `play/live/${token}`
const engineCookie = 4711
export const engineSocketId = 99

/** A listener on a real socket that agrees to every handshake, and records what it receives afterwards. */
async function givenEngine() {
  const opened: { role: Role; received: Buffer[]; send(packet: Buffer): void; end(): void; isClosed: boolean }[] = []
  const engine: Engine = {
    name: 'srt-live-transmit',
    async open(role) {
      const socket = createSocket('udp4').bind(0, '127.0.0.1')
      await once(socket, 'listening')
      let end = () => {}
      const ended = new Promise<string>((done) => {
        end = () => done('the engine has ended')
      })
      let port = 0
      const send = (packet: Buffer) => socket.send(packet, port)
      const opening = { role, received: [] as Buffer[], send, end, isClosed: false }
      opened.push(opening)
      socket.on('message', (packet, from) => {
        port = from.port
        const isHandshake = packet.readUInt16BE(0) === 0x8000
        if (!isHandshake) return void opening.received.push(packet)
        const isInduction = read(packet).type === handshakeTypes.induction
        if (!isInduction && read(packet).cookie !== engineCookie) return
        const reply = isInduction ? { cookie: engineCookie } : { type: handshakeTypes.conclusion }
        socket.send(handshake({ ...reply, socketId: engineSocketId, destination: read(packet).socketId }), from.port)
      })
      onTestFinished(() => void socket.close())
      const close = () => {
        opening.isClosed = true
      }
      return { address: '127.0.0.1', port: socket.address().port, ended, connected() {}, close }
    },
    close: async () => {},
  }
  return { engine, opened }
}

interface GivenGate {
  readonly refusalMillis?: number
  readonly capMbps?: number
  /** That of the owner's token where it is absent. */
  readonly admission?: Admission | undefined
}

export async function givenGate({ refusalMillis = 10, capMbps = 48, ...given }: GivenGate = {}) {
  const { engine, opened } = await givenEngine()
  const published: number[] = []
  const gate = new SrtGate({
    engine,
    admission: 'admission' in given ? given.admission : admitPlainToken(token),
    capMbps,
    log: () => {},
    refusalMillis,
    onPublished: (bytes) => void published.push(bytes),
  })
  onTestFinished(() => gate.close('the test is over'))
  return { gate, opened, published }
}

/** A caller at an address, which records what it receives. */
export function createCaller(key: string, bond?: Bond) {
  const received: Buffer[] = []
  const host = key.slice(0, key.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1')
  const send = (datagram: Buffer) => void received.push(datagram)
  const peer: Peer = { key, host, protocol: 'srt', send, ...(bond ? { bond } : {}) }
  return { peer, received, last: () => received.at(-1) ?? Buffer.alloc(64) }
}

export type Caller = ReturnType<typeof createCaller>

export function call(
  gate: SrtGate,
  caller: Caller,
  streamId: string | undefined,
  more: { role?: Role; socketId?: number; now?: number } = {},
) {
  const { role = 'publish', socketId = 77, now = 1_000 } = more
  gate.receive(role, handshake({ socketId, version: 4 }), caller.peer, now)
  const { cookie } = read(caller.last())
  gate.receive(role, conclusion({ socketId, cookie, ...(streamId ? { streamId } : {}) }), caller.peer, now)
}

export const admit = async (
  gate: SrtGate,
  caller: Caller,
  streamId = publish,
  role: Role = 'publish',
  socketId = 77,
) => {
  call(gate, caller, streamId, { role, socketId })
  await eventually(
    () => caller.received.some((packet) => read(packet).type === handshakeTypes.conclusion),
    (agreed) => agreed,
  )
}

export const rejectionOf = async (caller: Caller) => {
  await eventually(
    () => caller.received.length,
    (count) => count === 2,
  )
  return read(caller.last()).type
}
