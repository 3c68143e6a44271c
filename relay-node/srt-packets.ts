/**
 * The parts of SRT packets that the gate reads and writes (draft-sharabayko-srt-01, section 3). All other bytes pass
 * unread. Parsers return undefined for anything that is not well-formed, except that a conclusion states its fault.
 */
import { isUtf8 } from 'node:buffer'
import { distanceBetween, type NumberRange } from './sequence-numbers.ts'

/** A datagram above the size of an Ethernet frame is no SRT packet. */
export const datagramBytesMax = 1500
const headerBytes = 16
const handshakeBytes = 64
const extensionTypes = { handshakeReply: 2, streamId: 5 } as const
const streamIdBytesMax = 512

export interface Handshake {
  /** The first packet of a caller in rendezvous mode has a phase of its own, since it expects another caller. */
  readonly phase: 'induction' | 'conclusion' | 'rendezvous'
  readonly version: number
  /** A listener's answer to a caller. */
  readonly isReply: boolean
  /** The socket of the sender. */
  readonly socketId: number
  readonly cookie: number
  /**
   * Why a conclusion cannot be accepted, whatever it asks for: its extensions or stream id are malformed, or its
   * version is old.
   */
  readonly fault: 'bad_request' | 'version' | undefined
  /** Undefined where the packet has a fault, or no extension with a stream id. */
  readonly streamId: string | undefined
  /** The latency that the sender applies when it receives; 0 where it does not state one. */
  readonly latencyMillis: number
}

const controlTypes = { handshake: 0x8000, ack: 0x8002, lossReport: 0x8003, shutdown: 0x8005 } as const
const handshakeTypes = { rendezvous: 0, induction: 1, conclusion: 0xffff_ffff } as const

/** Offsets in a handshake packet. */
const at = { timestamp: 8, destination: 12, version: 16, extensions: 22, type: 36, socketId: 40, cookie: 44 } as const

/** In the extension field of an induction reply: the listener supports handshakes of version 5. */
const version5Magic = 0x4a17
/** In the extension field of an induction request: messages, not a byte stream. */
const datagramSocket = 2

export const isData = (datagram: Buffer): boolean => datagram.length >= headerBytes && datagram.readUInt8(0) < 0x80
export const sequenceNumberOf = (data: Buffer): number => data.readUInt32BE(0)
/** The flag R. */
export const isRetransmitted = (data: Buffer): boolean => (data.readUInt8(4) & 0x04) !== 0
export const payloadBytes = (data: Buffer): number => data.length - headerBytes

const isControl = (datagram: Buffer, type: number): boolean =>
  datagram.length >= headerBytes && datagram.readUInt16BE(0) === type

export const isHandshake = (datagram: Buffer): boolean =>
  datagram.length >= handshakeBytes && isControl(datagram, controlTypes.handshake)
export const isShutdown = (datagram: Buffer): boolean => isControl(datagram, controlTypes.shutdown)

/** The socket that a packet is addressed to; 0 for a new connection, undefined for what is no packet. */
export const destinationOf = (datagram: Buffer): number | undefined =>
  datagram.length < headerBytes ? undefined : datagram.readUInt32BE(at.destination)

/** Whether a caller begins a connection. */
export const isCall = (datagram: Buffer): boolean => {
  const handshake = destinationOf(datagram) === 0 ? parseHandshake(datagram) : undefined
  return handshake?.phase === 'induction' && !handshake.isReply
}

export interface Acknowledgement {
  /** The number after the last packet that was received or given up. */
  readonly next: number
  /** The round-trip time in milliseconds. Absent in light acknowledgements. */
  readonly rttMillis: number | undefined
  /** The estimated capacity of the network path. Absent in light acknowledgements and those of old libraries. */
  readonly packetsPerSecondMax: number | undefined
  /** The packets that the receive buffer still takes. Absent in light acknowledgements. */
  readonly roomPackets: number | undefined
}

/** @returns undefined for any other packet. */
export function parseAcknowledgement(datagram: Buffer): Acknowledgement | undefined {
  if (!isAcknowledgement(datagram) || datagram.length < headerBytes + 4) return undefined
  return {
    next: datagram.readUInt32BE(headerBytes) & 0x7fff_ffff,
    rttMillis: datagram.length < headerBytes + 8 ? undefined : datagram.readUInt32BE(headerBytes + 4) / 1000,
    packetsPerSecondMax: datagram.length < headerBytes + 24 ? undefined : datagram.readUInt32BE(headerBytes + 20),
    roomPackets: datagram.length < headerBytes + 16 ? undefined : datagram.readUInt32BE(headerBytes + 12),
  }
}

/** A set highest bit says that the number begins a range, whose last number follows. */
const rangeFlag = 0x8000_0000
/** The words of a loss report that is as large as the data packets of most encoders, so that it is not fragmented. */
const lossWordsMax = 1_316 / 4

export const isAcknowledgement = (datagram: Buffer): boolean => isControl(datagram, controlTypes.ack)
export const isLossReport = (datagram: Buffer): boolean => isControl(datagram, controlTypes.lossReport)

/** @returns the numbers of the packets that a receiver misses; undefined for a malformed report. */
export function parseLossReport(datagram: Buffer): NumberRange[] | undefined {
  if (datagram.length <= headerBytes || datagram.length % 4 !== 0) return undefined
  const ranges: NumberRange[] = []
  for (let offset = headerBytes; offset < datagram.length; offset += 4) {
    const word = datagram.readUInt32BE(offset)
    if (word < rangeFlag) {
      ranges.push({ first: word, last: word })
      continue
    }
    offset += 4
    const first = word - rangeFlag
    const last = offset < datagram.length ? datagram.readUInt32BE(offset) : rangeFlag
    if (last >= rangeFlag || distanceBetween(first, last) < 0) return undefined
    ranges.push({ first, last })
  }
  return ranges
}

/**
 * Loss reports like one of the receiver, about other packets.
 * @returns as many as the ranges need.
 */
export function buildLossReports(model: Buffer, ranges: readonly NumberRange[]): Buffer[] {
  const reports: number[][] = [[]]
  for (const { first, last } of ranges) {
    const words = first === last ? [first] : [first + rangeFlag, last]
    if ((reports.at(-1) ?? []).length + words.length > lossWordsMax) reports.push([])
    reports.at(-1)?.push(...words)
  }
  return reports.map((words) => {
    const report = Buffer.alloc(headerBytes + 4 * words.length)
    model.copy(report, 0, 0, headerBytes)
    for (const [index, word] of words.entries()) report.writeUInt32BE(word, headerBytes + 4 * index)
    return report
  })
}

/** Parses a handshake of a caller, or a listener's reply to it. */
export function parseHandshake(datagram: Buffer): Handshake | undefined {
  if (!isHandshake(datagram)) return undefined
  const phase = phaseOf(datagram.readUInt32BE(at.type))
  if (phase === undefined) return undefined
  const version = datagram.readUInt32BE(at.version)
  const cookie = datagram.readUInt32BE(at.cookie)
  const socketId = datagram.readUInt32BE(at.socketId)
  const fixed = { phase, version, socketId, cookie, fault: undefined, streamId: undefined, latencyMillis: 0 }
  if (phase !== 'conclusion') {
    const isReply = phase === 'induction' && (cookie !== 0 || datagram.readUInt16BE(at.extensions) === version5Magic)
    return datagram.length > datagramBytesMax ? undefined : { ...fixed, isReply }
  }
  if (version < 5) return { ...fixed, isReply: false, fault: 'version' }
  const extensions = datagram.length > datagramBytesMax ? undefined : listExtensions(datagram)
  const streamIds = (extensions ?? []).filter(({ type }) => type === extensionTypes.streamId)
  const [streamId] = streamIds.map(({ content }) => parseStreamId(content))
  // With two stream ids, gate and engine could read different ones.
  if (extensions === undefined || streamIds.length > 1 || (streamIds.length === 1 && streamId === undefined))
    return { ...fixed, isReply: false, fault: 'bad_request' }
  const reply = extensions.find(({ type }) => type === extensionTypes.handshakeReply)?.content
  const latencyMillis = reply === undefined || reply.length < 12 ? 0 : reply.readUInt16BE(8)
  return { ...fixed, isReply: reply !== undefined, streamId, latencyMillis }
}

function phaseOf(type: number): Handshake['phase'] | undefined {
  if (type === handshakeTypes.induction) return 'induction'
  if (type === handshakeTypes.rendezvous) return 'rendezvous'
  return type === handshakeTypes.conclusion ? 'conclusion' : undefined
}

function listExtensions(datagram: Buffer): { type: number; content: Buffer }[] | undefined {
  const extensions: { type: number; content: Buffer }[] = []
  let offset = handshakeBytes
  while (offset < datagram.length) {
    if (offset + 4 > datagram.length) return undefined
    const end = offset + 4 + datagram.readUInt16BE(offset + 2) * 4
    if (end > datagram.length) return undefined
    extensions.push({ type: datagram.readUInt16BE(offset), content: datagram.subarray(offset + 4, end) })
    offset = end
  }
  return extensions
}

/**
 * What is neither a control character, nor a format character such as a byte order mark, nor a space, from the first to
 * the last.
 */
const visiblePart = /^[\p{Cc}\p{Cf}\p{Z}]*(.*[^\p{Cc}\p{Cf}\p{Z}])?/su

/**
 * Printable ASCII, stored in 32-bit words with reversed bytes and padded with zeros. What is invisible around it comes
 * from copying and pasting, and is ignored.
 */
function parseStreamId(content: Buffer): string | undefined {
  if (content.length > streamIdBytesMax) return undefined
  const bytes = Buffer.from(content).swap32()
  const text = visiblePart.exec(bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1'))?.[1] ?? ''
  return /^[\x20-\x7e]*$/.test(text) ? text : undefined
}

/**
 * A listener's reply to the induction of a caller. As long as the request, so it amplifies nothing.
 * @param cookie not 0.
 */
export function buildInductionReply(induction: Buffer, cookie: number): Buffer {
  const reply = copyHandshake(induction)
  reply.writeUInt32BE(5, at.version)
  reply.writeUInt16BE(0, at.extensions - 2)
  reply.writeUInt16BE(version5Magic, at.extensions)
  reply.writeUInt32BE(cookie, at.cookie)
  return reply
}

/** The induction that belongs to a conclusion, for a listener that has not seen it. */
export function buildInduction(conclusion: Buffer): Buffer {
  const induction = Buffer.from(conclusion.subarray(0, handshakeBytes))
  induction.writeUInt32BE(0, at.destination)
  induction.writeUInt32BE(4, at.version)
  induction.writeUInt16BE(0, at.extensions - 2)
  induction.writeUInt16BE(datagramSocket, at.extensions)
  induction.writeUInt32BE(handshakeTypes.induction, at.type)
  induction.writeUInt32BE(0, at.cookie)
  return induction
}

export function replaceCookie(conclusion: Buffer, cookie: number): Buffer {
  const copy = Buffer.from(conclusion)
  copy.writeUInt32BE(cookie, at.cookie)
  return copy
}

/** @param conclusion of a caller with a stream id, parsed before. */
export function replaceStreamId(conclusion: Buffer, streamId: string): Buffer {
  const parts = (listExtensions(conclusion) ?? []).flatMap(({ type, content }) => {
    const written = type === extensionTypes.streamId ? buildStreamId(streamId) : content
    const header = Buffer.alloc(4)
    header.writeUInt16BE(type, 0)
    header.writeUInt16BE(written.length / 4, 2)
    return [header, written]
  })
  return Buffer.concat([conclusion.subarray(0, handshakeBytes), ...parts])
}

function buildStreamId(streamId: string): Buffer {
  const words = Buffer.alloc(Math.ceil(streamId.length / 4) * 4)
  words.write(streamId, 'latin1')
  return words.swap32()
}

/** Why a caller is refused, with the codes of libsrt's access control guide. */
export const rejections = {
  bad_request: 1400,
  unauthorized: 1401,
  overload: 1402,
  bad_mode: 1405,
  conflict: 1409,
  down: 1503,
  version: 1505,
} as const
export type Rejection = keyof typeof rejections

/** The codes of libsrt for a wrong passphrase, and for one that only one side has. */
const passphraseCodes: readonly number[] = [10, 11]

/** Whether a handshake of the engine, which is no other one, refuses the passphrase of a caller. */
export const isPassphraseRefusal = (rejection: Buffer): boolean =>
  passphraseCodes.includes(rejection.readUInt32BE(at.type) - 1000)

/** A refusal. Added to 1000, libsrt shows the code to the application of the caller. */
export function buildRejection(conclusion: Buffer, rejection: Rejection): Buffer {
  const reply = copyHandshake(conclusion)
  reply.writeUInt16BE(0, at.extensions)
  reply.writeUInt32BE(1000 + rejections[rejection], at.type)
  return reply
}

/** Ends a connection. */
export function buildShutdown(destination: number): Buffer {
  const packet = Buffer.alloc(headerBytes + 4)
  packet.writeUInt16BE(controlTypes.shutdown, 0)
  packet.writeUInt32BE(destination, at.destination)
  return packet
}

/** The fixed part of a handshake, addressed to its sender. */
function copyHandshake(handshake: Buffer): Buffer {
  const copy = Buffer.from(handshake.subarray(0, handshakeBytes))
  copy.writeUInt32BE(handshake.readUInt32BE(at.socketId), at.destination)
  return copy
}
