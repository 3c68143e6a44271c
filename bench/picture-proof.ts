/** The result of `npm run soak -- picture`, and its table in docs/proof.md. */
import { formatCells } from './table.ts'

/** Of all recordings of a mode. */
export interface PictureFigures {
  /** Counters, clocks and times that are wrong by the standard. */
  readonly streamErrors: number
  /** Decoded pictures whose time is not after that of the one before. */
  readonly stepsBack: number
  /** Lines that ffprobe logs. */
  readonly complaints: number
  /** Between two decoded pictures in their own times. */
  readonly largestStepMillis: number
  /** The longest time in which no picture, and no sound, arrived at the player. */
  readonly pictureGapMillis: number
  readonly soundGapMillis: number
  readonly offsetChangeMillis: number
  /** Publishers whose first picture at the player is no key frame. */
  readonly startsWithoutKeyFrame: number
  /** Pictures that the end of their publisher cut. */
  readonly cutUnits: number
  readonly sentUnits: number
  readonly arrivedUnits: number
  readonly gaps: number
  readonly lostConnections: number
}

export interface PictureProof {
  readonly seed: number
  readonly measuredAt: string
  readonly machine: string
  readonly load: number
  /** By what players see while no stream arrives; `off` is a relay that does not repair the timeline. */
  readonly modes: Readonly<Record<string, PictureFigures>>
}

const seconds = (millis: number) => `${(millis / 1_000).toFixed(2)} s`
const percent = ({ arrivedUnits, sentUnits }: PictureFigures) => `${((100 * arrivedUnits) / sentUnits).toFixed(2)} %`

const lines: readonly (readonly [string, (figures: PictureFigures) => string | number])[] = [
  ['gaps', ({ gaps }) => gaps],
  ['errors in counters, clocks and times', ({ streamErrors }) => streamErrors],
  ['complaints of ffprobe', ({ complaints }) => complaints],
  ['decoded pictures that go back in time', ({ stepsBack }) => stepsBack],
  ['largest step between decoded pictures', ({ largestStepMillis }) => seconds(largestStepMillis)],
  ['longest wait for a picture', ({ pictureGapMillis }) => seconds(pictureGapMillis)],
  ['longest wait for sound', ({ soundGapMillis }) => seconds(soundGapMillis)],
  ['greatest change of sound against picture', ({ offsetChangeMillis }) => `${offsetChangeMillis.toFixed(1)} ms`],
  ['returns without a key frame', ({ startsWithoutKeyFrame }) => startsWithoutKeyFrame],
  ['pictures cut by the end of their publisher', ({ cutUnits }) => cutUnits],
  ['live units that arrived whole', percent],
  ['connections that players lost', ({ lostConnections }) => lostConnections],
]

/** @returns Markdown. */
export function renderPicture({ seed, measuredAt, machine, load, modes }: PictureProof): string {
  const names = Object.keys(modes)
  const table = formatCells([
    ['at the player', ...names.map((name) => `\`${name}\``)],
    ...lines.map(([what, show]) => [what, ...Object.values(modes).map((figures) => String(show(figures)))]),
  ])
  const time = measuredAt.replace('T', ' ').slice(0, 16)
  return `Measured ${time} UTC, seed ${seed}, ${machine}, load average ${load}.\n\n${table}`
}
