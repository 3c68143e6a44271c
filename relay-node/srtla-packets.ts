/**
 * Parses and builds the packets of SRTLA, the protocol that BELABOX defined to send one SRT connection over several
 * links. An SRTLA packet looks like an SRT control packet of an unused type; all other packets are SRT packets, which
 * pass unchanged. All numbers are big-endian.
 */

const types = {
  keepalive: 0x9000,
  ack: 0x9100,
  reg1: 0x9200,
  reg2: 0x9201,
  reg3: 0x9202,
  reg_err: 0x9210,
  reg_ngp: 0x9211,
} as const

/** The id of a group: the sender chooses the first half, the receiver the second half. */
export const groupIdBytes = 256

/** A receiver acknowledges this many data packets of a link with one SRTLA ACK. */
export const packetsPerAck = 10

/** No link carries larger datagrams: the MTU of Ethernet. */
export const datagramBytesMax = 1500

const typeBytes = 2
const srtHeaderBytes = 16

export type SrtlaPacket =
  /** May have content, for example a timestamp of the sender. The receiver returns the whole datagram. */
  | { readonly kind: 'keepalive' }
  /** Sequence numbers of SRT data packets that arrived on the link. */
  | { readonly kind: 'ack'; readonly sequenceNumbers: readonly number[] }
  /** From a sender: creates a group. Only the first half of the id counts. */
  | { readonly kind: 'reg1'; readonly id: Buffer }
  /** From a receiver: the id of the new group. From a sender: adds the link to the group. */
  | { readonly kind: 'reg2'; readonly id: Buffer }
  /** From a receiver: the link belongs to the group, is refused, or named an unknown group. */
  | { readonly kind: 'reg3' | 'reg_err' | 'reg_ngp' }
  /** An SRT packet. Only data packets have a sequence number. */
  | { readonly kind: 'srt'; readonly sequenceNumber?: number }

/** Returns nothing for a datagram that is neither an SRTLA packet nor an SRT packet. */
export function parsePacket(datagram: Buffer): SrtlaPacket | undefined {
  if (datagram.length < typeBytes || datagram.length > datagramBytesMax) return undefined
  const type = datagram.readUInt16BE(0)
  switch (type) {
    case types.keepalive:
      return { kind: 'keepalive' }
    case types.ack:
      return { kind: 'ack', sequenceNumbers: readSequenceNumbers(datagram) }
    case types.reg1:
      return hasGroupId(datagram) ? { kind: 'reg1', id: datagram.subarray(typeBytes) } : undefined
    case types.reg2:
      return hasGroupId(datagram) ? { kind: 'reg2', id: datagram.subarray(typeBytes) } : undefined
    case types.reg3:
      return { kind: 'reg3' }
    case types.reg_err:
      return { kind: 'reg_err' }
    case types.reg_ngp:
      return { kind: 'reg_ngp' }
  }
  if (datagram.length < srtHeaderBytes) return undefined
  return type & 0x8000 ? { kind: 'srt' } : { kind: 'srt', sequenceNumber: datagram.readUInt32BE(0) }
}

/**
 * Extended keepalives, as irlserver's sender and others send them. They also count the loss reports about the link,
 * which are more than its losses where packets are late.
 */
const extended = { magic: 0xc01f, version: 1, bytes: 38, at: { magic: 10, version: 12, rtt: 26 } } as const
const rttMillisMax = 60_000

/** @returns the round-trip time of the link in milliseconds; undefined for a keepalive without one that can be true. */
export function readKeepaliveRtt(keepalive: Buffer): number | undefined {
  const { magic, version, bytes, at } = extended
  if (keepalive.length < bytes || keepalive.readUInt16BE(at.magic) !== magic) return undefined
  const rttMillis = keepalive.readUInt32BE(at.rtt)
  return keepalive.readUInt16BE(at.version) === version && rttMillis <= rttMillisMax ? rttMillis : undefined
}

/** Whether a datagram is the first one of an encoder's link. */
export function isRegistration(datagram: Buffer): boolean {
  const kind = parsePacket(datagram)?.kind
  return kind === 'reg1' || kind === 'reg2'
}

export function buildRegistration(kind: 'reg1' | 'reg2', id: Buffer): Buffer {
  const datagram = Buffer.allocUnsafe(typeBytes + groupIdBytes)
  datagram.writeUInt16BE(types[kind], 0)
  id.copy(datagram, typeBytes)
  return datagram
}

/** A packet that consists of its type. */
export function buildNotice(kind: 'keepalive' | 'reg3' | 'reg_err' | 'reg_ngp'): Buffer {
  const datagram = Buffer.allocUnsafe(typeBytes)
  datagram.writeUInt16BE(types[kind], 0)
  return datagram
}

export function buildAck(sequenceNumbers: readonly number[]): Buffer {
  const datagram = Buffer.allocUnsafe(4 + 4 * sequenceNumbers.length)
  // The type fills the upper half of a 32-bit word.
  datagram.writeUInt32BE(types.ack * 0x1_0000, 0)
  for (const [index, number] of sequenceNumbers.entries()) datagram.writeUInt32BE(number, 4 + 4 * index)
  return datagram
}

// Some implementations compare the length too, so that a packet of another length is no registration.
const hasGroupId = (datagram: Buffer) => datagram.length === typeBytes + groupIdBytes

function readSequenceNumbers(datagram: Buffer): number[] {
  const numbers: number[] = []
  for (let offset = 4; offset + 4 <= datagram.length; offset += 4) numbers.push(datagram.readUInt32BE(offset))
  return numbers
}
