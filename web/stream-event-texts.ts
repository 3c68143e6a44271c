/** What a stream does, in sentences, for its owner and for operators. */
import type { SessionStreamEvent } from './api-replies.ts'
import { formatBitrate } from './stream-text.ts'

const texts: Readonly<Record<SessionStreamEvent['kind'], string>> = {
  stream_started: 'Stream started',
  stream_weak: 'Stream weak',
  stream_recovered: 'Stream recovered',
  stream_lost: 'Stream lost',
  stream_ended: 'Stream ended',
}

/** `Stream weak, 400 kbps`. A stream that is away has no bitrate. */
export const describeStreamEvent = ({ kind, bitrate_kbps: kbps }: SessionStreamEvent): string =>
  kind === 'stream_lost' || kind === 'stream_ended' ? texts[kind] : `${texts[kind]}, ${formatBitrate(kbps)}`

const tones = {
  stream_started: 'good',
  stream_weak: 'warn',
  stream_recovered: 'good',
  stream_lost: 'bad',
  stream_ended: undefined,
} as const satisfies Readonly<Record<SessionStreamEvent['kind'], string | undefined>>

/** The colour of an event on a time line. */
export const toneOfStreamEvent = ({ kind }: SessionStreamEvent) => tones[kind]
