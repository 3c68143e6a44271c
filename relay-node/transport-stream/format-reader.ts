/** Reads the format of the pictures of a stream. */
import type { VideoFormat } from '../../domain/relay/stream-format.ts'
import { frameRateMax } from '../../domain/relay/stream-format.ts'
import type { KeyFrame } from './key-frame.ts'
import { readSequenceParameters } from './sequence-parameters.ts'
import { ticksPerSecond } from './stream-times.ts'
import type { VideoCodec } from './video-units.ts'

/** Pictures after which the rate is known. */
const measuredUnits = 60

export class FormatReader {
  readonly #codec: VideoCodec
  #parameters: Buffer | undefined
  #size: Omit<VideoFormat, 'frameRate' | 'codec'> | undefined
  #statedRate: number | undefined
  #rate: number | undefined
  #distances: number[] = []

  constructor(codec: VideoCodec) {
    this.#codec = codec
  }

  /** Undefined until the size and the rate are known. */
  get format(): VideoFormat | undefined {
    const frameRate = this.#rate ?? this.#statedRate
    return this.#size && frameRate !== undefined ? { codec: this.#codec, frameRate, ...this.#size } : undefined
  }

  /** @param ticks from one picture to the next. */
  measure(ticks: number): void {
    if (this.#rate !== undefined || ticks <= 0 || ticks > ticksPerSecond) return
    this.#distances.push(ticks)
    if (this.#distances.length < measuredUnits) return
    const mean = this.#distances.reduce((sum, each) => sum + each, 0) / measuredUnits
    this.#rate = roundRate(ticksPerSecond / mean)
    this.#distances = []
  }

  read({ parameters }: KeyFrame): void {
    if (parameters === undefined || this.#parameters?.equals(parameters)) return
    this.#parameters = Buffer.from(parameters)
    const read = readSequenceParameters(this.#codec, parameters)
    this.#size = read && { profile: read.profile, width: read.width, height: read.height }
    this.#statedRate = read?.frameRate === undefined ? undefined : roundRate(read.frameRate)
  }
}

const roundRate = (rate: number): number => Math.min(Math.max(Math.round(rate * 100) / 100, 0.01), frameRateMax)
