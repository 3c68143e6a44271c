/** The manifest of regions and the public capacity status. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { ErrorBody } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { eventually, operator, startService, type TestService } from '../../../support/relays.ts'

const image = { image_id: 'ami-1', version: '2.0.0', released_at: '2026-01-02T03:04:05Z' }
const regions = JSON.stringify([
  { region: 'eu', display_name: 'Europe', provider: 'local', capacity: 5, image },
  { region: 'us', display_name: 'America', provider: 'local', capacity: 1, ping_url: 'https://us.example.com/ping' },
  { region: 'closed', display_name: 'Closed', provider: 'local', capacity: 0 },
])

let service: TestService
beforeAll(async () => {
  service = await startService({
    worker: false,
    variables: { SVC_REGIONS: regions, SVC_RATE_LIMITS: highLimits({ capacity: 10_000 }) },
  })
})

interface Manifest {
  readonly regions: readonly {
    readonly region: string
    readonly available: boolean
    readonly default: boolean
    readonly ping_url: string | null
  }[]
}
interface Capacity {
  readonly status: string
  readonly regions: readonly { readonly region: string; readonly status: string }[]
  readonly as_of: string
}

const capacity = async () => (await service.api.get<Capacity>('/capacity/status')).body
const rooms = async () => (await capacity()).regions.map(({ status }) => status)

describe('the manifest', () => {
  test('lists each region with its image; the first is the default unless one is configured', async () => {
    const { bearer } = await service.api.given.user()
    const { status, body } = await service.api.get<Manifest>('/relay/manifest', { bearer })
    expect(status).toBe(200)
    expect(body.regions[0]).toEqual({
      region: 'eu',
      display_name: 'Europe',
      provider: 'local',
      default: true,
      available: true,
      ping_url: null,
      image,
    })
    expect(body.regions.map((region) => [region.region, region.default, region.available])).toEqual([
      ['eu', true, true],
      ['us', false, true],
      ['closed', false, false],
    ])
    expect(body.regions[1]?.ping_url).toBe('https://us.example.com/ping')
  })

  test('requires a sign-in', async () => {
    const answer = await service.api.get<ErrorBody>('/relay/manifest')
    expect([answer.status, answer.body.error.code]).toEqual([401, 'unauthorized'])
  })
})

const statuses = (...expected: string[]) => eventually(rooms, (all) => JSON.stringify(all) === JSON.stringify(expected))

test('the capacity status is public and follows the number of live relays', async () => {
  expect(await capacity()).toEqual({
    status: 'available',
    regions: [
      { region: 'eu', display_name: 'Europe', status: 'available' },
      { region: 'us', display_name: 'America', status: 'available' },
      { region: 'closed', display_name: 'Closed', status: 'full' },
    ],
    as_of: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  })
  const [first, second] = [await service.user(), await service.user()]
  await second.start({ region: 'us' })
  await statuses('available', 'full', 'full')
  for (const name of ['a', 'b', 'c']) await first.start({ connection_id: name })
  await statuses('available', 'full', 'full')
  await first.start({ connection_id: 'd' })
  await statuses('limited', 'full', 'full')
  expect((await capacity()).status).toBe('limited')
  await second.start({ connection_id: 'e' })
  await statuses('full', 'full', 'full')
  expect((await capacity()).status).toBe('full')
  const { body } = await service.api.get<Manifest>('/relay/manifest', { bearer: first.bearer })
  expect(body.regions.map((each) => each.available)).toEqual([false, false, false])

  await service.api.sql`
    update relay_sessions set state = 'stopped', reason = 'stop_requested', stopped_at = now(), pair_token_sealed = null,
      pair_token_hash = null, relay_ws_token_sealed = null, relay_ws_token_hash = null`
  await statuses('available', 'available', 'full')
})

test('an instance that still exists without a live relay takes a place, and an unbound warm one is room', async () => {
  const { sql } = service.api
  await statuses('available', 'available', 'full')
  await sql`insert into instances (instance_id, region, is_warm) values ('warm', 'us', true), ('left', 'eu', false)`
  await sql`insert into instances (instance_id, region) select 'left-' || n, 'eu' from generate_series(1, 3) n`
  await statuses('limited', 'available', 'full')
  await sql`update instances set retired_at = now() where instance_id = 'warm'`
  await statuses('limited', 'full', 'full')
  await sql`update instances set gone_at = now()`
  await statuses('available', 'available', 'full')
})

test('a drained region counts as full and is not available, and the reason is not shown', async () => {
  const { bearer } = await service.api.given.user()
  await statuses('available', 'available', 'full')
  await service.api.post('/admin/regions/eu/drain', {}, { headers: operator })
  await statuses('full', 'available', 'full')
  const { body } = await service.api.get<Manifest>('/relay/manifest', { bearer })
  expect(body.regions.map(({ available }) => available)).toEqual([false, true, false])
  expect(JSON.stringify(body)).not.toContain('drain')
  await service.api.post('/admin/regions/eu/resume', {}, { headers: operator })
  await statuses('available', 'available', 'full')
})

test('concurrent requests share one computation, which is repeated after a second', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, capacity))
  const times = answers.map(({ as_of }) => Date.parse(as_of))
  expect(new Set(times).size).toBeLessThanOrEqual(2)
  const later = await eventually(capacity, ({ as_of }) => Date.parse(as_of) > Math.max(...times))
  expect(Date.parse(later.as_of) - Math.max(...times)).toBeGreaterThan(950)
})
