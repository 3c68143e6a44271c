/** The latest picture of a stream that can be decoded without another one, kept as it arrived. */
import { parameterSetsOf, UnitScanner, type VideoCodec } from './video-units.ts'

export interface KeyFrame {
  readonly codec: VideoCodec
  /** An access unit with its parameter sets. In pieces, since most key frames are never joined. */
  readonly pieces: readonly Buffer[]
  /** The sequence parameter set, from which the size of the picture is read. */
  readonly parameters: Buffer | undefined
}

/** Pictures that repeat a key frame. */
export interface SkipPictures {
  /** @param number of the picture after the key frame, from 1. */
  write(number: number): Buffer
}

/** Parameter sets stand in front of a key frame, and are short. */
const headBytesMax = 4_096
/** Greater ones are not kept. */
const unitBytesMax = 4 * 1024 * 1024

const startCode = Buffer.from([0, 0, 0, 1])

/** Collects the pieces of access units as they pass, and keeps those of key frames. */
export class KeyFrameCollector {
  readonly #codec: VideoCodec
  readonly #scanner: UnitScanner
  #pieces: Buffer[] = []
  #bytes = 0
  #isCollecting = false
  /** Some encoders send the parameter sets with their first picture only. */
  #parameterSets: Buffer[] = []
  #sequence: Buffer | undefined

  constructor(codec: VideoCodec) {
    this.#codec = codec
    this.#scanner = new UnitScanner(codec)
  }

  /** The unit is a picture that depends on pictures before the latest key frame. */
  get isLeading(): boolean {
    return this.#scanner.isDecided && this.#scanner.isLeading
  }

  get isDecided(): boolean {
    return this.#scanner.isDecided
  }

  get isKeyFrame(): boolean {
    return this.#scanner.isKeyFrame
  }

  /** Another access unit begins. @returns the one before, where it was a key frame. */
  next(): KeyFrame | undefined {
    const isKey = this.#isCollecting && this.#scanner.isDecided && this.#scanner.isKeyFrame
    const pieces = isKey ? this.#pieces : undefined
    this.drop()
    this.#isCollecting = true
    return pieces === undefined ? undefined : this.#complete(pieces)
  }

  /** Packets of the unit are missing, so it is not kept. */
  drop(): void {
    this.#pieces = []
    this.#bytes = 0
    this.#isCollecting = false
    this.#scanner.reset()
  }

  push(data: Buffer, at: number, end: number): void {
    if (!this.#isCollecting || end <= at) return
    if (this.#scanner.isDecided && !this.#scanner.isKeyFrame) return
    if (!this.#scanner.isDecided) this.#scanner.push(data, at, end)
    this.#bytes += end - at
    if (this.#bytes > unitBytesMax) this.drop()
    else this.#pieces.push(data.subarray(at, end))
  }

  #complete(pieces: readonly Buffer[]): KeyFrame {
    const { vps, sps, pps } = parameterSetsOf(this.#codec, headOf(pieces))
    const own = [vps, sps, pps].filter((set) => set !== undefined)
    if (sps !== undefined) this.#parameterSets = own.map((set) => Buffer.from(set))
    const added = sps === undefined ? this.#parameterSets.flatMap((set) => [startCode, set]) : []
    if (sps !== undefined) this.#sequence = Buffer.from(sps)
    return { codec: this.#codec, pieces: [...added, ...pieces], parameters: this.#sequence }
  }
}

function headOf(pieces: readonly Buffer[]): Buffer {
  const head: Buffer[] = []
  let bytes = 0
  for (const piece of pieces) {
    if (bytes >= headBytesMax) break
    head.push(piece)
    bytes += piece.length
  }
  return Buffer.concat(head)
}
