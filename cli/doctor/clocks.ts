/** The clocks of this machine, Postgres, the API, the workers and Temporal. */
import type { Database } from '../../db/connection.ts'
import { readServerClock } from '../../db/operations/server-status.ts'
import { greatestSkews } from '../../db/operations/workers.ts'
import { combine, type Finding, fail, notChecked, type Problem, warn } from './check.ts'
import type { DatabaseAccess } from './postgres.ts'
import type { Target } from './target.ts'

const skewSecondsWarn = 2
const skewSecondsMax = 30
const requestMillisMax = 4000
const samples = 3

interface Skew {
  readonly clocks: string
  readonly seconds: number
}

export async function checkClocks({ apiUrl }: Target, { sql, obstacle }: DatabaseAccess): Promise<Finding> {
  const usable = (await obstacle) === undefined ? sql : undefined
  const skews = (
    await Promise.all([usable ? readDatabaseSkews(usable) : [], apiUrl === undefined ? [] : readApiSkew(apiUrl)])
  ).flat()
  if (skews.length === 0) return notChecked('neither Postgres nor the API answers')
  return combine(skews.map(describe).join(', '), skews.map(findProblem))
}

async function readDatabaseSkews(sql: Database): Promise<Skew[]> {
  const [seconds, workers] = await Promise.all([measureSkew(() => readServerClock(sql)), greatestSkews(sql)])
  return [
    { clocks: 'this machine and Postgres', seconds },
    ...(workers.postgres === null ? [] : [{ clocks: 'a worker and Postgres', seconds: workers.postgres }]),
    ...(workers.temporal === null ? [] : [{ clocks: 'a worker and Temporal', seconds: workers.temporal }]),
  ]
}

/** From the Date header, which has whole seconds. Nothing when the API does not answer. */
const readApiSkew = (apiUrl: string): Promise<Skew[]> =>
  measureSkew(async () => {
    const { headers } = await fetch(`${apiUrl}/livez`, { signal: AbortSignal.timeout(requestMillisMax) })
    const date = Date.parse(headers.get('date') ?? '')
    if (Number.isNaN(date)) throw new Error('the API sends no date')
    return date + 500
  }).then(
    (seconds) => [{ clocks: 'this machine and the API', seconds }],
    () => [],
  )

/** Compares with the middle of the shortest round trip, when the other side has read its clock. */
async function measureSkew(readMillis: () => Promise<number>): Promise<number> {
  let shortest = { tripMillis: Number.POSITIVE_INFINITY, skewMillis: 0 }
  for (let sample = 0; sample < samples; sample += 1) {
    const sentAt = performance.now()
    const millis = await readMillis()
    const tripMillis = performance.now() - sentAt
    if (tripMillis < shortest.tripMillis) shortest = { tripMillis, skewMillis: Date.now() - tripMillis / 2 - millis }
  }
  return shortest.skewMillis / 1000
}

const describe = ({ clocks, seconds }: Skew): string =>
  `the clocks of ${clocks} differ by ${Math.abs(seconds).toFixed(1)} s`

function findProblem(skew: Skew): Problem | undefined {
  const seconds = Math.abs(skew.seconds)
  if (seconds <= skewSecondsWarn) return undefined
  const problem = seconds > skewSecondsMax ? fail : warn
  return problem(describe(skew), 'Synchronise all clocks with NTP: timedatectl set-ntp true, or chrony.')
}
