/**
 * What the players receive while no stream arrives: first null packets and silence, so that none of them waits for
 * data, then a picture.
 */
import type { OnLoss } from '../../domain/relay/on-loss.ts'
import type { VideoFormat } from '../../domain/relay/stream-format.ts'
import type { KeyFrame } from './key-frame.ts'
import type { PlayerStream, SentAudio } from './player-stream.ts'

/** How often the stage looks whether a filler is due. */
export const tickMillis = 40
/** Without data. */
export const silenceMillisMin = 500
export const pictureMillisMin = 2_000
/** A pause that is filled with silence in any case, when the next stream begins. */
const shortMillisMax = 1_000
const fillerMillisMax = 30 * 60_000
/** Pictures take no more than this, and come at least once a second, so that a new player has one. */
const pictureBitsPerSecondMax = 4_000_000
const pictureMillisMax = 900
const pictureMillisBest = 200

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

export class GapFiller {
  readonly #player: PlayerStream
  /** Undefined while a stream arrives. */
  #since: number | undefined
  #lastDataAt: number | undefined
  #lastTickAt = 0
  #pictureAt: number | undefined
  /** Until the next picture. */
  #pauseMillis = 0
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
    return this.#pictureAt !== undefined
  }

  filledMillis(now: number): number {
    return Math.round(this.#filledMillis + (this.#since === undefined ? 0 : this.#filledUntil(now) - this.#since))
  }

  /** Begins without any data before: the pictures come at once. */
  beginWithPicture(now: number): void {
    this.#lastDataAt = now - pictureMillisMin
    this.#isBeginning = true
  }

  /** A stream without a timeline is sent, after which there is no filler. */
  stop(now: number): void {
    this.end(now)
    this.#lastDataAt = undefined
  }

  /** Data of a publisher are sent. */
  end(now: number): void {
    this.#filledMillis = this.filledMillis(now)
    this.#since = undefined
    this.#pictureAt = undefined
    this.#lastDataAt = now
    this.#isBeginning = false
  }

  /** Sends what is due. */
  tick(source: FillerSource, now: number): void {
    const player = this.#player
    const { program } = player
    if (this.#lastDataAt === undefined || program === undefined || source.mode === 'hold') return
    const silentMillis = now - this.#lastDataAt
    if (silentMillis < silenceMillisMin || silentMillis > fillerMillisMax) return
    const elapsed = this.#since === undefined ? silentMillis : now - this.#lastTickAt
    this.#lastTickAt = now
    this.#since ??= now
    // The clock of the first references may be later than the first silence.
    this.#pushSilence(source, now)
    player.pushReferences(now, elapsed)
    if (silentMillis >= pictureMillisMin) this.#pushPicture(source, now)
    player.flush({ isAligned: true })
  }

  /** The silence that is due before a stream begins. */
  finish(source: FillerSource, now: number): void {
    const silentMillis = now - (this.#lastDataAt ?? Number.NEGATIVE_INFINITY)
    if (silentMillis <= (this.isFilling ? fillerMillisMax : shortMillisMax)) this.#pushSilence(source, now)
  }

  #filledUntil(now: number): number {
    return Math.min(now, (this.#lastDataAt ?? now) + fillerMillisMax)
  }

  #pushSilence({ audio }: FillerSource, now: number): void {
    if (audio !== undefined) this.#player.pushSilence(audio, this.#player.clock.at(now) + this.#player.audioLead)
  }

  #pushPicture(source: FillerSource, now: number): void {
    if (this.#pictureAt !== undefined && now - this.#pictureAt < this.#pauseMillis - tickMillis / 2) return
    const unit = this.#choosePicture(source)
    if (unit === undefined) return
    const fittingMillis = (unit.length * 8 * 1000) / pictureBitsPerSecondMax
    this.#pauseMillis = Math.min(Math.max(fittingMillis, pictureMillisBest), pictureMillisMax)
    this.#pictureAt = now
    this.#player.pushPicture(unit, now)
  }

  /** The slate where it is wanted and ready, and where this relay has had no picture. */
  #choosePicture({ mode, video, keyFrame, findSlate }: FillerSource): Buffer | undefined {
    const codec = this.#player.videoCodec
    const isSlateWanted = mode === 'slate' || (keyFrame === undefined && this.#isBeginning)
    const slate = isSlateWanted && video && video.codec === codec ? findSlate(video) : undefined
    const pieces = slate ? [slate] : keyFrame?.codec === codec ? keyFrame?.pieces : undefined
    if (pieces === undefined) return undefined
    return Buffer.concat(codec === 'hevc' ? [endOfSequence, ...pieces, endOfSequence] : pieces)
  }
}
