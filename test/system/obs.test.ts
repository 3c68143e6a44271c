/**
 * OBS plays streams of the service: how long it shows no fresh picture when something fails, and that it comes back by
 * itself. `npm run soak -- obs` takes every case, and writes the seconds to docs/proof/obs.json.
 */
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { failed, type Row, single, writeRows } from '../../bench/rows.ts'
import { type ObsCase, obsCases } from './obs-cases.ts'
import { type ObsService, startObsService } from './obs-service.ts'
import { testInRealTime } from './real-time.ts'

/** The file for the figures, with which all cases run. */
const proofFile = process.env.OBS_PROOF

vi.setConfig({ testTimeout: 300_000 })

let service: ObsService
const rows = new Map<string, Row>()

beforeAll(async () => {
  service = await startObsService()
}, 180_000)

afterAll(async () => {
  const inObs = [...rows.values()].map((row) => ({ ...row, machine: `${row.machine}, OBS ${service.obs.version}` }))
  if (proofFile !== undefined) await writeRows(proofFile, inObs)
})

const figureOf = ({ name, what, secondsMax }: ObsCase) => ({
  name,
  what,
  unit: 's',
  ...(secondsMax === undefined ? {} : { target: secondsMax, bound: 'at_most' as const }),
})

for (const obsCase of obsCases.filter(({ isShort }) => isShort || proofFile !== undefined)) {
  testInRealTime(obsCase.behaviour, async () => {
    const figure = figureOf(obsCase)
    rows.set(obsCase.name, failed(figure, 'the test failed'))
    const seconds = await obsCase.run(service)
    rows.set(obsCase.name, single(figure, seconds))
    process.stdout.write(`[obs] ${obsCase.what}: ${seconds.toFixed(1)} s\n`)
    if (obsCase.secondsMax !== undefined) expect(seconds).toBeLessThanOrEqual(obsCase.secondsMax)
  })
}
