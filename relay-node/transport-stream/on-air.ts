import type { VideoFormat } from '../../domain/relay/stream-format.ts'
import type { GapFiller } from './gap-filler.ts'
import type { KeyFrame } from './key-frame.ts'
import type { PlayerStream, SentAudio } from './player-stream.ts'

/** What the publishers of a relay have in common. */
export interface OnAir {
  readonly player: PlayerStream
  readonly filler: GapFiller
  /** Whether a later publisher is on the air. @param number of the publisher, which grows. */
  isSuperseded(number: number): boolean
  /** Sends the silence that is due before a stream begins. */
  finishFiller(): void
  /** The stream comes on the air. @param isSegment with another constant than before. */
  enter(number: number, isSegment: boolean): void
  keepKeyFrame(keyFrame: KeyFrame): void
  keepFormat(format: VideoFormat): void
  keepAudio(audio: SentAudio): void
  /** The stream is no MPEG-TS that the stage understands, and passes as it is. @param newest as of {@link Send}. */
  passUntouched(number: number, data: Buffer, newest: number): void
}
