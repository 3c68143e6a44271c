/**
 * OBS plays a stream whose publisher dies and returns: the picture goes on by itself, and the sound stays with it.
 * `npm run soak -- picture-obs` takes half an hour with 40 gaps.
 */
import { beforeAll, vi } from 'vitest'
import { givenControlPlane, startRelay, streamToken } from '../relay-node/running.ts'
import { type Obs, startObs } from '../support/obs.ts'
import { watchGaps } from './obs-gaps.ts'
import { testInRealTime } from './real-time.ts'

const seconds = Number(process.env.PICTURE_OBS_MINUTES ?? 0.45) * 60
const seed = Number(process.env.PICTURE_OBS_SEED ?? 20_261)
const mode = process.env.PICTURE_OBS_MODE ?? 'freeze'

vi.setConfig({ testTimeout: (seconds + 180) * 1_000 })

let obs: Obs
beforeAll(async () => {
  obs = await startObs()
}, 120_000)

testInRealTime('the picture in OBS goes on by itself each time the publisher dies and returns', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url, variables: { PATH: process.env.PATH } })
  const state = await relay.up()
  const figures = await watchGaps(obs, {
    publishUrl: `srt://127.0.0.1:${state.publishPort}?streamid=publish/live/${streamToken}`,
    playUrl: `srt://127.0.0.1:${state.playPort}?streamid=play/live/${streamToken}`,
    count: 3,
    seconds,
    gapSeconds: [1, 4],
    seed,
  })
  console.log(mode, JSON.stringify(figures, null, 1))
  console.log((await obs.logText()).split('\n').slice(-40).join('\n'))
})
