/**
 * Packets of MPEG-TS (ISO/IEC 13818-1, section 2.4.3). A packet is 188 bytes of `data` from the offset `at`, so that
 * none is copied. What is read of malformed packets stays within these bytes.
 */

export const packetBytes = 188
export const syncByte = 0x47
/** Of packets that only fill the bitrate. */
export const nullPid = 0x1fff
/** Timestamps have 33 bits. */
export const wrapTicks = 2 ** 33

const headerBytes = 4
const flags = { unitStart: 0x40, scrambled: 0xc0, adaptationField: 0x20, payload: 0x10 } as const
/** In the adaptation field. */
const adaptationFlags = { discontinuity: 0x80, randomAccess: 0x40, pcr: 0x10 } as const
const adaptationLengthMax = packetBytes - headerBytes - 1
const pcrBytes = 6
/** A PCR counts ticks of 27 MHz. */
const pcrTicks = 300

export const pidOf = (data: Buffer, at: number): number => (((data[at + 1] ?? 0) & 0x1f) << 8) | (data[at + 2] ?? 0)
/** Whether a PES packet or a section begins in the packet. */
export const startsUnit = (data: Buffer, at: number): boolean => ((data[at + 1] ?? 0) & flags.unitStart) !== 0
export const counterOf = (data: Buffer, at: number): number => (data[at + 3] ?? 0) & 0x0f
export const hasPayload = (data: Buffer, at: number): boolean => ((data[at + 3] ?? 0) & flags.payload) !== 0
export const isScrambled = (data: Buffer, at: number): boolean => ((data[at + 3] ?? 0) & flags.scrambled) !== 0
export const isRandomAccess = (data: Buffer, at: number): boolean =>
  (adaptationFlagsOf(data, at) & adaptationFlags.randomAccess) !== 0
export const isDiscontinuity = (data: Buffer, at: number): boolean =>
  (adaptationFlagsOf(data, at) & adaptationFlags.discontinuity) !== 0

/** @returns 0 for none, and for an empty one. */
function adaptationLengthOf(data: Buffer, at: number): number {
  const length = ((data[at + 3] ?? 0) & flags.adaptationField) === 0 ? 0 : (data[at + headerBytes] ?? 0)
  return length > adaptationLengthMax ? 0 : length
}

const adaptationFlagsOf = (data: Buffer, at: number): number =>
  adaptationLengthOf(data, at) === 0 ? 0 : (data[at + headerBytes + 1] ?? 0)

/** @returns the end of the packet where it has no payload, or an invalid adaptation field. */
export function payloadAt(data: Buffer, at: number): number {
  const control = data[at + 3] ?? 0
  if ((control & flags.payload) === 0) return at + packetBytes
  if ((control & flags.adaptationField) === 0) return at + headerBytes
  const length = data[at + headerBytes] ?? adaptationLengthMax
  return length > adaptationLengthMax ? at + packetBytes : at + headerBytes + 1 + length
}

/** @returns ticks of 27 MHz. */
export function readPcr(data: Buffer, at: number): number | undefined {
  if (adaptationLengthOf(data, at) < 1 + pcrBytes) return undefined
  if ((adaptationFlagsOf(data, at) & adaptationFlags.pcr) === 0) return undefined
  const high =
    (data[at + 6] ?? 0) * 2 ** 24 + (data[at + 7] ?? 0) * 2 ** 16 + (data[at + 8] ?? 0) * 2 ** 8 + (data[at + 9] ?? 0)
  const last = data[at + 10] ?? 0
  const extension = (last & 0x01) * 256 + (data[at + 11] ?? 0)
  return ((high * 2 + (last >> 7)) * pcrTicks + extension) % (wrapTicks * pcrTicks)
}

/** Of a packet that has a PCR. */
export function writePcr(data: Buffer, at: number, pcr: number): void {
  const base = Math.floor(pcr / pcrTicks)
  const extension = Math.floor(pcr - base * pcrTicks)
  const high = Math.floor(base / 2)
  data[at + 6] = high >>> 24
  data[at + 7] = high >>> 16
  data[at + 8] = high >>> 8
  data[at + 9] = high
  data[at + 10] = ((base - high * 2) << 7) | 0x7e | (extension >> 8)
  data[at + 11] = extension
}

export function clearDiscontinuity(data: Buffer, at: number): void {
  if (isDiscontinuity(data, at)) {
    data[at + headerBytes + 1] = adaptationFlagsOf(data, at) & ~adaptationFlags.discontinuity
  }
}

export function setPid(data: Buffer, at: number, pid: number): void {
  data[at + 1] = ((data[at + 1] ?? 0) & 0xe0) | (pid >> 8)
  data[at + 2] = pid
}

export function setCounter(data: Buffer, at: number, counter: number): void {
  data[at + 3] = ((data[at + 3] ?? 0) & 0xf0) | (counter & 0x0f)
}

/** Replaces a packet by one that players ignore. */
export function makeNull(data: Buffer, at: number): void {
  data.fill(0xff, at, at + packetBytes)
  writeHeader(data, at, nullPid, flags.payload)
}

export function nullPackets(count: number): Buffer {
  const packets = Buffer.alloc(count * packetBytes)
  for (let at = 0; at < packets.length; at += packetBytes) makeNull(packets, at)
  return packets
}

/** A packet without payload. */
export function pcrPacket(pid: number, pcr: number): Buffer {
  const packet = Buffer.alloc(packetBytes, 0xff)
  writeHeader(packet, 0, pid, flags.adaptationField)
  packet[headerBytes] = adaptationLengthMax
  packet[headerBytes + 1] = adaptationFlags.pcr
  writePcr(packet, 0, pcr)
  return packet
}

/**
 * The packets of a PES packet or a section. Their counters are 0.
 * @param options stand in the first packet.
 */
export function packetize(
  pid: number,
  unit: Buffer,
  { isRandomAccess = false, pcr }: { isRandomAccess?: boolean; pcr?: number } = {},
): Buffer {
  const firstFlags = (isRandomAccess ? adaptationFlags.randomAccess : 0) | (pcr === undefined ? 0 : adaptationFlags.pcr)
  const firstFieldBytes = firstFlags === 0 ? 0 : 2 + (pcr === undefined ? 0 : pcrBytes)
  const count = unit.length === 0 ? 0 : Math.ceil((unit.length + firstFieldBytes) / (packetBytes - headerBytes))
  const packets = Buffer.alloc(count * packetBytes, 0xff)
  let read = 0
  for (let at = 0; at < packets.length; at += packetBytes) {
    const fieldBytes = Math.max(packetBytes - headerBytes - (unit.length - read), at === 0 ? firstFieldBytes : 0)
    writeHeader(packets, at, pid, flags.payload | (fieldBytes > 0 ? flags.adaptationField : 0))
    if (at === 0) packets[1] = (packets[1] ?? 0) | flags.unitStart
    if (fieldBytes > 0) packets[at + headerBytes] = fieldBytes - 1
    if (fieldBytes > 1) packets[at + headerBytes + 1] = at === 0 ? firstFlags : 0
    if (at === 0 && pcr !== undefined) writePcr(packets, at, pcr)
    read += unit.copy(packets, at + headerBytes + fieldBytes, read, read + packetBytes - headerBytes - fieldBytes)
  }
  return packets
}

function writeHeader(data: Buffer, at: number, pid: number, control: number): void {
  data[at] = syncByte
  data[at + 1] = pid >> 8
  data[at + 2] = pid
  data[at + 3] = control
}
