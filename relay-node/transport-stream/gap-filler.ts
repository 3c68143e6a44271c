/**
 * What the players receive while no stream arrives: null packets, silence, and a picture at the rate of the stream. OBS
 * takes sound only together with pictures, so both begin at once.
 */
import type { OnLoss } from '../../domain/relay/on-loss.ts'
import type { VideoFormat } from '../../domain/relay/stream-format.ts'
import { createH264SkipPictures } from './h264-skip-pictures.ts'
import { createHevcSkipPictures } from './hevc-skip-pictures.ts'
import type { KeyFrame, SkipPictures } from './key-frame.ts'
import type { PlayerStream, SentAudio } from './player-stream.ts'
import { ticksPerMilli, ticksPerSecond } from './stream-times.ts'
import type { VideoCodec } from './video-units.ts'

/** How often the stage looks whether a filler is due. */
export const tickMillis = 20
/** Without data. */
export const fillerMillisMin = 500
/** A pause that is filled with silence in any case, when the next stream begins. */
const shortMillisMax = 1_000
const fillerMillisMax = 30 * 60_000
/** A new player has a key frame within a second. */
const keyTicksMax = 0.9 * ticksPerSecond
/** Of key frames where nothing else can be sent. */
const pictureBitsPerSecondMax = 4_000_000
const usualFrameRate = 30
/** Earlier pictures are not owed to the players. */
const owedTicksMax = 2 * ticksPerSecond

/** Ends a sequence of HEVC, after which a picture needs no earlier one, and a player shows what it has. */
const endOfSequence = Buffer.from([0, 0, 0, 1, 0x48, 0x01])

export interface FillerSource {
  readonly mode: OnLoss
  /** The format of the latest pictures, or of those that players had before this relay. */
  readonly video: VideoFormat | undefined
  /** The latest picture of the publisher that needs no other one. */
  readonly keyFrame: KeyFrame | undefined
  /** Of the audio that was sent last. */
  readonly audio: SentAudio | undefined
  /** A coded picture in this format; undefined until there is one. */
  readonly findSlate: (format: VideoFormat) => Buffer | undefined
}

/** A picture that is shown for a while. */
interface Still {
  /** What it was made of. */
  readonly source: KeyFrame | Buffer
  readonly key: Buffer
  /** Undefined where only key frames can be sent. */
  readonly skips: SkipPictures | undefined
}

export class GapFiller {
  readonly #player: PlayerStream
  /** Undefined while a stream arrives. */
  #since: number | undefined
  #lastDataAt: number | undefined
  #lastTickAt = 0
  #still: Still | undefined
  /** The time of the last key frame of the filler, and the number of the last picture after it. */
  #keyTime: number | undefined
  #number = 0
  #filledMillis = 0
  /** No publisher was on the air yet. */
  #isBeginning = false

  constructor(player: PlayerStream) {
    this.#player = player
  }

  /** Whether players have received a filler since the last data of a publisher. */
  get isFilling(): boolean {
    return this.#since !== undefined
  }

  get hasShownPicture(): boolean {
    return this.#keyTime !== undefined
  }

  filledMillis(now: number): number {
    return Math.round(this.#filledMillis + (this.#since === undefined ? 0 : this.#filledUntil(now) - this.#since))
  }

  /** Begins without any data before: the pictures come at once. */
  beginWithPicture(now: number): void {
    this.#lastDataAt = now - fillerMillisMin
    this.#isBeginning = true
  }

  /** A stream without a timeline is sent, after which there is no filler. */
  stop(now: number): void {
    this.end(now)
    this.#still = undefined
    this.#lastDataAt = undefined
  }

  /** Data of a publisher are sent. */
  end(now: number): void {
    this.#filledMillis = this.filledMillis(now)
    this.#since = undefined
    this.#keyTime = undefined
    this.#lastDataAt = now
    this.#isBeginning = false
  }

  /** Sends what is due. */
  tick(source: FillerSource, now: number): void {
    const player = this.#player
    const { program } = player
    if (this.#lastDataAt === undefined || program === undefined || source.mode === 'hold') return
    const silentMillis = now - this.#lastDataAt
    if (silentMillis < fillerMillisMin || silentMillis > fillerMillisMax) return
    const elapsed = this.#since === undefined ? silentMillis : now - this.#lastTickAt
    this.#lastTickAt = now
    this.#since ??= now
    // The first of them are for the time before this moment, so the clock comes last.
    this.#pushSilence(source, now)
    this.#pushPictures(source, now)
    player.pushReferences(now, elapsed)
    player.flush({ isAligned: true })
  }

  /** What is due before a stream begins: silence, and the end of the pictures. */
  finish(source: FillerSource, now: number): void {
    const silentMillis = now - (this.#lastDataAt ?? Number.NEGATIVE_INFINITY)
    if (silentMillis > (this.isFilling ? fillerMillisMax : shortMillisMax)) return
    this.#pushSilence(source, now)
    this.#endSequence(now)
  }

  /** Some key frames of HEVC are taken for a later picture of the same sequence, unless it has ended. */
  #endSequence(now: number): void {
    const skips = this.#still?.skips
    if (this.#keyTime === undefined || skips === undefined || this.#player.videoCodec !== 'hevc') return
    this.#number += 1
    const last = Buffer.concat([skips.write(this.#number), endOfSequence])
    this.#player.pushPicture(last, this.#player.clock.at(now) - 2 * ticksPerMilli, {})
  }

  #filledUntil(now: number): number {
    return Math.min(now, (this.#lastDataAt ?? now) + fillerMillisMax)
  }

  #pushSilence({ audio }: FillerSource, now: number): void {
    if (audio !== undefined) this.#player.pushSilence(audio, this.#player.clock.at(now) + this.#player.audioLead)
  }

  /** The pictures up to now. */
  #pushPictures(source: FillerSource, now: number): void {
    const still = this.#findStill(source)
    if (still === undefined) return
    const clock = this.#player.clock.at(now)
    const frameTicks = ticksPerSecond / (source.video?.frameRate ?? usualFrameRate)
    const keyTicks = still.skips ? keyTicksMax : keyTicksOf(still.key, frameTicks)
    const last = Math.max(this.#player.lastVideoTime ?? clock - frameTicks, clock - owedTicksMax)
    for (let time = last + frameTicks; time <= clock; time += frameTicks) this.#pushPicture(still, time, keyTicks)
  }

  #pushPicture({ key, skips }: Still, time: number, keyTicks: number): void {
    if (this.#keyTime === undefined || time - this.#keyTime >= keyTicks) {
      this.#keyTime = time
      this.#number = 0
      this.#player.pushTables()
      this.#player.pushPicture(key, time, { isRandomAccess: true })
    } else if (skips !== undefined) {
      this.#number += 1
      this.#player.pushPicture(skips.write(this.#number), time, {})
    }
  }

  /** The slate where it is wanted and ready, and where this relay has had no picture. */
  #findStill({ mode, video, keyFrame, findSlate }: FillerSource): Still | undefined {
    const codec = this.#player.videoCodec
    const isSlateWanted = mode === 'slate' || (keyFrame === undefined && this.#isBeginning)
    const slate = isSlateWanted && video && video.codec === codec ? findSlate(video) : undefined
    const source = slate ?? (keyFrame?.codec === codec ? keyFrame : undefined)
    if (source === undefined || codec === undefined) return undefined
    if (this.#still?.source === source) return this.#still
    const pieces = 'pieces' in source ? source.pieces : [source]
    this.#still = { source, ...createStill(codec, Buffer.concat(pieces)) }
    // Pictures that repeat another one cannot follow.
    this.#keyTime = undefined
    return this.#still
  }
}

function createStill(codec: VideoCodec, key: Buffer): Omit<Still, 'source'> {
  if (codec === 'h264') return { key, skips: createH264SkipPictures(key) }
  const skips = createHevcSkipPictures(key)
  return { key: Buffer.concat(skips ? [endOfSequence, key] : [endOfSequence, key, endOfSequence]), skips }
}

const keyTicksOf = (key: Buffer, frameTicks: number): number =>
  Math.min(Math.max((key.length * 8 * ticksPerSecond) / pictureBitsPerSecondMax, frameTicks), keyTicksMax) - 1
