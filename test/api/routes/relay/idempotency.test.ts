/** The Idempotency-Key of a start: repetitions get the same session. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../../../api/views/relay-session.ts'
import { type Answer, statusAndCode } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { type FakeRelayService, startFakeRelayService } from '../../../support/fake-relays.ts'
import { listStatesAndCommands, writeStopGrace } from '../../../support/relay-rows.ts'
import { eventually, type RelayUser, startService, type TestService } from '../../../support/relays.ts'

const regions = JSON.stringify(['here', 'there'].map((region) => ({ region, display_name: region, provider: 'local' })))

/** With a worker. */
let service: FakeRelayService
/** Without a worker, so that sessions keep the state in which they were accepted. */
let serviceWithoutWorker: TestService
beforeAll(async () => {
  const variables = { SVC_REGIONS: regions, SVC_RATE_LIMITS: highLimits({ relay_start: 6 }) }
  serviceWithoutWorker = await startService({ worker: false, variables })
  service = await startFakeRelayService()
})

const idOf = ({ body }: Answer<{ session: SessionView }>) => body.session.session_id

/** Ends a session. The API answers before that when its workflow takes long. */
async function stopSession(user: RelayUser, session_id: string): Promise<void> {
  await user.stop({ session_id, immediate: true })
  await eventually(
    () => service.history(session_id),
    ({ session }) => session.state === 'stopped',
  )
}

describe('an idempotency key', () => {
  test.each([
    [undefined, 'idempotency_key_required'],
    ['', 'idempotency_key_required'],
    ['1234', 'idempotency_key_invalid'],
    ['""', 'idempotency_key_invalid'],
    ['6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'idempotency_key_invalid'],
    ['00000000-0000-0000-0000-000000000000', 'idempotency_key_invalid'],
    [`"${randomUUID()}`, 'idempotency_key_invalid'],
    [`${randomUUID()}, ${randomUUID()}`, 'idempotency_key_invalid'],
    [`{${randomUUID()}}`, 'idempotency_key_invalid'],
  ])('%s is refused with %s', async (key, code) => {
    const { bearer } = await serviceWithoutWorker.user()
    const headers: Record<string, string> = key === undefined ? {} : { 'Idempotency-Key': key }
    const response = await serviceWithoutWorker.api.post('/relay/start', {}, { bearer, headers })
    expect(statusAndCode(response)).toEqual([400, code])
  })

  test('is the same in upper case and in double quotes', async () => {
    const user = await serviceWithoutWorker.user()
    const key = randomUUID()
    const responses = [
      await user.start({}, key),
      await user.start({}, `"${key}"`),
      await user.start({}, key.toUpperCase()),
    ]
    expect(responses.map(({ status }) => status)).toEqual([201, 200, 200])
    const [row] = await serviceWithoutWorker.api.sql`
      select count(*)::int as keys from idempotency_keys where user_id = ${user.userId}`
    expect(row?.keys).toBe(1)
  })

  test('of fifty concurrent requests reserves one session and counts once against the rate limit', async () => {
    const user = await serviceWithoutWorker.user()
    const key = randomUUID()
    const responses = await Promise.all(Array.from({ length: 50 }, () => user.start({ connection_id: 'obs' }, key)))
    expect(responses.map(({ status }) => status).sort()).toEqual([...Array(49).fill(200), 201])
    expect(new Set(responses.map(idOf)).size).toBe(1)
    expect(await listStatesAndCommands(serviceWithoutWorker.api.sql, user.userId)).toEqual(['provisioning run'])
    for (let index = 0; index < 5; index += 1) expect((await user.start()).status).toBeLessThan(300)
    expect(statusAndCode(await user.start())).toEqual([429, 'rate_limited'])
  })

  test('with another request body is refused and still belongs to its first request', async () => {
    const user = await serviceWithoutWorker.user()
    const key = randomUUID()
    const first = await user.start({ connection_id: 'a' }, key)
    for (const body of [{ connection_id: 'b' }, { connection_id: 'a', region: 'there' }])
      expect(statusAndCode(await user.start(body, key))).toEqual([422, 'idempotency_key_reused'])
    const replay = await user.start({ connection_id: 'a' }, key)
    expect([replay.status, idOf(replay)]).toEqual([200, idOf(first)])
    const existing = await user.start({ connection_id: 'a' })
    expect([first, replay, existing].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([
      null,
      'true',
      null,
    ])
    expect(await listStatesAndCommands(serviceWithoutWorker.api.sql, user.userId)).toHaveLength(1)
  })

  test('can be used by two accounts independently', async () => {
    const [user, otherUser] = [await serviceWithoutWorker.user(), await serviceWithoutWorker.user()]
    const key = randomUUID()
    const [response, otherResponse] = [await user.start({}, key), await otherUser.start({}, key)]
    expect([response.status, otherResponse.status]).toEqual([201, 201])
    expect(idOf(response)).not.toBe(idOf(otherResponse))
  })

  test('of a session that has stopped returns the stopped session without secrets, and starts nothing', async () => {
    const user = await service.user()
    const key = randomUUID()
    const session_id = idOf(await user.start({}, key))
    await stopSession(user, session_id)
    const replay = await user.start({}, key)
    expect([replay.status, replay.body.session]).toEqual([
      200,
      expect.objectContaining({ session_id, state: 'stopped', reason: 'stop_requested' }),
    ])
    expect(replay.body.session).not.toHaveProperty('pair_token')
    expect(await listStatesAndCommands(service.api.sql, user.userId)).toEqual(['stopped stop_now'])
  })

  test('of a session in its stop grace does not resume the session', async () => {
    const user = await serviceWithoutWorker.user()
    const key = randomUUID()
    await writeStopGrace(serviceWithoutWorker.api.sql, idOf(await user.start({}, key)))
    const replay = await user.start({}, key)
    expect([replay.status, replay.body.session.state]).toEqual([200, 'grace'])
    expect(await listStatesAndCommands(serviceWithoutWorker.api.sql, user.userId)).toEqual(['grace stop'])
  })

  test('can be used for another request after one hour', async () => {
    const user = await service.user()
    const key = randomUUID()
    const first = await user.start({}, key)
    await stopSession(user, idOf(first))
    const setAge = (interval: string) =>
      service.api.sql`update idempotency_keys set accepted_at = now() - ${interval}::interval where key = ${key}`
    await setAge('55 minutes')
    expect((await user.start({}, key)).body.session.state).toBe('stopped')
    await setAge('1 hour')
    const second = await user.start({ connection_id: 'other' }, key)
    expect(second.status).toBe(201)
    expect(idOf(second)).not.toBe(idOf(first))
    expect(idOf(await user.start({ connection_id: 'other' }, key))).toBe(idOf(second))
  })

  test('of a refused request is not stored', async () => {
    const { sql } = serviceWithoutWorker.api
    const user = await serviceWithoutWorker.user({ addons: 0 })
    const key = randomUUID()
    await sql`update users set plan_tier = 'free' where id = ${user.userId}`
    expect(statusAndCode(await user.start({}, key))).toEqual([403, 'relay_access_denied'])
    await sql`update users set plan_tier = 'paid' where id = ${user.userId}`
    await user.start({ connection_id: 'first' })
    expect(statusAndCode(await user.start({ connection_id: 'second' }, key))).toEqual([403, 'relay_limit_reached'])
    await sql`update users set addons = 3 where id = ${user.userId}`
    expect((await user.start({ connection_id: 'third' }, key)).status).toBe(201)
    const rows = await sql`select from idempotency_keys where user_id = ${user.userId}`
    expect(rows).toHaveLength(2)
  })
})
