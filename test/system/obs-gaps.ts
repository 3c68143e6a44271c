/** A stream that breaks off again and again, and what OBS and a player that measures its sound see of that. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Beat, startBeatJudge } from '../support/beats.ts'
import type { Obs } from '../support/obs.ts'
import { addMediaSource, removeInput } from '../support/obs-inputs.ts'
import { watchPicture } from '../support/obs-picture.ts'
import { startPictureStream } from '../support/picture-stream.ts'
import { createRandom } from '../support/random.ts'

export interface Gaps {
  readonly publishUrl: string
  readonly playUrl: string
  readonly count: number
  /** From the first gap to the last one. */
  readonly seconds: number
  /** Of each gap, from the death of the publisher to the start of the next one. */
  readonly gapSeconds: readonly [min: number, max: number]
  readonly seed: number
}

export interface Gap {
  readonly gapSeconds: number
  /** From the first bytes of the publisher that returned until OBS shows a picture of it. */
  readonly freshSeconds: number
  /** By how much that is more than the age that pictures had before the first gap: OBS holds seconds back. */
  readonly lateSeconds: number
  /** Whether OBS showed a picture all the time. */
  readonly hasPicture: boolean
  /** The age of the pictures seconds after the return. */
  readonly ageSeconds: number
  /** Between the sound and the picture after the return, by the player that measures them; null without one. */
  readonly offsetMillis: number | null
  readonly state: string
}

export interface GapFigures {
  readonly gaps: readonly Gap[]
  /** Before the first gap, as the next one. */
  readonly normalAgeSeconds: number
  readonly offsetMillis: number
  /** The greatest difference of an offset after a gap from that before the first one. */
  readonly offsetChangeMillis: number
  /** Lines of OBS's log. */
  readonly maxAudioBuffering: number
  readonly audioLagging: number
  /** What OBS has delayed all audio by. */
  readonly audioBufferingMillis: number
  /** How often the source of OBS has ended, and the player that measures has called again. */
  readonly endings: number
  readonly callsAgain: number
}

const freshSecondsMax = 30
/** The measurements of the beats end that long after a return, at the latest. */
const settleMillis = 4_500
const judgeDelayMillis = 2_500
const steadyMillis = 6_000
const startsMax = 4

export async function watchGaps(obs: Obs, { publishUrl, playUrl, count, seconds, gapSeconds, seed }: Gaps) {
  const random = createRandom(seed)
  const inputName = `gaps ${seed}`
  const stream = startPictureStream(publishUrl, { hasBeats: true })
  // OBS estimates the frame rate of a stream that flows; one that begins later makes its pictures older.
  await sleep(1_500)
  const judge = startBeatJudge(playUrl)
  const { watch, logBefore } = await playInOrder(obs, { name: inputName, url: playUrl })
  let endings = 0
  obs.socket.on('MediaInputPlaybackEnded', (event) => {
    if (event.inputName === inputName) endings += 1
  })
  const normalAgeSeconds = watch.setNormalAge()
  const before = offsetOf(judge.beats, 0)
  const gaps: Gap[] = []
  const pauseMillis = (seconds * 1_000) / count
  for (let index = 0; index < count; index += 1) {
    const startedAt = Date.now()
    const lasts = random.between(...gapSeconds)
    await stream.kill()
    await sleep(lasts * 1_000)
    stream.start()
    const freshAt = await untilShown(watch, stream.firstBytesAt)
    const firstBytesAt = stream.firstBytesAt() ?? freshAt
    await sleep(settleMillis)
    const during = watch.samples.filter(({ at }) => at > startedAt && at < freshAt)
    const { mediaState } = await obs.call('GetMediaInputStatus', { inputName })
    const gap: Gap = {
      gapSeconds: lasts,
      freshSeconds: (freshAt - firstBytesAt) / 1_000,
      lateSeconds: (freshAt - firstBytesAt) / 1_000 - normalAgeSeconds,
      hasPicture: during.every(({ picture }) => picture.kind === 'picture'),
      ageSeconds: ageOf(watch.samples),
      offsetMillis: offsetOf(judge.beats, firstBytesAt + judgeDelayMillis),
      state: mediaState.replace('OBS_MEDIA_STATE_', ''),
    }
    gaps.push(gap)
    process.stdout.write(`[obs] ${new Date(startedAt).toISOString().slice(11, 23)} ${describe(gap)}\n`)
    await sleep(Math.max(0, startedAt + pauseMillis - Date.now()))
  }
  await stream.stop()
  await watch.end()
  await judge.end()
  await removeInput(obs, inputName)
  const log = (await obs.logText()).slice(logBefore)
  for (const line of log.split('\n').filter((each) => /audio buffering/.test(each)))
    process.stdout.write(`[obs] ${line}\n`)
  const offsets = gaps.flatMap(({ offsetMillis }) => (offsetMillis === null ? [] : [offsetMillis]))
  const figures: GapFigures = {
    gaps,
    normalAgeSeconds,
    offsetMillis: before ?? Number.NaN,
    offsetChangeMillis: Math.max(...offsets.map((offset) => Math.abs(offset - (before ?? Number.NaN)))),
    maxAudioBuffering: countOf(log, /Max audio buffering/g),
    audioLagging: countOf(log, /audio is lagging/g),
    audioBufferingMillis: Number([...log.matchAll(/total audio buffering is now (\d+)/g)].at(-1)?.[1] ?? 0),
    endings,
    callsAgain: judge.connections() - 1,
  }
  return figures
}

/**
 * Plays the stream until all is steady. On a busy machine OBS may fall behind at its start. Then it delays all sound as
 * far as it can, and no gap could be heard or logged any more, so it is started again.
 */
async function playInOrder(obs: Obs, source: { readonly name: string; readonly url: string }) {
  for (let start = 1; ; start += 1) {
    const logBefore = (await obs.logText()).length
    await addMediaSource(obs, source)
    const watch = watchPicture(obs, source.name)
    await watch.untilFresh(Date.now(), freshSecondsMax)
    await sleep(steadyMillis)
    const isBehind = (await obs.logText()).slice(logBefore).includes('Max audio buffering')
    if (!isBehind || start === startsMax) return { watch, logBefore }
    process.stdout.write('[obs] OBS fell behind before the first gap, and is started again\n')
    await watch.end()
    await removeInput(obs, source.name)
    await obs.restart()
  }
}

/** Resolves with the moment at which a picture of the present publisher is shown. It may be refused at first. */
async function untilShown(
  { samples }: ReturnType<typeof watchPicture>,
  firstBytesAt: () => number | undefined,
): Promise<number> {
  for (const until = Date.now() + freshSecondsMax * 1_000; Date.now() < until; await sleep(20)) {
    const from = firstBytesAt()
    const shown = from === undefined ? undefined : samples.find(({ at, madeAt }) => at > from && madeAt > from - 200)
    if (shown) return shown.at
  }
  throw new Error(`OBS showed no picture of the publisher that returned within ${freshSecondsMax} s`)
}

const countOf = (text: string, pattern: RegExp): number => [...text.matchAll(pattern)].length

const medianOf = (values: readonly number[]): number | undefined =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

const offsetOf = (beats: readonly Beat[], from: number): number | null =>
  medianOf(beats.filter(({ at }) => at > from).map(({ offsetMillis }) => offsetMillis)) ?? null

const ageOf = (samples: ReturnType<typeof watchPicture>['samples']): number =>
  medianOf(samples.slice(-5).flatMap(({ picture }) => (picture.kind === 'picture' ? [picture.ageSeconds] : []))) ??
  Number.NaN

const describe = (gap: Gap): string =>
  [
    `gap ${gap.gapSeconds.toFixed(1)} s: picture after ${gap.freshSeconds.toFixed(2)} s`,
    `${gap.ageSeconds.toFixed(2)} s old`,
    `${gap.hasPicture ? 'a' : 'not always a'} picture meanwhile`,
    `sound ${gap.offsetMillis?.toFixed(0) ?? '?'} ms after it, ${gap.state}`,
  ].join(', ')
