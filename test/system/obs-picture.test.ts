/**
 * OBS plays a stream whose publisher dies and returns: the picture goes on by itself, and the sound stays with it.
 * `npm run soak -- picture-obs` takes half an hour with 40 gaps, and writes docs/proof/picture-obs-MODE.json.
 */
import { beforeAll, expect, vi } from 'vitest'
import { writeRows } from '../../bench/rows.ts'
import { formatTable } from '../../bench/table.ts'
import { type Obs, startObs } from '../support/obs.ts'
import { offsetMillisMax, rowsOf } from './obs-gap-rows.ts'
import { watchGaps } from './obs-gaps.ts'
import { pictureModes, startPictureRelay } from './obs-picture-relay.ts'
import { testInRealTime } from './real-time.ts'

const { PICTURE_OBS_MINUTES, PICTURE_OBS_SEED, PICTURE_OBS_MODE, PICTURE_OBS_PROOF } = process.env
const mode = pictureModes.find((each) => each === PICTURE_OBS_MODE) ?? 'freeze'
const seed = Number(PICTURE_OBS_SEED ?? 20_261)
/** The short form has three gaps. */
const minutes = PICTURE_OBS_MINUTES === undefined ? undefined : Number(PICTURE_OBS_MINUTES)
const gapsAMinute = 40 / 30
const [count, seconds] = minutes === undefined ? [3, 27] : [Math.ceil(minutes * gapsAMinute), minutes * 60]

vi.setConfig({ testTimeout: (seconds + 180) * 1_000 })

let obs: Obs
beforeAll(async () => {
  obs = await startObs()
}, 120_000)

testInRealTime(`the picture in OBS goes on by itself each time the publisher dies and returns: ${mode}`, async () => {
  const relay = await startPictureRelay(mode)
  const gapSeconds = minutes === undefined ? ([1, 4] as const) : ([0.5, 12] as const)
  const figures = await watchGaps(obs, { ...relay, count, seconds, gapSeconds, seed })
  const rows = rowsOf(mode, figures, obs.version)
  process.stdout.write(`${formatTable(rows)}\n`)
  if (PICTURE_OBS_PROOF !== undefined) await writeRows(`${PICTURE_OBS_PROOF}-${mode}.json`, rows)
  expect(figures.gaps.filter(({ state }) => state !== 'PLAYING')).toEqual([])
  expect(figures).toMatchObject({ endings: 0, callsAgain: 0 })
  // The others are measured to be compared with.
  if (mode === 'off') return
  expect(figures).toMatchObject({ maxAudioBuffering: 0, audioLagging: 0 })
  expect(figures.offsetChangeMillis).toBeLessThanOrEqual(offsetMillisMax)
  expect(figures.gaps.filter(({ lateSeconds }) => lateSeconds > 1)).toEqual([])
  if (mode === 'freeze') expect(figures.gaps.filter(({ hasPicture }) => !hasPicture)).toEqual([])
})
