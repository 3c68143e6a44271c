/**
 * A UDP port that receives streams, over IPv4, IPv6 or both. Each family has a socket of its own: remotes of IPv4 have
 * their plain address then, and the system's setting for sockets of both families does not matter. Admitted remotes get
 * a socket each on the same port, where the system can do that: the kernel then keeps their datagrams apart from those
 * of strangers, so that a flood does not displace a stream.
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { unmapAddress } from './addresses.ts'
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
 * @param hosts the addresses to bind, at most one of each family.
 * @param fixedPort 0 for a free one.
 * Rejects when the port is taken, or none is free.
 */
export async function openUdpPort(hosts: readonly string[], unlimitedLog: Log, fixedPort = 0): Promise<UdpPort> {
  const log = limitLog(unlimitedLog)
  const { port, sockets } = await bindPort(hosts, fixedPort)
  const shared = new Map(sockets.map((socket) => [socket.address().family, socket]))
  const hostByFamily = new Map(hosts.map((host) => [familyOf(host), host]))
  const isolated = new Map<string, Socket>()
  let onDatagram: (datagram: Buffer, from: Remote) => void = () => {}
  const listen = (socket: Socket): Socket => {
    enlargeBuffers(socket)
    return socket.on('message', (datagram, from: RemoteInfo) =>
      contain(log, 'a datagram could not be handled', () => onDatagram(datagram, remoteOf(from))),
    )
  }
  for (const socket of sockets) {
    logErrors(socket, log)
    listen(socket)
  }
  return {
    port,
    receive(handler) {
      onDatagram = handler
    },
    send(datagram, to) {
      contain(log, 'a datagram could not be sent', () => {
        const own = isolated.get(addressOf(to))
        if (own) own.send(datagram)
        else shared.get(to.family)?.send(datagram, to.port, to.address)
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
        const host = hostByFamily.get(remote.family)
        if (isolated.has(address) || host === undefined) continue
        const socket = open(host)
        // Before it is bound, since an error without a listener would end the process.
        logErrors(socket, log)
        if (connect(socket, { host, port }, remote)) isolated.set(address, listen(socket))
        else socket.close()
      }
    },
    async close() {
      await Promise.all([...sockets, ...isolated.values()].map(closeSocket))
    },
  }
}

const familyOf = (host: string): Remote['family'] => (isIPv6(host) ? 'IPv6' : 'IPv4')

/** A datagram of IPv6 can name an address of IPv4 as its source, and counts as one of IPv4 then. */
function remoteOf(from: RemoteInfo): Remote {
  const address = from.family === 'IPv6' ? unmapAddress(from.address) : from.address
  return address === from.address ? from : { address, port: from.port, family: 'IPv4' }
}

/**
 * Addresses are never names. Without the default look-up, `bind`, `connect` and `send` take effect before they return.
 */
const open = (host: string, reuseAddr = canIsolate): Socket =>
  createSocket({
    type: isIPv6(host) ? 'udp6' : 'udp4',
    ipv6Only: isIPv6(host),
    reuseAddr,
    lookup: (address, _options, callback) => callback(null, address, isIPv6(address) ? 6 : 4),
  })

/** One socket for each host, all at the same port. */
async function bindPort(hosts: readonly string[], fixedPort: number): Promise<{ port: number; sockets: Socket[] }> {
  for (let attempt = 1; ; attempt += 1) {
    const isLast = attempt === bindAttemptsMax || fixedPort !== 0
    try {
      // A socket that others may share would be given a port that another relay shares, and no error for one that is
      // taken.
      const probes = await bindAll(hosts, fixedPort, false)
      const port = portOf(probes)
      if (!canIsolate) return { port, sockets: probes }
      await Promise.all(probes.map(closeSocket))
      const sockets = await bindAll(hosts, port, true)
      if (isLast || !(await isTaken(port, hosts.length))) return { port, sockets }
      await Promise.all(sockets.map(closeSocket))
    } catch (error) {
      // A port that is free for one family may be taken for the other.
      if (isLast || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    }
  }
}

const portOf = ([first]: readonly Socket[]): number => first?.address().port ?? 0

/** @param port 0 for one that is free at the first host. Closes all sockets when one of them cannot be bound. */
async function bindAll(hosts: readonly string[], port: number, isShared: boolean): Promise<Socket[]> {
  const sockets: Socket[] = []
  try {
    for (const host of hosts) sockets.push(await bind(open(host, isShared), port || portOf(sockets), host))
    return sockets
  } catch (error) {
    await Promise.all(sockets.map(closeSocket))
    throw error
  }
}

const closeSocket = (socket: Socket) => new Promise<void>((done) => socket.close(done))

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

/**
 * Whether another process has bound the port too, between the two binds.
 * @param ownSockets how many this one has bound.
 */
async function isTaken(port: number, ownSockets: number): Promise<boolean> {
  const tables = await Promise.all(
    ['/proc/net/udp', '/proc/net/udp6'].map((file) => readFile(file, 'utf8').catch(() => '')),
  )
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const sockets = tables
    .join('\n')
    .split('\n')
    .filter((line) => line.trim().split(/\s+/)[1]?.endsWith(suffix))
  return sockets.length > ownSockets
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
