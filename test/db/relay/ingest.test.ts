/** The batched write of health reports against the record that each of them leaves. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Sql } from '../../../db/connection.ts'
import { recordReports } from '../../../db/relay/health.ts'
import { type IngestStats, ingestEngines, readIngest, slotSeconds } from '../../../domain/relay/ingest.ts'
import { relayRefusals } from '../../../domain/relay/refusals.ts'
import type { PhoneCode, PlayerCode } from '../../../domain/relay/signal.ts'
import { propertyRuns } from '../../support/property-runs.ts'
import { startTransitions } from '../../support/relay-transitions.ts'
import { type IngestRecord, ingestAfter, noIngest } from './ingest-record.ts'

const { sql, insertSession } = await startTransitions()
const ageSecondsMax = 15

interface Row {
  ingestAt: number | null
  publishingSince: number | null
  isPublishing: boolean | null
  bitrateKbps: number
  links: number
  players: number
  stalledPlayers: number
  usualLinks: number | null
  phone: PhoneCode
  player: PlayerCode
  rttMs: number | null
  lossPct: number | null
  repeatPct: number | null
  engine: 'none' | null
  bytesTotal: string | null
  publishingMs: string | null
  processStartedAtMs: string | null
  bytesReceived: string
  peakBitrateKbps: number
  secondsPublishing: number
  recentBitrateKbps: (number | null)[] | null
  recentSlot: number | null
}

async function readRecord(tx: Sql, sessionId: string): Promise<IngestRecord> {
  const [row] = await tx<Row[]>`
    select extract(epoch from ingest_at)::float8 as ingest_at, extract(epoch from publishing_since)::float8 as publishing_since,
      is_publishing, bitrate_kbps, links, players, stalled_players, usual_links, phone_code as phone, player_code as player, rtt_ms, loss_pct, repeat_pct, engine, bytes_total, publishing_ms,
      process_started_at_ms, bytes_received, peak_bitrate_kbps, seconds_publishing, to_json(recent_bitrate_kbps) as recent_bitrate_kbps, recent_slot
    from relay_health where session_id = ${sessionId}`
  if (!row) throw new Error('the report was not stored')
  const { isPublishing, bitrateKbps, links, players, rttMs, lossPct, repeatPct, engine } = row
  const { stalledPlayers, usualLinks, phone, player } = row
  const stream = { isPublishing, bitrateKbps, links, usualLinks, players, stalledPlayers, phone, player }
  return {
    summary: isPublishing === null ? null : { ...stream, isPublishing, rttMs, lossPct, repeatPct, engine },
    summaryAt: row.ingestAt,
    publishingSince: row.publishingSince,
    bytesTotal: row.bytesTotal === null ? null : Number(row.bytesTotal),
    publishingMs: row.publishingMs === null ? null : Number(row.publishingMs),
    startedAtMs: row.processStartedAtMs === null ? null : Number(row.processStartedAtMs),
    bytesReceived: Number(row.bytesReceived),
    peakBitrateKbps: row.peakBitrateKbps,
    secondsPublishing: row.secondsPublishing,
    recentBitrateKbps: row.recentBitrateKbps ?? [],
    recentSlot: row.recentSlot,
  }
}

/** Moves everything that was reported into the past. */
const age = (tx: Sql, sessionId: string, slots: number) => tx`
  update relay_health set ingest_at = ingest_at - make_interval(secs => ${slots * slotSeconds}),
    publishing_since = publishing_since - make_interval(secs => ${slots * slotSeconds}), recent_slot = recent_slot - ${slots}::int
  where session_id = ${sessionId}`

const aged = (record: IngestRecord, slots: number): IngestRecord => ({
  ...record,
  summaryAt: record.summaryAt === null ? null : record.summaryAt - slots * slotSeconds,
  publishingSince: record.publishingSince === null ? null : record.publishingSince - slots * slotSeconds,
  recentSlot: record.recentSlot === null ? null : record.recentSlot - slots,
})

const stats: fc.Arbitrary<IngestStats> = fc.record(
  {
    publishing: fc.boolean(),
    bitrate_kbps: fc.oneof(fc.integer({ min: 0, max: 60_000 }), fc.double({ min: 0, noNaN: true })),
    // Quarters are exact in single precision.
    rtt_ms: fc.integer({ min: 0, max: 4000 }).map((quarters) => quarters / 4),
    loss_pct: fc.integer({ min: 0, max: 500 }).map((quarters) => quarters / 4),
    repeat_pct: fc.integer({ min: 0, max: 500 }).map((quarters) => quarters / 4),
    links: fc.oneof(fc.nat(5), fc.double({ min: 0, noNaN: true })),
    players: fc.nat(3),
    stalled_players: fc.nat(3),
    usual_links: fc.nat(5),
    usual_bitrate_kbps: fc.nat(60_000),
    last_refused: fc.record(
      { publish: fc.record({ reason: fc.constantFrom(...relayRefusals), age_ms: fc.nat(90_000) }) },
      { requiredKeys: [] },
    ),
    bytes_total: fc.oneof(fc.nat(), fc.nat({ max: 1e15 }), fc.double({ min: 0, noNaN: true })),
    publishing_ms_total: fc.oneof(fc.nat(99_999), fc.double({ min: 0, noNaN: true })),
    peak_bitrate_kbps: fc.oneof(fc.nat(60_000), fc.double({ min: 0, noNaN: true })),
    started_at_ms: fc.nat(3),
    engine: fc.constantFrom(...ingestEngines),
  },
  { requiredKeys: [] },
)
const steps = fc.array(
  fc.record({
    slotsBefore: fc.oneof(fc.constant(0), fc.nat(3), fc.nat(80)),
    instanceId: fc.constantFrom('i-1', 'i-1', 'i-1', 'i-2'),
    stats: fc.option(stats, { nil: undefined }),
  }),
  { minLength: 1, maxLength: 90 },
)

test('the columns of a session are what the rules make of its reports', async () => {
  const sessionId = await insertSession()
  await fc.assert(
    fc.asyncProperty(steps, async (reports) => {
      // Within a transaction the database's clock stands still.
      await sql.begin(async (tx) => {
        await tx`delete from relay_health where session_id = ${sessionId}`
        const [clock] = await tx<{ now: number }[]>`select extract(epoch from now())::float8 as now`
        const now = clock?.now ?? 0
        let record = noIngest
        let lastInstanceId: string | undefined
        for (const { slotsBefore, instanceId, stats: reported } of reports) {
          await age(tx, sessionId, slotsBefore)
          const ingest = readIngest(reported)
          await recordReports(
            tx,
            [{ sessionId, instanceId, hasOwnSecret: false, binding: 1, isHeld: false, isIdle: undefined, ingest }],
            ageSecondsMax,
          )
          const isSameInstance = instanceId === lastInstanceId
          record = ingestAfter(aged(record, slotsBefore), ingest, { now, isSameInstance, ageSecondsMax })
          lastInstanceId = instanceId
        }
        expect(await readRecord(tx, sessionId)).toEqual(record)
      })
    }),
    { numRuns: propertyRuns(10, 40) },
  )
})

test('each session of a batch gets its own report, and of two reports of one session the later one counts', async () => {
  const ids = [await insertSession(), await insertSession()]
  const report = (sessionId: string, bytes_total: number) => ({
    sessionId,
    instanceId: 'i-1',
    hasOwnSecret: false,
    binding: 1,
    isHeld: false,
    isIdle: false,
    ingest: readIngest({ publishing: true, bitrate_kbps: bytes_total / 10, bytes_total }),
  })
  const [first = '', second = ''] = ids
  const reports = [report(first, 1000), report(randomUUID(), 5), report(second, 7000), report(first, 3000)]
  const sessions = await recordReports(sql, reports, ageSecondsMax)
  expect(sessions.map((session) => session?.state)).toEqual(['provisioning', undefined, 'provisioning', 'provisioning'])
  expect((await readRecord(sql, first)).bytesReceived).toBe(3000)
  expect(await readRecord(sql, second)).toMatchObject({ bytesReceived: 7000, recentBitrateKbps: [700] })
})
