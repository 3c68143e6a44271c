/**
 * Judges what OBS shows of a stream of {@link startPictureStream}: whether there is a picture, and how old it is. The
 * picture carries the time at which it was made, as a bar code.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from './at-end.ts'
import type { Obs } from './obs.ts'
import { columns, framesPerSecond, numberOfBits } from './picture-code.ts'

/** Of the screenshot. A column of the code has 8 pixels. */
const [imageWidth, imageHeight] = [160, 8]

export type Picture =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'picture'
      /** Of the frame, which changes with each one. */
      readonly number: number
      readonly ageSeconds: number
    }

const none: Picture = { kind: 'none' }

/** Codes of the WebSocket's protocol: OBS still loads its scenes, and a resource does not exist. */
const withoutPicture: readonly unknown[] = [207, 600]

/** What the input shows now. None without the input, before its first frame, and while OBS starts again. */
export async function readPictureAge({ socket }: Pick<Obs, 'socket'>, inputName: string): Promise<Picture> {
  if (!socket.identified) return none
  const request = { sourceName: inputName, imageFormat: 'bmp', imageWidth, imageHeight }
  try {
    const { imageData } = await socket.call('GetSourceScreenshot', request)
    return decode(Buffer.from(imageData.slice(imageData.indexOf(',') + 1), 'base64'), Date.now())
  } catch (error) {
    if (withoutPicture.includes((error as { code?: unknown }).code) || !socket.identified) return none
    throw error
  }
}

/** Reads the middle of each column in the middle line of a BMP. */
function decode(bmp: Buffer, now: number): Picture {
  const [data, width, bits] = [bmp.readUInt32LE(10), bmp.readInt32LE(18), bmp.readUInt16LE(28)]
  const lineBytes = Math.ceil((width * bits) / 32) * 4
  const levels = Array.from({ length: columns }, (_, column) => {
    const x = Math.floor(((column + 0.5) * width) / columns)
    // The second of the bytes of a pixel is green.
    return bmp[data + (imageHeight / 2) * lineBytes + (x * bits) / 8 + 1] ?? 0
  })
  const number = numberOfBits(levels.map((level) => (level > 170 ? 1 : level < 85 ? 0 : undefined)))
  return number === undefined ? none : { kind: 'picture', number, ageSeconds: ageOf(number, now) }
}

/** Numbers repeat after 73 minutes, so an age beyond the half of that is read as a negative one. */
function ageOf(number: number, now: number): number {
  const period = 2 ** 16
  const frames = ((((now / 1000) * framesPerSecond - number) % period) + period) % period
  return (frames > period / 2 ? frames - period : frames) / framesPerSecond
}

interface Sample {
  readonly at: number
  readonly picture: Picture
  /** When the picture was made; never without one. */
  readonly madeAt: number
  /** Whether it is another picture than that of the sample before, and not too old. */
  readonly isFresh: boolean
}

export interface PictureFigures {
  /** The sum of all gaps. */
  readonly secondsWithoutFresh: number
  readonly longestGapSeconds: number
  /** From the beginning of the interval to the first fresh picture in it; null when there is none. */
  readonly firstFreshSeconds: number | null
}

export interface WatchOptions {
  /** Above the normal age, and still fresh. */
  readonly lateSecondsMax?: number
}

const sampleMillis = 200
/** Less is the jitter of a busy machine, and no gap. */
const gapMillisMin = 700

/** Samples the picture of an input five times a second, to the end of the tests of the file. */
export function watchPicture(obs: Pick<Obs, 'socket'>, inputName: string, { lateSecondsMax = 1.5 }: WatchOptions = {}) {
  const samples: Sample[] = []
  let normalAgeSeconds: number | undefined
  let isOver = false
  const isFresh = (picture: Picture): boolean => {
    const before = samples.at(-1)?.picture
    if (picture.kind === 'none' || before?.kind !== 'picture' || picture.number === before.number) return false
    return picture.ageSeconds <= (normalAgeSeconds ?? Number.POSITIVE_INFINITY) + lateSecondsMax
  }
  const run = async () => {
    while (!isOver) {
      const picture = await readPictureAge(obs, inputName)
      const at = Date.now()
      const madeAt = picture.kind === 'none' ? Number.NEGATIVE_INFINITY : at - picture.ageSeconds * 1000
      samples.push({ at, picture, madeAt, isFresh: isFresh(picture) })
      await sleep(sampleMillis)
    }
  }
  const running = run()
  // Reported by the calls below.
  running.catch(() => {})
  const end = async () => {
    isOver = true
    await running
  }
  atEnd(end)
  const describe = () => JSON.stringify(samples.slice(-5).map(({ picture }) => picture))
  const untilSample = async (isWanted: (sample: Sample) => boolean, secondsMax: number): Promise<Sample> => {
    for (const until = Date.now() + secondsMax * 1000; ; await sleep(50)) {
      const found = samples.find((sample) => sample.isFresh && isWanted(sample))
      if (found) return found
      if (isOver || Date.now() > until) throw new Error(`no fresh picture came within ${secondsMax} s: ${describe()}`)
      // Rejects when the picture cannot be read.
      await Promise.race([running, sleep(0)])
    }
  }
  return {
    inputName,
    end,
    samples: samples as readonly Sample[],
    latest: (): Picture => samples.at(-1)?.picture ?? none,
    /** Takes the median age of the last two seconds as the normal one from now on, and returns it. */
    setNormalAge(): number {
      const ages = samples.slice(-10).flatMap(({ picture }) => (picture.kind === 'picture' ? [picture.ageSeconds] : []))
      normalAgeSeconds = ages.toSorted((a, b) => a - b)[Math.floor(ages.length / 2)]
      if (normalAgeSeconds === undefined) throw new Error('no picture has a normal age')
      return normalAgeSeconds
    },
    /** Resolves with the seconds from a moment to the first fresh picture that is shown after it. */
    async untilFresh(moment: number, secondsMax: number): Promise<number> {
      const { at } = await untilSample((sample) => sample.at > moment, secondsMax)
      return (at - moment) / 1000
    },
    /** The same for the first fresh picture that was made after it, which no buffer held before. */
    async untilMadeAfter(moment: number, secondsMax: number): Promise<number> {
      const { at } = await untilSample((sample) => sample.madeAt > moment, secondsMax)
      return (at - moment) / 1000
    },
    /** Between two moments, by default until now. */
    figures(from: number, to = Date.now()): PictureFigures {
      const fresh = samples.filter(({ at, isFresh }) => isFresh && at > from && at <= to).map(({ at }) => at)
      const edges = [from, ...fresh, to]
      const gaps = edges.slice(1).map((at, index) => at - (edges[index] ?? at))
      const counted = gaps.filter((millis) => millis >= gapMillisMin)
      return {
        secondsWithoutFresh: counted.reduce((sum, millis) => sum + millis, 0) / 1000,
        longestGapSeconds: Math.max(0, ...counted) / 1000,
        firstFreshSeconds: fresh[0] === undefined ? null : (fresh[0] - from) / 1000,
      }
    },
  }
}

export type PictureWatch = ReturnType<typeof watchPicture>
