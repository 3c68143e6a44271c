/**
 * A UDP port that receives streams. Admitted remotes get a socket each on the same port, where the system can do that:
 * the kernel then keeps their datagrams apart from those of strangers, so that a flood does not displace a stream.
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { contain, type Log, limitLog } from './log.ts'
import { addressOf, type Peer, type Remote } from './peer.ts'

const bufferBytes = 4 * 1024 * 1024
const bindAttemptsMax = 20

/** Other systems do not deliver to the connected socket among several on one port. */
const canIsolate = process.platform === 'linux'

export interface UdpPort {
  readonly port: number
  /** What the handler throws is logged. */
  receive(onDatagram: (datagram: Buffer, from: Remote) => void): void
  /** Never throws: what cannot be sent is lost, as on the way, and logged. */
  send(datagram: Buffer, to: Remote): void
  /** Gives exactly these remotes a socket of their own. */
  isolate(remotes: readonly Remote[]): void
  close(): Promise<void>
}

/** A caller at one address. */
export class UdpPeer implements Peer {
  readonly key: string
  readonly host: string
  readonly protocol = 'srt'
  readonly #port: UdpPort

  constructor(
    port: UdpPort,
    readonly remote: Remote,
  ) {
    this.key = addressOf(remote)
    this.host = remote.address
    this.#port = port
  }

  send(datagram: Buffer): void {
    this.#port.send(datagram, this.remote)
  }
}

/**
 * @param fixedPort 0 for a free one.
 * Rejects when the port is taken, or none is free.
 */
export async function openUdpPort(host: string, unlimitedLog: Log, fixedPort = 0): Promise<UdpPort> {
  const log = limitLog(unlimitedLog)
  const shared = await bindPort(host, fixedPort)
  const { port } = shared.address()
  const isolated = new Map<string, Socket>()
  let onDatagram: (datagram: Buffer, from: Remote) => void = () => {}
  const listen = (socket: Socket): Socket => {
    enlargeBuffers(socket)
    return socket.on('message', (datagram, from: RemoteInfo) =>
      contain(log, 'a datagram could not be handled', () => onDatagram(datagram, from)),
    )
  }
  logErrors(shared, log)
  listen(shared)
  return {
    port,
    receive(handler) {
      onDatagram = handler
    },
    send(datagram, to) {
      contain(log, 'a datagram could not be sent', () => {
        const own = isolated.get(addressOf(to))
        if (own) own.send(datagram)
        else shared.send(datagram, to.port, to.address)
      })
    },
    isolate(remotes) {
      if (!canIsolate) return
      const wanted = new Map(remotes.map((remote) => [addressOf(remote), remote]))
      for (const [address, socket] of isolated) {
        if (wanted.has(address)) continue
        isolated.delete(address)
        socket.close()
      }
      for (const [address, remote] of wanted) {
        if (isolated.has(address)) continue
        const socket = open(host)
        // Before it is bound, since an error without a listener would end the process.
        logErrors(socket, log)
        if (connect(socket, { host, port }, remote)) isolated.set(address, listen(socket))
        else socket.close()
      }
    },
    async close() {
      await Promise.all([shared, ...isolated.values()].map((socket) => new Promise<void>((done) => socket.close(done))))
    },
  }
}

/**
 * Addresses are never names. Without the default look-up, `bind`, `connect` and `send` take effect before they return.
 */
const open = (host: string, reuseAddr = canIsolate): Socket =>
  createSocket({
    type: isIPv6(host) ? 'udp6' : 'udp4',
    reuseAddr,
    lookup: (address, _options, callback) => callback(null, address, isIPv6(address) ? 6 : 4),
  })

async function bindPort(host: string, fixedPort: number): Promise<Socket> {
  for (let attempt = 1; ; attempt += 1) {
    // A socket that others may share would be given a port that another relay shares, and no error for one that is
    // taken.
    const probe = await bind(open(host, false), fixedPort, host)
    const { port } = probe.address()
    if (!canIsolate) return probe
    await new Promise<void>((done) => probe.close(done))
    const socket = await bind(open(host), port, host)
    if (attempt === bindAttemptsMax || fixedPort !== 0 || !(await isTaken(port))) return socket
    await new Promise<void>((done) => socket.close(done))
  }
}

async function bind(socket: Socket, port: number, host: string): Promise<Socket> {
  const listening = once(socket, 'listening')
  socket.bind(port, host)
  await listening
  return socket
}

/**
 * @returns whether the socket is bound and connected. It is not where the remote has no route, or no file descriptor is
 * left.
 */
function connect(socket: Socket, local: { readonly host: string; readonly port: number }, remote: Remote): boolean {
  try {
    socket.bind(local.port, local.host)
    // Throws for an unbound socket, which `connect` would bind to another port.
    socket.address()
    socket.connect(remote.port, remote.address)
    socket.remoteAddress()
    return true
  } catch {
    return false
  }
}

/** Whether another process has bound the port too, between the two binds. */
async function isTaken(port: number): Promise<boolean> {
  const tables = await Promise.all(
    ['/proc/net/udp', '/proc/net/udp6'].map((file) => readFile(file, 'utf8').catch(() => '')),
  )
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const sockets = tables
    .join('\n')
    .split('\n')
    .filter((line) => line.trim().split(/\s+/)[1]?.endsWith(suffix))
  return sockets.length > 1
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
  socket.on('error', ({ code, syscall }: NodeJS.ErrnoException) => {
    // A remote that has closed its port refuses what is still sent to it.
    if (code !== 'ECONNREFUSED') log('warn', 'a UDP socket had an error', { reason: code, syscall })
  })
}
