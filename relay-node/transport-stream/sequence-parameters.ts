/**
 * Reads the sequence parameter sets of H.264 (ITU-T H.264, 7.3.2.1.1) and HEVC (ITU-T H.265, 7.3.2.2), as far as the
 * size of the pictures and their profile.
 */
import { pictureSideMax, type VideoFormat } from '../../domain/relay/stream-format.ts'
import { BitReader } from './bits.ts'

export interface SequenceParameters {
  readonly profile: VideoFormat['profile']
  /** In pixels, as shown. */
  readonly width: number
  readonly height: number
  /** Pictures a second, where the encoder states it. */
  readonly frameRate?: number
}

/** @param sps a NAL unit with its header. @returns undefined for anything else. */
export function readSequenceParameters(codec: VideoFormat['codec'], sps: Buffer): SequenceParameters | undefined {
  const read = attempt(() => (codec === 'h264' ? readH264(sps) : readHevc(sps)))
  return read && isSize(read.width) && isSize(read.height) ? read : undefined
}

const isSize = (pixels: number): boolean => pixels >= 1 && pixels <= pictureSideMax

/** The bits of a NAL unit, without the bytes that keep it free of start codes. @param headerBytes of the unit. */
export function payloadOf(unit: Buffer, headerBytes: number): BitReader {
  const bytes: number[] = []
  let zeros = 0
  for (const byte of unit.subarray(headerBytes)) {
    // Encoders put a 3 behind two zeros, so that the payload has no start code.
    if (zeros >= 2 && byte === 3) {
      zeros = 0
      continue
    }
    zeros = byte === 0 ? zeros + 1 : 0
    bytes.push(byte)
  }
  return new BitReader(Buffer.from(bytes))
}

const h264Profiles: Readonly<Record<number, VideoFormat['profile']>> = {
  66: 'baseline',
  77: 'main',
  100: 'high',
  110: 'high10',
}
/** Those whose parameter sets state the chroma format. */
const profilesWithChroma = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135])

/** What slices of H.264 need of their sequence parameter set. */
export interface SliceSequence {
  readonly frameNumberBits: number
  readonly pictureOrder: { readonly type: number; readonly bits: number; readonly isAlwaysZero: boolean }
  readonly hasSeparatePlanes: boolean
  readonly chromaFormat: number
  /** In macroblocks. */
  readonly size: number
  readonly isFrameOnly: boolean
}

function readH264(sps: Buffer): (SequenceParameters & { readonly slices: SliceSequence }) | undefined {
  if (((sps[0] ?? 0) & 31) !== 7) return undefined
  const bits = payloadOf(sps, 1)
  const profile = bits.read(8)
  bits.skip(16)
  bits.unsigned()
  const chroma = profilesWithChroma.has(profile) ? skipChroma(bits) : { format: 1, hasSeparatePlanes: false }
  const frameNumberBits = bits.unsigned() + 4
  const pictureOrder = readPictureOrder(bits)
  bits.unsigned()
  bits.skip(1)
  const widthUnits = bits.unsigned() + 1
  const heightUnits = bits.unsigned() + 1
  const isFrameOnly = bits.flag()
  if (!isFrameOnly) bits.skip(1)
  bits.skip(1)
  const fieldFactor = isFrameOnly ? 1 : 2
  const crop = bits.flag() ? [0, 1, 2, 3].map(() => bits.unsigned()) : [0, 0, 0, 0]
  const [left = 0, right = 0, top = 0, bottom = 0] = crop
  const cropX = chroma.format === 1 || chroma.format === 2 ? 2 : 1
  const cropY = (chroma.format === 1 ? 2 : 1) * fieldFactor
  const frameRate = bits.flag() ? readTiming(bits) : undefined
  return {
    // Interlaced pictures have no slate.
    profile: (isFrameOnly ? h264Profiles[profile] : undefined) ?? 'other',
    width: widthUnits * 16 - (left + right) * cropX,
    height: heightUnits * 16 * fieldFactor - (top + bottom) * cropY,
    ...(frameRate === undefined ? {} : { frameRate }),
    slices: {
      frameNumberBits,
      pictureOrder,
      hasSeparatePlanes: chroma.hasSeparatePlanes,
      chromaFormat: chroma.format,
      size: widthUnits * heightUnits * fieldFactor,
      isFrameOnly,
    },
  }
}

/** @param sps a NAL unit of H.264. @returns undefined for anything else. */
export const readSliceSequence = (sps: Buffer): SliceSequence | undefined => attempt(() => readH264(sps)?.slices)

/** @returns undefined where the bits do not suffice. */
export function attempt<Read>(read: () => Read): Read | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function skipChroma(bits: BitReader): { readonly format: number; readonly hasSeparatePlanes: boolean } {
  const format = bits.unsigned()
  const hasSeparatePlanes = format === 3 && bits.flag()
  bits.unsigned()
  bits.unsigned()
  bits.skip(1)
  if (!bits.flag()) return { format, hasSeparatePlanes }
  for (let list = 0; list < (format === 3 ? 12 : 8); list += 1)
    if (bits.flag()) skipScalingList(bits, list < 6 ? 16 : 64)
  return { format, hasSeparatePlanes }
}

function skipScalingList(bits: BitReader, size: number): void {
  let last = 8
  let next = 8
  for (let n = 0; n < size; n += 1) {
    if (next !== 0) next = (last + bits.signed() + 256) % 256
    last = next === 0 ? last : next
  }
}

function readPictureOrder(bits: BitReader): SliceSequence['pictureOrder'] {
  const type = bits.unsigned()
  if (type === 0) return { type, bits: bits.unsigned() + 4, isAlwaysZero: false }
  if (type !== 1) return { type, bits: 0, isAlwaysZero: true }
  const isAlwaysZero = bits.flag()
  bits.signed()
  bits.signed()
  for (let count = Math.min(bits.unsigned(), 255); count > 0; count -= 1) bits.signed()
  return { type, bits: 0, isAlwaysZero }
}

const extendedAspectRatio = 255

/** Of the usability information of H.264. @returns pictures a second. */
function readTiming(bits: BitReader): number | undefined {
  if (bits.flag() && bits.read(8) === extendedAspectRatio) bits.skip(32)
  if (bits.flag()) bits.skip(1)
  if (bits.flag()) {
    bits.skip(4)
    if (bits.flag()) bits.skip(24)
  }
  if (bits.flag()) {
    bits.unsigned()
    bits.unsigned()
  }
  if (!bits.flag()) return undefined
  const tick = bits.read(32)
  const scale = bits.read(32)
  // A picture has two fields.
  return tick === 0 || scale === 0 ? undefined : scale / tick / 2
}

const hevcProfiles: Readonly<Record<number, VideoFormat['profile']>> = { 1: 'main', 2: 'main10' }

function readHevc(sps: Buffer): SequenceParameters | undefined {
  if ((((sps[0] ?? 0) >> 1) & 63) !== 33) return undefined
  const bits = payloadOf(sps, 2)
  bits.skip(4)
  const subLayers = bits.read(3)
  bits.skip(1)
  bits.skip(3)
  const profile = bits.read(5)
  bits.skip(80 + 8)
  skipSubLayers(bits, subLayers)
  bits.unsigned()
  const chromaFormat = bits.unsigned()
  if (chromaFormat === 3) bits.skip(1)
  const width = bits.unsigned()
  const height = bits.unsigned()
  const crop = bits.flag() ? [0, 1, 2, 3].map(() => bits.unsigned()) : [0, 0, 0, 0]
  const [left = 0, right = 0, top = 0, bottom = 0] = crop
  const cropX = chromaFormat === 1 || chromaFormat === 2 ? 2 : 1
  const cropY = chromaFormat === 1 ? 2 : 1
  return {
    profile: hevcProfiles[profile] ?? 'other',
    width: width - (left + right) * cropX,
    height: height - (top + bottom) * cropY,
  }
}

export function skipSubLayers(bits: BitReader, count: number): void {
  const present = Array.from({ length: count }, () => ({ profile: bits.flag(), level: bits.flag() }))
  if (count > 0) bits.skip((8 - count) * 2)
  for (const { profile, level } of present) bits.skip((profile ? 88 : 0) + (level ? 8 : 0))
}
