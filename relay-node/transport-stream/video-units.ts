/** NAL units of H.264 and HEVC in the byte stream format (ITU-T H.264 and H.265, annex B). */
import type { VideoFormat } from '../../domain/relay/stream-format.ts'

export type VideoCodec = VideoFormat['codec']

const typeOf = (codec: VideoCodec, header: number): number => (codec === 'h264' ? header & 31 : (header >> 1) & 63)

const isSlice = (codec: VideoCodec, type: number): boolean => (codec === 'h264' ? type >= 1 && type <= 5 : type <= 31)

/** IDR pictures of H.264; IRAP pictures of HEVC. */
const isKey = (codec: VideoCodec, type: number): boolean => (codec === 'h264' ? type === 5 : type >= 16 && type <= 21)

/** RADL and RASL pictures, which come before the key frame when shown. */
const isLeadingType = (codec: VideoCodec, type: number): boolean => codec === 'hevc' && type >= 6 && type <= 9

/** Finds out what an access unit is from its first bytes, which may come in pieces. */
export class UnitScanner {
  readonly #codec: VideoCodec
  /** Zeros in turn before the present byte; 3 after a start code. */
  #zeros = 0
  #isAfterStart = false
  #type: number | undefined

  constructor(codec: VideoCodec) {
    this.#codec = codec
  }

  /** The first slice was found. */
  get isDecided(): boolean {
    return this.#type !== undefined
  }

  get isKeyFrame(): boolean {
    return this.#type !== undefined && isKey(this.#codec, this.#type)
  }

  get isLeading(): boolean {
    return this.#type !== undefined && isLeadingType(this.#codec, this.#type)
  }

  reset(): void {
    this.#zeros = 0
    this.#isAfterStart = false
    this.#type = undefined
  }

  push(data: Buffer, at: number, end: number): void {
    for (let each = at; each < end && this.#type === undefined; each += 1) {
      const byte = data[each] ?? 0
      if (this.#isAfterStart) {
        this.#isAfterStart = false
        const type = typeOf(this.#codec, byte)
        if (isSlice(this.#codec, type)) this.#type = type
      }
      this.#isAfterStart = byte === 1 && this.#zeros >= 2
      this.#zeros = byte === 0 ? this.#zeros + 1 : 0
    }
  }
}

const startCode = Buffer.from([0, 0, 1])

/** The NAL units of an access unit, without start codes. */
export function splitUnits(unit: Buffer): Buffer[] {
  const units: Buffer[] = []
  let begin = unit.indexOf(startCode)
  while (begin >= 0) {
    const from = begin + startCode.length
    const next = unit.indexOf(startCode, from)
    let end = next < 0 ? unit.length : next
    while (end > from && unit[end - 1] === 0) end -= 1
    if (end > from) units.push(unit.subarray(from, end))
    begin = next
  }
  return units
}

type ParameterSets = {
  readonly vps?: Buffer
  readonly sps?: Buffer
  readonly pps?: Buffer
}

const parameterTypes = { h264: { vps: -1, sps: 7, pps: 8 }, hevc: { vps: 32, sps: 33, pps: 34 } } as const

/** The first parameter set of each kind in an access unit. */
export function parameterSetsOf(codec: VideoCodec, unit: Buffer): ParameterSets {
  const sets: { vps?: Buffer; sps?: Buffer; pps?: Buffer } = {}
  const types = parameterTypes[codec]
  for (const each of splitUnits(unit)) {
    const type = typeOf(codec, each[0] ?? 0)
    // They stand before the slices, which are long.
    if (isSlice(codec, type)) break
    if (type === types.vps) sets.vps ??= each
    else if (type === types.sps) sets.sps ??= each
    else if (type === types.pps) sets.pps ??= each
  }
  return sets
}

/** Keeps a NAL unit free of start codes. @returns how long each of its parts is with the bytes that this adds. */
export function guardUnit(parts: readonly Buffer[]): { readonly bytes: Buffer; readonly lengths: readonly number[] } {
  const bytes: number[] = []
  let zeros = 0
  const lengths = parts.map((part) => {
    const begin = bytes.length
    for (const byte of part) {
      if (zeros >= 2 && byte <= 3) {
        bytes.push(3)
        zeros = 0
      }
      bytes.push(byte)
      zeros = byte === 0 ? zeros + 1 : 0
    }
    return bytes.length - begin
  })
  return { bytes: Buffer.from(bytes), lengths }
}
