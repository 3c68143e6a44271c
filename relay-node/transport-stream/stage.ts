/**
 * Between the publishers and the players of a relay: makes one timeline of the streams of all publishers, and fills the
 * gaps between them. A stream that is no MPEG-TS passes as it is.
 */
import type { AudioFormat, StreamFormat, VideoFormat } from '../../domain/relay/stream-format.ts'
import type { TimelineStats } from '../engine.ts'
import { type LossPicture, noLossPicture } from '../loss-picture.ts'
import { frameTicksOf } from './audio-format.ts'
import { type FillerSource, GapFiller, tickMillis } from './gap-filler.ts'
import type { KeyFrame } from './key-frame.ts'
import type { OnAir } from './on-air.ts'
import { PlayerStream, type Send, type SentAudio } from './player-stream.ts'
import { PublisherStream } from './publisher-stream.ts'
import { startingProgram } from './starting-program.ts'
import { ticksPerSecond } from './stream-times.ts'

export interface StageOptions {
  readonly send: Send
  /** The publisher of a stream that passed as it is has ended. */
  readonly flush: (newest: number) => void
  /** A coded picture in this format; undefined until there is one. */
  readonly findSlate: (format: VideoFormat) => Buffer | undefined
  /** All streams pass as they are, to compare with. */
  readonly isOff?: boolean | undefined
  /** The number of the latest player. */
  readonly newestPlayer: () => number
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
}

/** The stream of one publisher. */
export interface Publication {
  /** Data have arrived, which the engine delivers after its latency. The present players are those of the stream. */
  received(): void
  /** The engine delivers data. */
  write(chunk: Buffer): void
  /** The engine has delivered all data. */
  end(): void
}

/** Where the timeline of a relay begins that has a slate before its first publisher. */
const startTicks = 10 * ticksPerSecond

export class Stage {
  readonly #options: StageOptions
  readonly #player: PlayerStream
  readonly #filler: GapFiller
  #published = 0
  /** The number of the publisher that is on the air, or was last. */
  #onAir = 0
  #isUntouched = false
  #segments = 0
  #picture: LossPicture = noLossPicture
  #keyFrame: KeyFrame | undefined
  #video: VideoFormat | undefined
  #audio: SentAudio | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(options: StageOptions) {
    this.#options = options
    this.#player = new PlayerStream(options.send)
    this.#filler = new GapFiller(this.#player)
  }

  /** Sets what players see while no stream arrives. */
  show(picture: LossPicture): void {
    this.#picture = picture
    this.#start()
  }

  /** Of the latest stream; undefined until it is known. */
  get format(): StreamFormat | undefined {
    return this.#video && { video: this.#video, audio: this.#audio ? audioFormatOf(this.#audio) : null }
  }

  get timeline(): TimelineStats {
    return {
      mode: this.#options.isOff ? 'off' : this.#isUntouched ? 'untouched' : this.#picture.mode,
      segments: this.#segments,
      filled_ms: this.#filler.filledMillis(this.#options.now()),
    }
  }

  publish(): Publication {
    this.#published += 1
    const { now, newestPlayer, isOff = false } = this.#options
    const stream = new PublisherStream(this.#air, this.#published, isOff)
    this.#start()
    stream.newest = newestPlayer()
    return {
      received: () => {
        stream.newest = newestPlayer()
      },
      write: (chunk) => stream.write(chunk, now()),
      end: () => {
        stream.end()
        if (stream.isUntouched) this.#options.flush(stream.newest)
      },
    }
  }

  /** Sends what is due while no stream arrives. Called by a timer. */
  tick(): void {
    const now = this.#options.now()
    if (!this.#player.clock.isSet) this.#beginWithSlate(now)
    this.#filler.tick(this.#source, now)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #start(): void {
    if (!this.#options.isOff) this.#timer ??= setInterval(() => this.tick(), tickMillis).unref()
  }

  /** The players had a stream before this relay, so they see the slate as soon as it is encoded. */
  #beginWithSlate(now: number): void {
    const { mode, format } = this.#picture
    if (mode === 'hold' || format === null || this.#options.findSlate(format.video) === undefined) return
    this.#player.setProgram(startingProgram(format))
    this.#player.clock.set(startTicks, now)
    this.#video = format.video
    this.#audio = format.audio ? { ...format.audio, frameTicks: frameTicksOf(format.audio) } : undefined
    this.#filler.beginWithPicture(now)
  }

  get #source(): FillerSource {
    const { findSlate } = this.#options
    return { mode: this.#picture.mode, video: this.#video, keyFrame: this.#keyFrame, audio: this.#audio, findSlate }
  }

  get #air(): OnAir {
    return {
      player: this.#player,
      filler: this.#filler,
      isSuperseded: (number) => number < this.#onAir,
      finishFiller: () => this.#filler.finish(this.#source, this.#options.now()),
      enter: (number, isSegment) => {
        this.#takeAir(number)
        this.#isUntouched = false
        if (isSegment) this.#segments += 1
      },
      keepKeyFrame: (keyFrame) => {
        this.#keyFrame = keyFrame
      },
      keepFormat: (video) => {
        this.#video = video
        // So that it is ready at the first gap.
        if (this.#picture.mode === 'slate') this.#options.findSlate(video)
      },
      keepAudio: (audio) => {
        this.#audio = audio
      },
      passUntouched: (number, data, newest) => {
        this.#takeAir(number)
        this.#isUntouched = true
        this.#filler.stop(this.#options.now())
        this.#player.align()
        this.#options.send(data, newest)
      },
    }
  }

  #takeAir(number: number): void {
    if (number === this.#onAir) return
    this.#onAir = number
    this.#keyFrame = undefined
  }
}

const audioFormatOf = ({ codec, sampleRate, channels }: AudioFormat): AudioFormat => ({ codec, sampleRate, channels })
