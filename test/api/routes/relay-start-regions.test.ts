/** Which region a start uses: by room, without drained ones, and with the last places given to one start each. */
import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ErrorBody } from '../../support/api.ts'
import { statusAndCode } from '../../support/api.ts'
import { highLimits } from '../../support/environment.ts'
import { writeStopGrace } from '../../support/relay-rows.ts'
import { startService, type TestService } from '../../support/relays.ts'

const regions = JSON.stringify([
  { region: 'small', display_name: 'Small', provider: 'local', capacity: 3, default: true },
  { region: 'large', display_name: 'Large', provider: 'local', capacity: 5 },
  { region: 'other', display_name: 'Other', provider: 'local', capacity: 5 },
])

/** With room for more sessions than starts reserve within a second, so that a recent count of its places is used. */
const hugeRegions = JSON.stringify([
  { region: 'huge', display_name: 'Huge', provider: 'local', capacity: 4000, default: true },
  { region: 'small', display_name: 'Small', provider: 'local', capacity: 3 },
])

/** Without a worker, so that sessions keep the state in which they were accepted. */
const startServiceWith = (configuredRegions: string) =>
  startService({
    worker: false,
    variables: { SVC_REGIONS: configuredRegions, SVC_RATE_LIMITS: highLimits({ relay_start: 1000 }) },
  })

async function empty({ api: { sql } }: TestService) {
  await sql`delete from relay_sessions`
  await sql`delete from instances`
  await sql`delete from regions`
}

let service: TestService
beforeAll(async () => {
  service = await startServiceWith(regions)
})
beforeEach(() => empty(service))

const drain = (region: string) => service.api.sql`insert into regions (region, drained_at) values (${region}, now())`

/** Starts the next relay of a new user. */
async function start(body: object = {}, { user } = service) {
  const answer = await (await user()).start(body)
  return answer.status === 201 ? answer.body.session.region : statusAndCode(answer)
}

const fill = async (region: string, count: number) => {
  for (let sessions = 0; sessions < count; sessions += 1) expect(await start({ region })).toBe(region)
}

const capacityExhausted = [503, 'capacity_exhausted']

test('with `auto` the region with the most free places is used, and ties keep the configured order', async () => {
  const chosen = []
  for (let sessions = 0; sessions < 5; sessions += 1) chosen.push(await start({ region: 'auto' }))
  expect(chosen).toEqual(['large', 'other', 'large', 'other', 'small'])
})

test('with `auto` all places of all regions can be used, and then the start is refused', async () => {
  const chosen = await Promise.all(Array.from({ length: 20 }, () => start({ region: 'auto' })))
  const countOf = (wanted: unknown) => chosen.filter((one) => JSON.stringify(one) === JSON.stringify(wanted)).length
  expect([countOf('small'), countOf('large'), countOf('other'), countOf(capacityExhausted)]).toEqual([3, 5, 5, 7])
})

test('the refusal of `auto` states that all regions are full', async () => {
  for (const region of ['small', 'large', 'other']) await drain(region)
  const { status, body, headers } = await (await service.user()).start({ region: 'auto' })
  expect([status, (body as unknown as ErrorBody).error.message]).toEqual([
    503,
    'All regions are full. Try again later.',
  ])
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
})

test('without a region the default one is used, even when others have more room', async () => {
  expect(await start()).toBe('small')
  await fill('small', 2)
  expect(await start()).toEqual(capacityExhausted)
})

test('without a region and with a drained default region any region with room is used', async () => {
  await drain('small')
  expect(await start()).toBe('large')
})

test('a drained region is refused by its name, and `auto` skips it', async () => {
  await drain('large')
  const { status, body } = await (await service.user()).start({ region: 'large' })
  expect([status, (body as unknown as ErrorBody).error]).toEqual([
    503,
    {
      code: 'capacity_exhausted',
      message: 'The region takes no new relays for now. Choose another one, or "auto".',
    },
  ])
  expect(await start({ region: 'auto' })).toBe('other')
})

test('a connection with a live session gets it from a drained region, whatever region is named', async () => {
  const user = await service.user()
  const { session_id } = (await user.start({ region: 'large' })).body.session
  await drain('large')
  for (const region of ['large', 'small', 'auto', undefined]) {
    const { status, body } = await user.start({ region })
    expect([status, body.session.session_id]).toEqual([200, session_id])
  }
})

test('a session that is stopping in a drained region can be resumed', async () => {
  const user = await service.user()
  const { session_id } = (await user.start({ region: 'large' })).body.session
  await writeStopGrace(service.api.sql, session_id)
  await drain('large')
  const { status, body } = await user.start({ region: 'large' })
  expect([status, body.session.session_id]).toEqual([200, session_id])
  const [row] = await service.api.sql`select command from relay_sessions where id = ${session_id}`
  expect(row).toEqual({ command: 'run' })
})

test('a repeated request returns its session after its region was drained', async () => {
  const [user, key] = [await service.user(), randomUUID()]
  const first = await user.start({ region: 'large' }, key)
  await drain('large')
  const repeated = await user.start({ region: 'large' }, key)
  expect([repeated.status, repeated.body.session.session_id]).toEqual([200, first.body.session.session_id])
  expect(statusAndCode(await user.start({ region: 'auto' }, key))).toEqual([422, 'idempotency_key_reused'])
})

test('an instance that has existed without a live session for a minute takes a place, and other ones take none', async () => {
  const { sql } = service.api
  await sql`
    insert into instances (instance_id, region, is_warm, unowned_since) values
      ('left', 'small', false, now() - interval '2 minutes'), ('ending', 'small', false, now()), ('warm', 'small', true, null)`
  await fill('small', 2)
  expect(await start({ region: 'small' })).toEqual(capacityExhausted)
  await sql`update instances set gone_at = now() where instance_id = 'left'`
  expect(await start({ region: 'small' })).toBe('small')
})

describe('in a region with room for thousands of sessions', () => {
  let huge: TestService
  beforeAll(async () => {
    huge = await startServiceWith(hugeRegions)
  })
  beforeEach(() => empty(huge))

  /** Waits until starts have counted the sessions. */
  const insertSessions = async (count: number) => {
    const { userId } = await huge.user()
    await huge.api.sql`
      insert into relay_sessions (user_id, connection_id, region, command_initiator)
      select ${userId}, 'connection-' || number, 'huge', 'user' from generate_series(1, ${count}::int) as number`
    await vi.waitFor(
      async () =>
        expect(await huge.api.services.findRecentPlaces()).toContainEqual({ region: 'huge', placesTaken: count }),
      5000,
    )
  }

  test('relays start there, by its name, with `auto` and without a region', async () => {
    for (const body of [{ region: 'huge' }, { region: 'auto' }, {}]) expect(await start(body, huge)).toBe('huge')
  })

  test('a start right after the region was drained is refused, and `auto` and the default skip it', async () => {
    expect(await start({ region: 'huge' }, huge)).toBe('huge')
    await huge.api.sql`insert into regions (region, drained_at) values ('huge', now())`
    expect(await start({ region: 'huge' }, huge)).toEqual(capacityExhausted)
    expect([await start({ region: 'auto' }, huge), await start({}, huge)]).toEqual(['small', 'small'])
  })

  test('its last places are given to one start each', async () => {
    await insertSessions(3998)
    const outcomes = await Promise.all(Array.from({ length: 6 }, () => start({ region: 'huge' }, huge)))
    expect(outcomes.filter((outcome) => outcome === 'huge')).toHaveLength(2)
    expect(outcomes.filter((outcome) => outcome !== 'huge')).toEqual(Array(4).fill(capacityExhausted))
  })

  test('`auto` prefers a region with more free places', async () => {
    await insertSessions(3998)
    expect(await start({ region: 'auto' }, huge)).toBe('small')
  })
})
