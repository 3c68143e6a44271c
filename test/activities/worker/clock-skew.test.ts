/** The measured difference between the clocks of a worker, Postgres and Temporal. */
import { describe, expect, test } from 'vitest'
import { createClockSkew } from '../../../activities/worker/clock-skew.ts'
import { connectPostgres } from '../../../db/connection.ts'
import { createLog } from '../../../platform/log.ts'
import { createDatabase } from '../../support/api.ts'
import { atEnd } from '../../support/at-end.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { eventually } from '../../support/relays.ts'

function observer() {
  const lines: string[] = []
  let now = 0
  const skew = createClockSkew(createLog('worker', 'warn', { write: (line) => void lines.push(line) }), () => now)
  const pass = (millis: number) => {
    now += millis
  }
  return { lines, skew, pass }
}

describe("the skew of a worker's clock", () => {
  test('is the least difference of a minute, since a message may be slow but never early', () => {
    const { skew, pass } = observer()
    for (const latency of [900, 15, 4000]) {
      skew.observe('temporal', 10_000, 10_000 + 500 + latency)
      pass(1000)
    }
    expect(skew.current()).toEqual({ temporal: 0.515, postgres: null })
  })

  test('beyond two seconds is logged once for as long as it lasts', () => {
    const { lines, skew, pass } = observer()
    const aMinute = (millis: number) => {
      skew.observe('postgres', 100_000, 100_000 + millis)
      pass(61_000)
    }
    for (const millis of [-3000, -3000, -3000, 10, 10, 5000, 5000]) aMinute(millis)
    expect(lines).toHaveLength(2)
    expect(lines.map((line) => JSON.parse(line).skew_seconds)).toEqual([-3, 5])
  })

  test('that comes from one slow message is not logged', () => {
    const { lines, skew, pass } = observer()
    for (const millis of [5, 9000, 5]) {
      skew.observe('temporal', 100_000, 100_000 + millis)
      pass(25_000)
    }
    skew.observe('temporal', 100_000, 100_005)
    expect(lines).toEqual([])
  })

  test('is measured against Postgres', async () => {
    const database = await createDatabase()
    const sql = connectPostgres(database.url, 1)
    atEnd(async () => {
      await sql.end({ timeout: 5 })
      await database.drop()
    })
    const { skew } = observer()
    await skew.measurePostgres(sql)
    expect(Math.abs(skew.current().postgres ?? Number.NaN)).toBeLessThan(1)
  })

  test('is on the metrics page for Postgres and, after a transition, for Temporal', async () => {
    const service = await startFakeRelayService()
    await service.startActiveRelay(await service.user())
    const skewAgainst = async (clock: string) => {
      const page = await (await fetch(`${service.api.url}/metrics`)).text()
      return Number(new RegExp(`svc_clock_skew_seconds{clock="${clock}"} (.+)`).exec(page)?.[1])
    }
    for (const clock of ['postgres', 'temporal']) await eventually(() => skewAgainst(clock), Number.isFinite)
  })
})
