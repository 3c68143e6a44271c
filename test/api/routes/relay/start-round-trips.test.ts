/** How often a start waits for Postgres, at any size of its region. */
import { expect, test } from 'vitest'
import { imageKey } from '../../../../platform/config/regions.ts'
import { createDatabase } from '../../../support/api.ts'
import { atEnd } from '../../../support/at-end.ts'
import { startService } from '../../../support/relays.ts'
import { countRoundTrips } from '../../../support/round-trips.ts'
import { insertWarmInstance } from '../../../support/unbound-relays.ts'

const database = await createDatabase()
atEnd(() => database.drop())
const roundTrips = await countRoundTrips(database.url)
const local = { display_name: 'Here', provider: 'local' }
const service = await startService({
  worker: false,
  variables: {
    DATABASE_URL: roundTrips.url,
    SVC_REGIONS: JSON.stringify([
      { ...local, region: 'usual', default: true },
      ...[1, 5000, 100_000].map((capacity) => ({ ...local, region: `for-${capacity}`, capacity })),
      { ...local, region: 'local', warm: 2 },
    ]),
  },
})
const { sql, services } = service.api
// No command is delivered, since the write that marks it as delivered may come before the answer of its start.
Object.assign(services.relaySessions, { deliver: async () => false })

/**
 * Of the first start on a connection the statements are not prepared yet, and a heartbeat of the API may fall into any
 * of them.
 */
const starts = 6

/** With the longest names the statements are written in several parts. */
const longName = 'x'.repeat(64)

/** The fewest round trips of several starts, from the request to its answer. */
async function roundTripsOf(body: object, given: () => Promise<unknown> = async () => {}) {
  const counts = []
  for (let start = 0; start < starts; start += 1) {
    const user = await service.user()
    await given()
    const before = roundTrips.count()
    const { status } = await user.start({ ...body, connection_id: longName })
    counts.push(roundTrips.count() - before)
    expect(status).toBe(201)
    await sql`delete from relay_sessions`
  }
  return Math.min(...counts)
}

test('a start in the default region with the default capacity takes two round trips', async () => {
  expect(services.config.regions[0]).toMatchObject({ region: 'usual', capacity: 50 })
  expect(await roundTripsOf({})).toBe(2)
})

test.each([1, 5000, 100_000])('a start in a region with a capacity of %i takes two round trips', async (capacity) => {
  expect(await roundTripsOf({ region: `for-${capacity}` })).toBe(2)
})

test('a start that compares the regions takes one more, for the lock of the one that it chose', async () => {
  expect(await roundTripsOf({ region: 'auto' })).toBe(3)
})

test('a start in a region with warm instances takes two, with one of them and without', async () => {
  expect(await roundTripsOf({ region: 'local' })).toBe(2)
  const region = services.config.regions.find((candidate) => candidate.region === 'local')
  const addReady = async () => {
    const instanceId = await insertWarmInstance(sql, { image: region && imageKey(region) })
    await sql`update instances set last_report_at = now() where instance_id = ${instanceId}`
  }
  expect(await roundTripsOf({ region: 'local' }, addReady)).toBe(2)
  expect(await sql`select from instances where session_id is null`).toEqual([])
})
