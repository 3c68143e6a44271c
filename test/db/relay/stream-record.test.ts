/** Stream records in the database: each point of a report is kept, over the ends of ten minutes and of the session. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Sql } from '../../../db/connection.ts'
import { recordReports } from '../../../db/relay/health.ts'
import type { HealthReport } from '../../../db/relay/report-records.ts'
import { listPoints } from '../../../db/relay/stream-record.ts'
import { writeTransitions } from '../../../db/transactions/write-transitions.ts'
import { type IngestStats, readIngest } from '../../../domain/relay/ingest.ts'
import { mergePoints, type StreamPoint, type TimedPoint, toPoint } from '../../../domain/relay/stream-record.ts'
import { eventually } from '../../support/eventually.ts'
import { propertyRuns } from '../../support/property-runs.ts'
import { writeProvisionFailed } from '../../support/relay-rows.ts'
import { startTransitions, stopGrace, stopNow, transitionsRequest } from '../../support/relay-transitions.ts'
import { addSimulatedClock, setTime } from './simulated-clock.ts'

const { sql, insertSession, insertActiveSession } = await startTransitions()
await addSimulatedClock(sql)

/** The beginning of ten minutes. */
const begin = 1_800_000_000
const allTime = { from: new Date(0), to: new Date(8e12) }

const reportOf = (sessionId: string, stats: IngestStats | undefined, instanceId = 'i-1'): HealthReport => ({
  sessionId,
  instanceId,
  hasOwnSecret: false,
  binding: 1,
  isHeld: false,
  isIdle: undefined,
  ingest: readIngest(stats),
})

const record = (tx: Sql, ...reports: readonly HealthReport[]) => recordReports(tx, reports, 15)

/** Stores a report at a time in a transaction of its own. */
const recordAt = (seconds: number, ...reports: readonly HealthReport[]) =>
  sql.begin(async (tx) => {
    await setTime(tx, seconds)
    await record(tx, ...reports)
  })

const pointsOf = (sessionId: string, tx: Sql = sql) => listPoints(tx, sessionId, allTime)

const storedParts = async (sessionId: string, tx: Sql = sql): Promise<number[]> =>
  (
    await tx<{ beganAt: number }[]>`
      select extract(epoch from began_at)::float8 as began_at from stream_records
      where session_id = ${sessionId} order by began_at`
  ).map(({ beganAt }) => beganAt)

const publishing = (bitrate_kbps: number): IngestStats => ({ publishing: true, bitrate_kbps, links: 2, players: 1 })

const stats: fc.Arbitrary<IngestStats> = fc.record(
  {
    publishing: fc.boolean(),
    bitrate_kbps: fc.nat(60_000),
    links: fc.nat(70),
    loss_pct: fc.nat(1000).map((tenths) => tenths / 10),
    rtt_ms: fc.nat(20_000),
    players: fc.nat(70),
  },
  { requiredKeys: [] },
)

/** The points that the rules make of the reports of one session. */
function pointsAfter(reports: readonly { readonly at: number; readonly stats: IngestStats | undefined }[]) {
  const slots = new Map<number, StreamPoint>()
  for (const { at, stats: reported } of reports) {
    const { summary } = readIngest(reported)
    if (summary === null) continue
    const slot = Math.floor(at / 10) * 10
    const earlier = slots.get(slot)
    slots.set(slot, earlier ? mergePoints(earlier, toPoint(summary)) : toPoint(summary))
  }
  return [...slots].map(([at, point]): TimedPoint => ({ at, ...point }))
}

describe('the points of a session', () => {
  test('are what the rules make of its reports, in parts of ten minutes', async () => {
    const sessionId = await insertSession()
    const steps = fc.array(
      fc.record({
        pauseSeconds: fc.oneof(fc.nat(9), fc.nat(30), fc.nat(700), fc.nat(4000)),
        stats: fc.option(stats, { nil: undefined }),
      }),
      { minLength: 1, maxLength: 80 },
    )
    await fc.assert(
      fc.asyncProperty(steps, async (reports) => {
        await sql.begin(async (tx) => {
          await tx`delete from relay_health where session_id = ${sessionId}`
          let at = begin
          const timed = []
          for (const { pauseSeconds, stats: reported } of reports) {
            at += pauseSeconds
            timed.push({ at, stats: reported })
            await setTime(tx, at)
            await record(tx, reportOf(sessionId, reported))
          }
          const points = pointsAfter(timed)
          expect(await pointsOf(sessionId, tx)).toEqual(points)
          const beginnings = points.filter(
            (point, index) => Math.floor(point.at / 600) !== Math.floor((points[index - 1]?.at ?? 0) / 600),
          )
          expect(await storedParts(sessionId, tx)).toEqual(beginnings.slice(0, -1).map((point) => point.at))
        })
      }),
      { numRuns: propertyRuns(10, 40) },
    )
  })

  test('are the same for a batch of reports as for single ones', async () => {
    const ids = [await insertSession(), await insertSession(), await insertSession()]
    const reports = fc.array(fc.record({ session: fc.nat(2), stats: fc.option(stats, { nil: undefined }) }), {
      minLength: 1,
      maxLength: 12,
    })
    await fc.assert(
      fc.asyncProperty(fc.array(reports, { minLength: 1, maxLength: 4 }), async (batches) => {
        await sql.begin(async (tx) => {
          const read = async (isBatched: boolean) => {
            await tx`delete from relay_health where session_id = any(${ids}::uuid[])`
            for (const [index, batch] of batches.entries()) {
              await setTime(tx, begin + 580 + index * 13)
              const all = batch.map(({ session, stats: reported }) => reportOf(ids[session] ?? '', reported))
              if (isBatched) await record(tx, ...all)
              else for (const report of all) await record(tx, report)
            }
            return Promise.all(ids.map((id) => pointsOf(id, tx)))
          }
          expect(await read(true)).toEqual(await read(false))
        })
      }),
      { numRuns: propertyRuns(20, 100) },
    )
  })

  test('of the present ten minutes cause no row', async () => {
    const id = await insertSession()
    for (let at = begin; at < begin + 600; at += 150) await recordAt(at, reportOf(id, publishing(1000)))
    expect(await storedParts(id)).toEqual([])
    await recordAt(begin + 600, reportOf(id, publishing(1000)))
    expect(await storedParts(id)).toEqual([begin])
    expect((await pointsOf(id)).map(({ at }) => at - begin)).toEqual([0, 150, 300, 450, 600])
  })

  test('of a time before the last one count for the last one', async () => {
    const id = await insertSession()
    await recordAt(begin + 600, reportOf(id, publishing(1000)))
    await recordAt(begin + 590, reportOf(id, publishing(3000)))
    expect(await pointsOf(id)).toMatchObject([{ at: begin + 600, bitrateKbps: 3000 }])
  })

  test('are those of a range, also of the slots that it covers in part', async () => {
    const id = await insertSession()
    for (let at = begin; at < begin + 1800; at += 10) await recordAt(at, reportOf(id, publishing(1000)))
    const list = async (from: number, to: number) =>
      (await listPoints(sql, id, { from: new Date((begin + from) * 1000), to: new Date((begin + to) * 1000) })).map(
        ({ at }) => at - begin,
      )
    expect(await list(595, 611)).toEqual([590, 600, 610])
    expect(await list(590, 610)).toEqual([590, 600])
    expect(await list(1795, 9999)).toEqual([1790])
    expect(await list(-9999, 10)).toEqual([0])
    expect(await list(-50, 0)).toEqual([])
    expect(await list(1800, 9999)).toEqual([])
  })
})

/** Runs the second work, which waits for a lock of the first one, and then commits the first one. */
async function overlap(first: (tx: Sql) => Promise<unknown>, second: (tx: Sql) => Promise<unknown>): Promise<void> {
  let waiting: Promise<unknown> = Promise.resolve()
  await sql.begin(async (tx) => {
    await first(tx)
    waiting = sql.begin(second)
    await eventually(
      // A transaction would see the same activity each time.
      () => sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      (rows) => rows.length > 0,
    )
  })
  await waiting
}

describe('no point is lost', () => {
  test('when the first report of other ten minutes overlaps the last one of those before', async () => {
    const id = await insertSession()
    await recordAt(begin + 580, reportOf(id, publishing(1000)))
    const at = (seconds: number, kbps: number) => async (tx: Sql) => {
      await setTime(tx, seconds)
      await record(tx, reportOf(id, publishing(kbps)))
    }
    await overlap(at(begin + 590, 2000), at(begin + 600, 3000))
    expect(await storedParts(id)).toEqual([begin + 580])
    expect((await pointsOf(id)).map(({ bitrateKbps }) => bitrateKbps)).toEqual([1000, 2000, 3000])
  })

  test('when the session ends, and its parts are all stored then', async () => {
    const id = await insertActiveSession()
    for (const [index, at] of [0, 300, 600, 640].entries()) await recordAt(begin + at, reportOf(id, publishing(index)))
    const before = await pointsOf(id)
    expect(before).toHaveLength(4)
    await writeTransitions(sql, transitionsRequest(id, { version: 1, transitions: [stopGrace, stopNow] }))
    expect(await storedParts(id)).toEqual([begin, begin + 600])
    expect(await pointsOf(id)).toEqual(before)
    const [health] = await sql`select record_points, record_slot from relay_health where session_id = ${id}`
    expect(health).toEqual({ recordPoints: null, recordSlot: null })
    await recordAt(begin + 650, reportOf(id, publishing(9)))
    expect(await pointsOf(id)).toEqual(before)
  })

  test('when an accepted report overlaps the end of the session', async () => {
    const id = await insertSession()
    // The instance of the tests with active sessions belongs to one of them.
    await recordAt(begin, reportOf(id, publishing(3000), 'i-2'))
    const late = async (tx: Sql) => {
      await setTime(tx, begin + 5)
      await record(tx, reportOf(id, { ...publishing(2000), links: 1 }, 'i-2'))
    }
    await overlap((tx) => writeProvisionFailed(tx, id, null), late)
    expect(await storedParts(id)).toEqual([begin])
    expect(await pointsOf(id)).toMatchObject([{ at: begin, bitrateKbps: 3000, links: 1 }])
  })
})

describe('a record', () => {
  /** A stream over three links, with noise and with an outage now and then. */
  const noisy = (slot: number): IngestStats => {
    const random = () => Math.random()
    if (slot % 700 > 690) return { publishing: false, players: 1, bytes_total: slot }
    return {
      publishing: true,
      bitrate_kbps: 4500 + 1500 * Math.sin(slot / 90) + 700 * random(),
      links: random() < 0.1 ? 2 : 3,
      loss_pct: random() < 0.3 ? 6 * random() : 0,
      rtt_ms: 45 + 160 * random() ** 4,
      players: random() < 0.02 ? 2 : 1,
    }
  }

  test('of 16 hours takes 60 KB at most, with its share of the indexes', { timeout: 120_000 }, async () => {
    const id = await insertActiveSession()
    const slots = 16 * 360
    await sql.begin(async (tx) => {
      for (let slot = 0; slot < slots; slot += 1) {
        await setTime(tx, begin + slot * 10)
        await record(tx, reportOf(id, noisy(slot)))
      }
    })
    expect(await pointsOf(id)).toHaveLength(slots)
    await writeTransitions(sql, transitionsRequest(id, { version: 1, transitions: [stopGrace, stopNow] }))
    const others = await Promise.all(Array.from({ length: 30 }, () => insertSession()))
    await sql.begin(async (tx) => {
      await tx`create temporary table evening on commit drop as select * from stream_records where session_id = ${id}`
      await tx`truncate stream_records`
      await tx`insert into relay_health (session_id, instance_id) select unnest(${others}::uuid[]), 'i-1'`
      await tx`
        insert into stream_records (session_id, began_at, points)
        select o.id, e.began_at, e.points from evening e, unnest(${others}::uuid[]) o (id) order by e.began_at, random()`
    })
    const [size] = await sql<{ parts: number; rows: number; total: number }[]>`
      select count(*)::int as parts, sum(pg_column_size(r.*))::int / ${others.length} as rows,
        (pg_total_relation_size('stream_records') / ${others.length})::int as total from stream_records r`
    expect(size?.parts).toBe(96 * others.length)
    expect(size?.rows).toBeLessThan(50_000)
    expect(size?.total).toBeLessThanOrEqual(60_000)
  })
})
