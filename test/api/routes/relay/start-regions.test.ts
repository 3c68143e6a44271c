/** Which region a start uses: by room, without drained ones, and with the last places given to one start each. */
import { randomUUID } from 'node:crypto'
import type { TransactionSql } from 'postgres'
import { beforeEach, expect, test } from 'vitest'
import { drainRegion, lockRegion } from '../../../../db/fleet/regions.ts'
import type { ErrorBody } from '../../../support/api.ts'
import { statusAndCode } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { waitForBlockedQuery } from '../../../support/locks.ts'
import { writeStopGrace } from '../../../support/relay-rows.ts'
import { type RelayUser, startService } from '../../../support/relays.ts'

const regions = JSON.stringify([
  { region: 'small', display_name: 'Small', provider: 'local', capacity: 3, default: true },
  { region: 'large', display_name: 'Large', provider: 'local', capacity: 5 },
  { region: 'other', display_name: 'Other', provider: 'local', capacity: 5 },
])

/** Without a worker, so that sessions keep the state in which they were accepted. */
const service = await startService({
  worker: false,
  variables: { SVC_REGIONS: regions, SVC_RATE_LIMITS: highLimits({ relay_start: 1000 }) },
})
const { sql } = service.api

beforeEach(async () => {
  await sql`delete from relay_sessions`
  await sql`delete from instances`
  await sql`delete from regions`
})

const drain = (region: string) => sql`insert into regions (region, drained_at) values (${region}, now())`

/** @returns the region of the new session, or the refusal. */
async function startBy(user: RelayUser, body: object) {
  const answer = await user.start(body)
  return answer.status === 201 ? answer.body.session.region : statusAndCode(answer)
}

/** Starts the next relay of a new user. */
const start = async (body: object = {}) => startBy(await service.user(), body)

const fill = async (region: string, count: number) => {
  for (let sessions = 0; sessions < count; sessions += 1) expect(await start({ region })).toBe(region)
}

const capacityExhausted = [503, 'capacity_exhausted']

test('with `auto` the region with the most free places is used, and ties keep the configured order', async () => {
  const chosen = []
  for (let sessions = 0; sessions < 5; sessions += 1) chosen.push(await start({ region: 'auto' }))
  expect(chosen).toEqual(['large', 'other', 'large', 'other', 'small'])
})

const everyWay = [{ region: 'small' }, { region: 'large' }, { region: 'auto' }, {}]

test.each([
  ['by its name', [{ region: 'large' }], [], { large: 5 }],
  ['without a region', [{}], [], { small: 3 }],
  ['with `auto`', [{ region: 'auto' }], [], { small: 3, large: 5, other: 5 }],
  ['with `auto` and one drained region', [{ region: 'auto' }], ['small'], { large: 5, other: 5 }],
  ['without a region, while the default one is drained', [{}], ['small'], { large: 5, other: 5 }],
  ['in every way', everyWay, [], { small: 3, large: 5, other: 5 }],
  ['in every way, while the default region is drained', everyWay, ['small'], { large: 5, other: 5 }],
])(
  '40 concurrent starts %s use all places and no more, and the others are refused',
  async (_, bodies, drained, used) => {
    for (const region of drained) await drain(region)
    const users = await Promise.all(Array.from({ length: 40 }, () => service.user()))
    const outcomes = await Promise.all(users.map((user, index) => startBy(user, bodies[index % bodies.length] ?? {})))
    const counts = new Map<string, number>()
    for (const outcome of outcomes) counts.set(String(outcome), (counts.get(String(outcome)) ?? 0) + 1)
    const refused = 40 - Object.values(used).reduce((sum, count) => sum + count, 0)
    expect(Object.fromEntries(counts)).toEqual({ ...used, [String(capacityExhausted)]: refused })
  },
)

/** A start of the region, which waits while the work is done and committed. */
async function startDuring(work: (tx: TransactionSql) => Promise<unknown>) {
  const user = await service.user()
  const { outcome } = await sql.begin(async (tx) => {
    await lockRegion(tx, 'small')
    const waiting = startBy(user, { region: 'small' })
    await waitForBlockedQuery(sql, tx)
    await work(tx)
    return { outcome: waiting }
  })
  return outcome
}

async function insertSessions(tx: TransactionSql, region: string, count: number) {
  const { userId } = await service.user()
  await tx`
    insert into relay_sessions (user_id, connection_id, region, command_initiator)
    select ${userId}, 'connection-' || number, ${region}, 'user' from generate_series(1, ${count}::int) number`
}

test('a start that waited for another one of its region counts the session of that one', async () => {
  await fill('small', 2)
  expect(await startDuring((tx) => insertSessions(tx, 'small', 1))).toEqual(capacityExhausted)
})

test('a start that waited for another one of its region is refused when the region was drained meanwhile', async () => {
  expect(await startDuring((tx) => drainRegion(tx, 'small'))).toEqual(capacityExhausted)
})

test('with `auto` a start that finds a region full after its wait releases that one before it waits for the next', async () => {
  const user = await service.user()
  const { outcome } = await sql.begin(async (other) => {
    await lockRegion(other, 'other')
    const started = await sql.begin(async (large) => {
      await lockRegion(large, 'large')
      const waiting = startBy(user, { region: 'auto' })
      await waitForBlockedQuery(sql, large)
      await insertSessions(large, 'large', 5)
      return { outcome: waiting }
    })
    await waitForBlockedQuery(sql, other)
    expect(await start({ region: 'large' })).toEqual(capacityExhausted)
    return started
  })
  expect(await outcome).toBe('other')
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
  await writeStopGrace(sql, session_id)
  await drain('large')
  const { status, body } = await user.start({ region: 'large' })
  expect([status, body.session.session_id]).toEqual([200, session_id])
  const [row] = await sql`select command from relay_sessions where id = ${session_id}`
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
  await sql`
    insert into instances (instance_id, region, is_warm, unowned_since) values
      ('left', 'small', false, now() - interval '2 minutes'), ('ending', 'small', false, now()), ('warm', 'small', true, null)`
  await fill('small', 2)
  expect(await start({ region: 'small' })).toEqual(capacityExhausted)
  await sql`update instances set gone_at = now() where instance_id = 'left'`
  expect(await start({ region: 'small' })).toBe('small')
})
