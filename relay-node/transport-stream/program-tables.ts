/** The program association and program map tables of MPEG-TS (ISO/IEC 13818-1, sections 2.4.4.4 and 2.4.4.9). */
import { packetBytes, payloadAt, startsUnit } from './packet.ts'

export interface ElementaryStream {
  readonly pid: number
  readonly type: number
  readonly descriptors: Buffer
}

export interface Program {
  readonly transportStreamId: number
  readonly number: number
  readonly pmtPid: number
  readonly pcrPid: number
  readonly descriptors: Buffer
  readonly streams: readonly ElementaryStream[]
}

export interface Association {
  readonly transportStreamId: number
  readonly programs: readonly { readonly number: number; readonly pid: number }[]
}

const tableIds = { pat: 0, pmt: 2 }
const sectionBytesMax = 1_024
/** From the table id to the last section number. */
const headerBytes = 8
const checksumBytes = 4

const checksums = new Uint32Array(256)
for (let byte = 0; byte < 256; byte += 1) {
  let rest = byte * 2 ** 24
  for (let bit = 0; bit < 8; bit += 1) rest = ((rest << 1) ^ (rest & 0x8000_0000 ? 0x04c1_1db7 : 0)) >>> 0
  checksums[byte] = rest
}

/** That of MPEG: 0 over a whole section. */
export function crc32(data: Buffer): number {
  let rest = 0xffff_ffff
  for (const byte of data) rest = ((rest << 8) ^ (checksums[(rest >>> 24) ^ byte] ?? 0)) >>> 0
  return rest
}

/** Collects the sections of one packet id, which may take several packets. */
export class SectionCollector {
  #pieces: Buffer[] = []
  #bytes = 0

  /** @returns the first section that is complete with this packet. */
  push(data: Buffer, at: number): Buffer | undefined {
    let from = payloadAt(data, at)
    const end = at + packetBytes
    if (startsUnit(data, at)) {
      from += 1 + (data[from] ?? 0)
      this.#pieces = []
      this.#bytes = 0
    } else if (this.#pieces.length === 0) return undefined
    if (from >= end) return undefined
    this.#pieces.push(Buffer.from(data.subarray(from, end)))
    this.#bytes += end - from
    const bytes = Buffer.concat(this.#pieces)
    const length = 3 + (bytes.length < 3 ? sectionBytesMax : bytes.readUInt16BE(1) & 0x0fff)
    if (length > sectionBytesMax || this.#bytes > 2 * sectionBytesMax) this.#pieces = []
    if (length > sectionBytesMax || bytes.length < length) return undefined
    this.#pieces = []
    return bytes.subarray(0, length)
  }
}

/** @returns the content of a whole table that applies now. */
function contentOf(section: Buffer, tableId: number): Buffer | undefined {
  if (section.length < headerBytes + checksumBytes || section[0] !== tableId || crc32(section) !== 0) return undefined
  const appliesNow = ((section[5] ?? 0) & 1) === 1
  const isOnly = section[6] === 0 && section[7] === 0
  return appliesNow && isOnly ? section.subarray(headerBytes, -checksumBytes) : undefined
}

const pidAt = (data: Buffer, at: number): number => data.readUInt16BE(at) & 0x1fff

/** @returns undefined for a section that is no such table. */
export function readPat(section: Buffer): Association | undefined {
  const content = contentOf(section, tableIds.pat)
  if (content === undefined) return undefined
  const programs: { number: number; pid: number }[] = []
  for (let at = 0; at + 4 <= content.length; at += 4) {
    const number = content.readUInt16BE(at)
    // Program 0 is the network.
    if (number !== 0) programs.push({ number, pid: pidAt(content, at + 2) })
  }
  return { transportStreamId: section.readUInt16BE(3), programs }
}

/** @returns undefined for a section that is no such table. */
export function readPmt(
  section: Buffer,
  { transportStreamId, pmtPid }: Pick<Program, 'transportStreamId' | 'pmtPid'>,
): Program | undefined {
  const content = contentOf(section, tableIds.pmt)
  if (content === undefined || content.length < 4) return undefined
  const pcrPid = pidAt(content, 0)
  const streamsAt = 4 + (content.readUInt16BE(2) & 0x0fff)
  if (streamsAt > content.length) return undefined
  const streams: ElementaryStream[] = []
  for (let at = streamsAt; at + 5 <= content.length; ) {
    const end = at + 5 + (content.readUInt16BE(at + 3) & 0x0fff)
    if (end > content.length) return undefined
    streams.push({ type: content[at] ?? 0, pid: pidAt(content, at + 1), descriptors: content.subarray(at + 5, end) })
    at = end
  }
  const number = section.readUInt16BE(3)
  return { transportStreamId, number, pmtPid, pcrPid, descriptors: content.subarray(4, streamsAt), streams }
}

/** A section with its pointer field, for the payload of packets. */
function writeSection(tableId: number, id: number, version: number, content: Buffer): Buffer {
  const section = Buffer.alloc(headerBytes + content.length + checksumBytes)
  section.writeUInt8(tableId, 0)
  section.writeUInt16BE(0xb000 | (section.length - 3), 1)
  section.writeUInt16BE(id, 3)
  section.writeUInt8(0xc1 | ((version & 31) << 1), 5)
  content.copy(section, headerBytes)
  section.writeUInt32BE(crc32(section.subarray(0, -checksumBytes)), section.length - checksumBytes)
  return Buffer.concat([Buffer.from([0]), section])
}

export function writePat({ transportStreamId, number, pmtPid }: Program, version: number): Buffer {
  const content = Buffer.alloc(4)
  content.writeUInt16BE(number, 0)
  content.writeUInt16BE(0xe000 | pmtPid, 2)
  return writeSection(tableIds.pat, transportStreamId, version, content)
}

export function writePmt({ number, pcrPid, descriptors, streams }: Program, version: number): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt16BE(0xe000 | pcrPid, 0)
  head.writeUInt16BE(0xf000 | descriptors.length, 2)
  const entries = streams.flatMap((stream) => {
    const entry = Buffer.alloc(5)
    entry.writeUInt8(stream.type, 0)
    entry.writeUInt16BE(0xe000 | stream.pid, 1)
    entry.writeUInt16BE(0xf000 | stream.descriptors.length, 3)
    return [entry, stream.descriptors]
  })
  return writeSection(tableIds.pmt, number, version, Buffer.concat([head, descriptors, ...entries]))
}
