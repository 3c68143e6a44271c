/** The figures of a stream with gaps in OBS, as rows of docs/proof. */
import { type Bound, type Row, single } from '../../bench/rows.ts'
import type { Gap, GapFigures } from './obs-gaps.ts'
import type { PictureMode } from './obs-picture-relay.ts'

export const offsetMillisMax = 20
const atMost: Bound = 'at_most'

const spread = (gaps: readonly Gap[], member: 'freshSeconds' | 'lateSeconds') => {
  const values = gaps.map((gap) => gap[member]).toSorted((a, b) => a - b)
  const [min = Number.NaN, max = Number.NaN] = [values.at(0), values.at(-1)]
  return { median: values[Math.floor(values.length / 2)] ?? Number.NaN, min, max }
}

export function rowsOf(mode: PictureMode, figures: GapFigures, obsVersion: string): Row[] {
  const { gaps, normalAgeSeconds, offsetChangeMillis } = figures
  const [fresh, late] = [spread(gaps, 'freshSeconds'), spread(gaps, 'lateSeconds')]
  const figure = (name: string, what: string, unit: string) => ({
    name: `picture_obs_${mode}_${name}`,
    what: `${mode}, ${gaps.length} gaps: ${what}`,
    unit,
  })
  const count = (name: string, what: string, value: number) => {
    const { name: fullName, what: fullWhat, unit } = figure(name, what, 'times')
    return single({ name: fullName, what: fullWhat, unit, target: 0, bound: atMost }, value)
  }
  const target = (max: number) => ({ target: max, bound: atMost })
  const lateFigure = figure('late', 'the same beyond the usual age of a picture, the longest', 's')
  const offset = figure('offset', 'change of the time between picture and sound, the greatest', 'ms')
  const rows = [
    single(figure('age', 'usual age of a picture before the first gap', 's'), normalAgeSeconds),
    single(figure('fresh', 'first key frame of the publisher → its picture in OBS', 's'), fresh.median, fresh),
    single(Object.assign(lateFigure, target(1)), late.max, late),
    single(Object.assign(offset, target(offsetMillisMax)), offsetChangeMillis),
    count('buffering', 'OBS logs "Max audio buffering reached"', figures.maxAudioBuffering),
    single(figure('delay', 'what OBS delays all audio by', 'ms'), figures.audioBufferingMillis),
    count('lagging', 'OBS logs "audio is lagging" and restarts the sound', figures.audioLagging),
    count('endings', 'the source in OBS ends, or a player has to call again', figures.endings + figures.callsAgain),
    count('blank', 'OBS has no picture of the stream for a moment', gaps.filter((gap) => !gap.hasPicture).length),
  ]
  return rows.map((row) => Object.assign(row, { machine: `${row.machine}, OBS ${obsVersion}` }))
}
