/** A remote end of an SRT connection, as the gate sees it: one UDP address, or all links of an SRTLA group. */

export interface Peer {
  /** Distinguishes peers, also of different kinds: an address, or the name of a group. */
  readonly key: string
  /** The IP address. Of an SRTLA group, that which requested it. */
  readonly host: string
  readonly protocol: 'srt' | 'srtla'
  /** Sends an SRT packet to the remote end. */
  send(datagram: Buffer): void
  /** Of an encoder that may have several network paths; undefined for a peer with one address. */
  readonly bond?: Bond
}

/** The network paths of one encoder. */
export interface Bond {
  /** How many there are. */
  readonly pathCount: () => number
  /** Sends an SRT packet over each of them, since the one that would be chosen may be dead. */
  sendOverAll(datagram: Buffer): void
  /** A data packet arrived over the path of the latest datagram: its first copy, or the original after a repeat. */
  receiveData(packet: ArrivedPacket): void
  /** @param next the number after the last packet that the engine has received or given up. */
  acknowledge(next: number): void
}

export interface ArrivedPacket {
  readonly sequenceNumber: number
  /** Whether it had been sent before. */
  readonly isRepeat: boolean
  /** How much later it arrived than one that was sent after it. */
  readonly lateMillis: number
}

/** The source of a datagram, as `node:dgram` returns it. */
export interface Remote {
  readonly address: string
  readonly port: number
  readonly family: 'IPv4' | 'IPv6'
}

/** The address and the port as one text, for example `198.51.100.7:5000` or `[2001:db8::7]:5000`. */
export const addressOf = ({ address, port, family }: Remote): string =>
  family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`
