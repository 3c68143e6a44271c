/**
 * What a stream does, for people, and when. A relay judges the samples of its stream: the rules wait for a few seconds,
 * so that a stream at the limit causes no series of events. Pure, with the time as an argument.
 */
import type { Millis } from '../millis.ts'

export const streamEventKinds = [
  'stream_started',
  'stream_weak',
  'stream_recovered',
  'stream_lost',
  'stream_ended',
] as const
export type StreamEventKind = (typeof streamEventKinds)[number]

/** What a stream is after an event. `none`: it has not started, or has ended. */
export type StreamState = 'none' | 'good' | 'weak' | 'lost'

const statesAfter: Readonly<Record<StreamEventKind, StreamState>> = {
  stream_started: 'good',
  stream_weak: 'weak',
  stream_recovered: 'good',
  stream_lost: 'lost',
  stream_ended: 'none',
}

export const streamStateAfter = (kind: StreamEventKind | undefined): StreamState =>
  kind === undefined ? 'none' : statesAfter[kind]

/** A stream starts when data has come in for this long without a silent second. */
const startMillis = 1_000
/** A stream is weak when every second of this time was below the limit. */
const weakMillis = 3_000
/** A stream has recovered when every second that ended within this time was at the limit or above. */
const goodMillis = 2_000
/** A stream without data for this long is lost. */
const lostMillis = 2_000
/** A stream that has been lost for this long has ended. */
export const endMillis = 5 * 60_000
/** No event follows another one sooner. */
export const eventGapMillisMin = 2_000
/** The time over which the bitrate of a sample is measured. */
export const bitrateMillis = 1_000
/** After a longer pause between samples the process did not run, so the pause says nothing about the stream. */
const sampleGapMillisMax = 1_000

export interface StreamSample {
  readonly at: Millis
  /** When the last data packet came; negative infinity before the first one. */
  readonly lastDataAt: Millis
  /** Over the last second. */
  readonly bitrateKbps: number
}

/** What a relay keeps from one sample to the next. Times without a value are undefined. */
export interface JudgedStream {
  readonly lastKind: StreamEventKind | undefined
  readonly lastEventAt: Millis
  readonly sampledAt: Millis
  /** Since when samples follow each other without a pause. */
  readonly watchedSince: Millis
  readonly flowingSince: Millis | undefined
  readonly belowSince: Millis | undefined
  readonly goodSince: Millis | undefined
}

export const unjudgedStream: JudgedStream = {
  lastKind: undefined,
  lastEventAt: Number.NEGATIVE_INFINITY,
  sampledAt: Number.NEGATIVE_INFINITY,
  watchedSince: Number.NEGATIVE_INFINITY,
  flowingSince: undefined,
  belowSince: undefined,
  goodSince: undefined,
}

export interface JudgedSample {
  readonly judged: JudgedStream
  /** The event that the sample completes. */
  readonly kind: StreamEventKind | undefined
}

/**
 * Judges the next sample. They should come twice a second or more often.
 * @param weakKbps the limit below which a stream is weak.
 */
export function judgeSample(before: JudgedStream, sample: StreamSample, weakKbps: number): JudgedSample {
  const watched = watch(before, sample, weakKbps)
  const kind = findEvent(watched, sample)
  return { kind, judged: kind === undefined ? watched : { ...watched, lastKind: kind, lastEventAt: sample.at } }
}

/** The relay ends. @returns whether a stream ends with it. */
export const isEndOfStream = ({ lastKind }: JudgedStream): boolean => streamStateAfter(lastKind) !== 'none'

function watch(before: JudgedStream, { at, lastDataAt, bitrateKbps }: StreamSample, weakKbps: number): JudgedStream {
  const hasPaused = at - before.sampledAt > sampleGapMillisMax
  const { watchedSince, flowingSince, belowSince, goodSince } = hasPaused
    ? { watchedSince: at, flowingSince: undefined, belowSince: undefined, goodSince: undefined }
    : before
  const isBelow = bitrateKbps < weakKbps
  return {
    ...before,
    sampledAt: at,
    watchedSince,
    flowingSince: at - lastDataAt < bitrateMillis ? (flowingSince ?? lastDataAt) : undefined,
    belowSince: isBelow ? (belowSince ?? at) : undefined,
    goodSince: isBelow ? undefined : (goodSince ?? at),
  }
}

function findEvent(judged: JudgedStream, { at, lastDataAt }: StreamSample): StreamEventKind | undefined {
  const { lastKind, lastEventAt, watchedSince, flowingSince, belowSince, goodSince } = judged
  const hasLasted = (since: Millis | undefined, millis: number) => since !== undefined && at - since >= millis
  if (!hasLasted(lastEventAt, eventGapMillisMin)) return undefined
  const state = streamStateAfter(lastKind)
  // The first second below the limit ends when the bitrate is below it for the first time.
  const isWeak = hasLasted(belowSince, weakMillis - bitrateMillis)
  if (state === 'none') return hasLasted(flowingSince, startMillis) ? 'stream_started' : undefined
  if (state !== 'lost' && hasLasted(Math.max(lastDataAt, watchedSince), lostMillis)) return 'stream_lost'
  if (state !== 'good' && hasLasted(goodSince, goodMillis)) return 'stream_recovered'
  if (state === 'good' && isWeak) return 'stream_weak'
  if (state === 'lost' && isWeak && hasLasted(flowingSince, weakMillis)) return 'stream_weak'
  return state === 'lost' && hasLasted(lastEventAt, endMillis) ? 'stream_ended' : undefined
}
