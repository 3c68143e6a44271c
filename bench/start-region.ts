/** Starts in one region, without a worker: with the default capacity, and with a growing number of live sessions. */
import type { Database } from '../db/connection.ts'
import { deleteStarted, startCall, waitUntilDelivered } from './concurrent-starts.ts'
import { type BenchData, insertAccounts, insertActiveSessions } from './data.ts'
import { figures } from './figures.ts'
import { call, callAll } from './load.ts'
import { formatNumber, type Reading, spreadOf } from './pairs.ts'
import { measureSequentially } from './relay-latency.ts'
import { type Figure, type Row, single } from './rows.ts'
import { logProgress, type RunningProgram, type Stack } from './stack.ts'

const large = { display_name: 'Large', provider: 'local', capacity: 100_000 }
/** The first region has the default capacity. */
const sizes = [
  {
    region: { region: 'default', display_name: 'Default', provider: 'local' },
    live: 0,
    p50: figures.region_50_start_p50,
    throughput: figures.region_50_start_throughput,
  },
  {
    region: { ...large, region: 'large-0' },
    live: 0,
    p50: figures.region_0_start_p50,
    throughput: figures.region_0_start_throughput,
  },
  {
    region: { ...large, region: 'large-500' },
    live: 500,
    p50: figures.region_500_start_p50,
    throughput: figures.region_500_start_throughput,
  },
  {
    region: { ...large, region: 'large-10000' },
    live: 10_000,
    p50: figures.region_10000_start_p50,
    throughput: figures.region_10000_start_throughput,
  },
]
export const sizedRegions = sizes.map(({ region }) => region)

const callers = 16
const singleStarts = 40
/** A burst fits into the default capacity. Its sessions are deleted before the next one. */
const startsPerBurst = 48
const burstsPerRound = 6

interface StartBench {
  readonly stack: Stack
  readonly api: RunningProgram
  readonly data: BenchData
  /** Number of readings of each region, without the warm-up. */
  readonly rounds: number
}

/** By region. */
type Readings = Readonly<Record<string, Reading>>

export async function measureStartRegion({ stack, api, data, rounds }: StartBench): Promise<Row[]> {
  const userIds = await fillRegions(stack)
  const readings: Readings[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const reading: Record<string, Reading> = {}
    // In turn, so that other load on this machine affects all of them.
    for (const { region } of sizedRegions) reading[region] = await readRegion({ sql: stack.sql, api, data }, region)
    if (round > 0) readings.push(reading)
    logProgress(
      `starts in one region, ${round === 0 ? 'warm-up' : `${round} of ${rounds}`}: ${formatReadings(reading)}`,
    )
  }
  await emptyRegions(stack.sql, userIds)
  return rowsOf(readings)
}

async function fillRegions(stack: Stack): Promise<string[]> {
  const all: string[] = []
  for (const { region, live } of sizes) {
    logProgress(`adding ${live} live sessions in the region ${region.region}`)
    const userIds = await insertAccounts(stack, { name: region.region, count: live })
    await insertActiveSessions(stack, userIds, region.region)
    all.push(...userIds)
  }
  await stack.sql`vacuum analyze`
  return all
}

async function emptyRegions(sql: Database, userIds: readonly string[]): Promise<void> {
  await sql`delete from users where id = any(${userIds}::uuid[])`
  await sql`delete from instances where region = any(${sizedRegions.map(({ region }) => region)}::text[])`
  await sql`vacuum analyze`
}

interface RegionBench {
  readonly sql: Database
  readonly api: RunningProgram
  readonly data: BenchData
}

async function readRegion({ sql, api, data }: RegionBench, region: string): Promise<Reading> {
  const alone = await measureSequentially(data.users.slice(0, singleStarts), async (user) => {
    const sentAt = performance.now()
    await call(startCall(api, user, region))
    return performance.now() - sentAt
  })
  await waitUntilDelivered(sql)
  await deleteStarted(sql)
  let seconds = 0
  for (let burst = 0; burst < burstsPerRound; burst += 1) {
    const calls = data.users.slice(0, startsPerBurst).map((user) => startCall(api, user, region))
    const { 'per second': rate = Number.NaN } = await callAll(calls, callers, api.pid)
    seconds += startsPerBurst / rate
    await waitUntilDelivered(sql)
    await deleteStarted(sql)
  }
  return { ...alone, 'per second': (burstsPerRound * startsPerBurst) / seconds }
}

const formatReadings = (readings: Readings): string =>
  Object.entries(readings)
    .map(([region, { 'p50 ms': p50 = Number.NaN, 'per second': rate = Number.NaN }]) =>
      [region, formatNumber(p50), 'ms,', formatNumber(rate), '/s'].join(' '),
    )
    .join(' | ')

function rowsOf(readings: readonly Readings[]): Row[] {
  const valuesOf = (region: string, name: string) => readings.map((reading) => reading[region]?.[name] ?? Number.NaN)
  const row = (figure: Figure, values: readonly number[]) => {
    const spread = spreadOf(values)
    return single(figure, spread.median, spread)
  }
  const without = valuesOf('large-0', 'p50 ms')
  const growth = valuesOf('large-10000', 'p50 ms').map((value, index) => value - (without[index] ?? Number.NaN))
  return [
    ...sizes.map(({ region, p50 }) => row(p50, valuesOf(region.region, 'p50 ms'))),
    row(figures.region_start_p50_growth, growth),
    ...sizes.map(({ region, throughput }) => row(throughput, valuesOf(region.region, 'per second'))),
  ]
}
