/**
 * What a player receives while publishers vanish and return, judged packet by packet. `npm run soak -- picture` has
 * fifty kills of each mode and longer outages, and writes the figures to docs/proof/picture.json.
 */
import { expect, test, vi } from 'vitest'
import { givenFolder } from '../relay-node/running.ts'
import { longPlays, type Play, shortOutage, shortPlays } from './picture/acts.ts'
import { decode } from './picture/decoded-frames.ts'
import { makeSlate } from './picture/encodings.ts'
import { errorsOf, type Recording, summarize, writeProof } from './picture/figures.ts'
import { judge } from './picture/judgement.ts'
import { type Mode, modes, perform } from './picture/scene.ts'
import { testInRealTime } from './real-time.ts'

/** The file for the figures of the long form. */
const proofFile = process.env.PICTURE_PROOF
const seed = Number(process.env.PICTURE_SEED ?? 36)
const kills = Number(process.env.PICTURE_KILLS ?? 50)

vi.setConfig({ testTimeout: proofFile === undefined ? 180_000 : 3_600_000 })

/** Without data. After it the players of `freeze` and `slate` get pictures. */
const pictureMillis = 500
/** For the SRT latencies of both ends, and a busy machine. */
const slackMillis = 1_500

async function record(mode: Mode, play: Play, slate: Buffer): Promise<Recording> {
  const { publishers, recorder, isConnected, gaps } = await perform(mode, play.acts, slate)
  const judgement = judge(publishers, recorder)
  const decoded = await decode(recorder.received, givenFolder())
  const recording = { mode, name: play.name, gaps, isConnected, judgement, decoded }
  process.stdout.write(`[picture] ${mode}, ${play.name}: ${JSON.stringify(summarize([recording]))}\n`)
  const found = [...judgement.firstErrors, ...judgement.missing.map((unit) => `missing: ${unit}`)]
  if (mode !== 'off' && found.length > 0) process.stdout.write(`[picture] ${mode}, ${play.name}: ${found.join('; ')}\n`)
  return recording
}

/** What a relay that repairs the timeline holds in each recording. */
function expectWholeTimeline(recording: Recording): void {
  const { mode, judgement, decoded, gaps } = recording
  const details = JSON.stringify(recording, null, 1)
  const { 'PCR apart': apart = 0 } = judgement.errors
  // With `hold` the clock passes the pause in one step.
  expect(errorsOf(recording) - (mode === 'hold' ? apart : 0), details).toBe(0)
  expect(decoded.stepsBack, details).toBe(0)
  expect(judgement.offsetChangeMillis, details).toBeLessThanOrEqual(20)
  expect(judgement.startsWithoutKeyFrame, details).toBe(0)
  expect(judgement.damagedUnits, details).toBeLessThanOrEqual(2 * gaps)
  expect(judgement.arrivedUnits / judgement.sentUnits, details).toBeGreaterThanOrEqual(0.99)
  if (mode === 'hold') return
  expect(decoded.largestStepMillis, details).toBeLessThanOrEqual(pictureMillis + slackMillis)
  expect(judgement.soundGapMillis, details).toBeLessThanOrEqual(slackMillis)
}

const plays = proofFile === undefined ? shortPlays : longPlays(seed, kills)
const recordings: Recording[] = []

/** The relays of a play end with its test. */
async function judgePlay(play: Play): Promise<void> {
  const slate = await makeSlate()
  const ofPlay: Recording[] = []
  // Two at a time, since an overloaded relay loses packets of its publisher.
  for (const pair of [modes.slice(0, 2), modes.slice(2)])
    ofPlay.push(...(await Promise.all(pair.map((mode) => record(mode, play, slate)))))
  if (proofFile === undefined) ofPlay.push(await record('freeze', shortOutage, slate))
  recordings.push(...ofPlay)
  if (proofFile !== undefined) await writeProof(proofFile, seed, recordings)
  expect(ofPlay.every(({ isConnected }) => isConnected)).toBe(true)
  for (const recording of ofPlay.filter(({ mode }) => mode !== 'off')) expectWholeTimeline(recording)
}

for (const play of plays) {
  testInRealTime(`players have one timeline while publishers vanish and return: ${play.name}`, () => judgePlay(play))
}

test('the judges find errors where the timeline is not repaired', () => {
  const off = summarize(recordings.filter(({ mode }) => mode === 'off'))
  expect(off.streamErrors).toBeGreaterThan(0)
  expect(off.startsWithoutKeyFrame).toBeGreaterThan(0)
})
