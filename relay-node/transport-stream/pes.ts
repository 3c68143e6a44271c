/** PES packets (ISO/IEC 13818-1, section 2.4.3.6): the header before each access unit, with its timestamps. */

export interface PesHeader {
  readonly streamId: number
  /** In ticks of 90 kHz. */
  readonly pts?: number
  readonly dts?: number
  /** Where the timestamps stand; 0 for none. */
  readonly ptsAt: number
  readonly dtsAt: number
  readonly payloadAt: number
  /** As the packet states it: the bytes after the field, 0 for a video packet of unknown length. */
  readonly length: number
}

const fixedBytes = 9
const timestampBytes = 5
/** The flags PTS and DTS. */
const timestampFlags = { pts: 0x80, dts: 0x40 } as const
const lengthMax = 0xffff
const startCode = 0x00_0001
const markerBits = 0x80
const dataAlignment = 0x04
/** Program stream map, padding, private stream 2, ECM, EMM, DSM-CC, H.222.1 type E and the directory. */
const plainStreamIds: readonly number[] = [0xbc, 0xbe, 0xbf, 0xf0, 0xf1, 0xf2, 0xf8, 0xff]
const isVideo = (streamId: number): boolean => streamId >= 0xe0 && streamId <= 0xef

/** @returns undefined for what is no PES header, for an incomplete header, and for a stream that has no timestamps. */
export function readPesHeader(data: Buffer, at: number, end: number): PesHeader | undefined {
  const limit = Math.min(end, data.length)
  if (at < 0 || at + fixedBytes > limit) return undefined
  if (data[at] !== 0 || data[at + 1] !== 0 || data[at + 2] !== 1) return undefined
  const streamId = data[at + 3] ?? 0
  if (streamId < 0xbc || plainStreamIds.includes(streamId) || ((data[at + 6] ?? 0) & 0xc0) !== markerBits)
    return undefined
  const flags = data[at + 7] ?? 0
  const headerBytes = data[at + 8] ?? 0
  const payloadAt = at + fixedBytes + headerBytes
  if (payloadAt > limit) return undefined
  const length = ((data[at + 4] ?? 0) << 8) | (data[at + 5] ?? 0)
  const ptsAt = (flags & timestampFlags.pts) !== 0 && headerBytes >= timestampBytes ? at + fixedBytes : 0
  const hasDts = ptsAt > 0 && (flags & timestampFlags.dts) !== 0 && headerBytes >= 2 * timestampBytes
  const dtsAt = hasDts ? ptsAt + timestampBytes : 0
  if (ptsAt === 0) return { streamId, ptsAt, dtsAt, payloadAt, length }
  const pts = readTimestamp(data, ptsAt)
  return hasDts
    ? { streamId, pts, dts: readTimestamp(data, dtsAt), ptsAt, dtsAt, payloadAt, length }
    : { streamId, pts, ptsAt, dtsAt, payloadAt, length }
}

const readTimestamp = (data: Buffer, at: number): number =>
  (((data[at] ?? 0) >> 1) & 0x07) * 2 ** 30 +
  ((data[at + 1] ?? 0) << 22) +
  (((data[at + 2] ?? 0) >> 1) << 15) +
  ((data[at + 3] ?? 0) << 7) +
  ((data[at + 4] ?? 0) >> 1)

/** Keeps the bits that say which timestamp it is, and sets the markers. */
export function writeTimestamp(data: Buffer, at: number, ticks: number): void {
  const high = Math.floor(ticks / 2 ** 30)
  const low = ticks - high * 2 ** 30
  data[at] = ((data[at] ?? 0) & 0xf0) | ((high & 0x07) << 1) | 1
  data[at + 1] = low >> 22
  data[at + 2] = (low >> 14) | 1
  data[at + 3] = low >> 7
  data[at + 4] = (low << 1) | 1
}

/** @throws RangeError where the payload of another stream than video is too long for one packet. */
export function buildPes(pes: { streamId: number; pts: number; dts?: number; payload: Buffer }): Buffer {
  const { streamId, pts, dts, payload } = pes
  const headerBytes = dts === undefined ? timestampBytes : 2 * timestampBytes
  const header = Buffer.alloc(fixedBytes + headerBytes)
  const length = header.length - 6 + payload.length
  if (length > lengthMax && !isVideo(streamId)) throw new RangeError(`A PES packet cannot have ${length} bytes.`)
  header.writeUInt32BE(startCode * 256 + streamId, 0)
  header.writeUInt16BE(length > lengthMax ? 0 : length, 4)
  // An access unit begins with the payload.
  header.writeUInt8(markerBits | dataAlignment, 6)
  header.writeUInt8(dts === undefined ? timestampFlags.pts : timestampFlags.pts | timestampFlags.dts, 7)
  header.writeUInt8(headerBytes, 8)
  header.writeUInt8(dts === undefined ? 0x20 : 0x30, fixedBytes)
  writeTimestamp(header, fixedBytes, pts)
  if (dts !== undefined) {
    header.writeUInt8(0x10, fixedBytes + timestampBytes)
    writeTimestamp(header, fixedBytes + timestampBytes, dts)
  }
  return Buffer.concat([header, payload])
}
