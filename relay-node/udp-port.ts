/** A UDP port that receives streams. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import type { Log } from './log.ts'
import type { Remote } from './peer.ts'

const bufferBytes = 4 * 1024 * 1024
const logMillis = 10_000

export interface UdpPort {
  readonly port: number
  receive(onDatagram: (datagram: Buffer, from: Remote) => void): void
  send(datagram: Buffer, to: Remote): void
  close(): Promise<void>
}

/** Binds a free port. Rejects when none can be bound. */
export async function openUdpPort(host: string, log: Log): Promise<UdpPort> {
  const socket = createSocket({
    type: isIPv6(host) ? 'udp6' : 'udp4',
    // Addresses are never names, and the default makes every datagram wait for the next tick.
    lookup: (address, _options, callback) => callback(null, address, isIPv6(address) ? 6 : 4),
  })
  // With such a look-up, the socket is bound before `bind` returns.
  const listening = once(socket, 'listening')
  socket.bind(0, host)
  await listening
  enlargeBuffers(socket)
  logErrors(socket, log)
  return {
    port: socket.address().port,
    receive: (onDatagram) => void socket.on('message', (datagram, from: RemoteInfo) => onDatagram(datagram, from)),
    send: (datagram, to) => socket.send(datagram, to.port, to.address),
    close: () => new Promise<void>((done) => socket.close(() => done())),
  }
}

/** Linux grants less where its limit is lower, other systems refuse. */
function enlargeBuffers(socket: Socket): void {
  try {
    socket.setRecvBufferSize(bufferBytes)
    socket.setSendBufferSize(bufferBytes)
  } catch {
    // The default of the system remains.
  }
}

/** An error of the network must not end the relay, nor fill its log. */
function logErrors(socket: Socket, log: Log): void {
  let loggedAt = Number.NEGATIVE_INFINITY
  socket.on('error', (error) => {
    if (performance.now() - loggedAt < logMillis) return
    loggedAt = performance.now()
    log('warn', 'a UDP socket had an error', { error: error.message })
  })
}
