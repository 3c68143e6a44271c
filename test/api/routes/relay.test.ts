import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../../api/relay-session-view.ts'
import { type Answer, outcome } from '../../support/api.ts'
import { highLimits } from '../../support/environment.ts'
import { eventually, type RelayUser, startService, type TestService } from '../../support/relays.ts'

const regions = JSON.stringify([
  { region: 'here', display_name: 'Here', provider: 'local', default: true },
  { region: 'tiny', display_name: 'Tiny', provider: 'local', capacity: 1 },
])

/** With relays that come up and go. */
let service: TestService
/** Nobody carries anything out here: sessions stay as they were accepted. Limits are the real ones. */
let still: TestService
beforeAll(async () => {
  const limits = highLimits({ relay_start: 6, relay_stop: 20 })
  still = await startService({ worker: false, variables: { SVC_REGIONS: regions, SVC_RATE_LIMITS: limits } })
  service = await startService()
})

const idOf = (answer: Answer<{ session: SessionView }>) => answer.body.session.session_id
const sessionsOf = async (user: RelayUser, at = still) =>
  (await at.api.sql`select state, command from relay_sessions where user_id = ${user.userId} order by created_at`).map(
    (row) => `${row.state} ${row.command}`,
  )
const startAt = (user: RelayUser, path: string, body: object = {}, headers = { 'Idempotency-Key': randomUUID() }) =>
  still.api.post<{ session: SessionView }>(path, body, { bearer: user.bearer, headers })
/** Moves that an actor would make, where none is. */
const becomeActive = (sessionId: string) => still.api.sql`
  update relay_sessions set state = 'active', reason = 'relay_ready', version = version + 1, active_at = now(),
    instance_id = 'i-1', relay_host = '198.51.100.7', srtla_port = 5000, publish_port = 4001, play_port = 4000, stats_port = 5080
  where id = ${sessionId}`
const goIntoGrace = (sessionId: string) => still.api.sql`
  update relay_sessions set state = 'grace', reason = 'stop_requested', version = version + 1,
    grace_started_at = now(), grace_ends_at = now() + interval '1 minute' where id = ${sessionId}`
const askToStop = (sessionId: string) => still.api.sql`
  update relay_sessions set command = 'stop', command_seq = command_seq + 1, commanded_at = now() where id = ${sessionId}`

describe('a start', () => {
  test('reserves a session, and answers it again for the same connection', async () => {
    const user = await still.user()
    const fresh = await user.start()
    expect(fresh.status).toBe(201)
    expect(fresh.body.session).toEqual({
      session_id: expect.any(String),
      connection_id: 'default',
      state: 'provisioning',
      reason: 'start_requested',
      region: 'here',
      instance_id: null,
      relay_host_masked: null,
      relay_host: null,
      pair_token: expect.stringMatching(/^[\w-]{32}$/),
      relay_ws_token: expect.stringMatching(/^[\w-]{32}$/),
      connect: null,
      created_at: expect.stringMatching(/Z$/),
      active_at: null,
      grace_ends_at: null,
      stopped_at: null,
    })
    const again = await user.start()
    expect(again.status).toBe(200)
    expect(again.body).toEqual(fresh.body)
  })

  test('needs no body', async () => {
    const user = await still.user()
    const asking = { bearer: user.bearer, headers: { 'Idempotency-Key': randomUUID() } }
    const answer = await still.api.post<{ session: SessionView }>('/relay/start', undefined, asking)
    expect([answer.status, answer.body.session.connection_id]).toEqual([201, 'default'])
  })

  test('of five connections at once on a plan of four is four relays', async () => {
    const user = await still.user({ addons: 3 })
    const answers = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => user.start({ connection_id: name })))
    expect(answers.map(outcome).sort()).toEqual([...Array(4).fill([201, undefined]), [403, 'relay_limit_reached']])
    expect(await sessionsOf(user)).toHaveLength(4)
  })

  test('is refused to a plan without relays, whose owner may still look and stop', async () => {
    const user = await still.user()
    await user.start()
    await still.api.sql`update users set plan_tier = 'free' where id = ${user.userId}`
    expect(outcome(await user.start({ connection_id: 'other' }))).toEqual([403, 'relay_access_denied'])
    expect((await user.active()).sessions).toHaveLength(1)
    expect((await user.stop({ connection_id: 'default' })).status).toBe(200)
    const { bearer } = await still.api.given.user()
    const free = await still.api.post('/relay/start', {}, { bearer, headers: { 'Idempotency-Key': randomUUID() } })
    expect(outcome(free)).toEqual([403, 'relay_access_denied'])
  })

  test('in a region that does not exist, or is full, is refused', async () => {
    const [one, other] = [await still.user(), await still.user()]
    expect(outcome(await one.start({ region: 'nowhere' }))).toEqual([400, 'invalid_request'])
    const answers = await Promise.all([one, other].map((user) => user.start({ region: 'tiny' })))
    expect(answers.map(outcome).sort()).toEqual([
      [201, undefined],
      [503, 'capacity_exhausted'],
    ])
    const full = answers.find((answer) => answer.status === 503)
    expect(Number(full?.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test.each(['', 'a'.repeat(65), 'a b', 'a/b', 'ü', 'a\n', '\0', 7, null, ['a'], {}])(
    'of the connection %j is a bad request',
    async (connection_id) => {
      const user = await still.user()
      expect(outcome(await user.start({ connection_id }))).toEqual([400, 'invalid_request'])
    },
  )

  test.each(['a', 'A-b_c.9', 'x'.repeat(64)])('of the connection %j is fine', async (connection_id) => {
    const user = await still.user()
    expect((await user.start({ connection_id })).body.session.connection_id).toBe(connection_id)
  })

  test('without a valid token is refused before anything else', async () => {
    const answer = await still.api.post('/relay/start', {}, { bearer: 'a.b.c' })
    expect(outcome(answer)).toEqual([401, 'unauthorized'])
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/)
  })
})

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
    const user = await still.user()
    const answer = await startAt(
      user,
      '/relay/start',
      {},
      (key === undefined ? {} : { 'Idempotency-Key': key }) as never,
    )
    expect(outcome(answer)).toEqual([400, code])
  })

  test('is the same in capitals and in double quotes', async () => {
    const user = await still.user()
    const key = randomUUID()
    const answers = [
      await user.start({}, key),
      await user.start({}, `"${key}"`),
      await user.start({}, key.toUpperCase()),
    ]
    expect(answers.map((answer) => answer.status)).toEqual([201, 200, 200])
    const [row] = await still.api.sql`select count(*)::int as keys from idempotency_keys where user_id = ${user.userId}`
    expect(row?.keys).toBe(1)
  })

  test('sent fifty times at once is one relay, and counts once', async () => {
    const user = await still.user()
    const key = randomUUID()
    const answers = await Promise.all(Array.from({ length: 50 }, () => user.start({ connection_id: 'obs' }, key)))
    expect(answers.map((answer) => answer.status).sort()).toEqual([...Array(49).fill(200), 201])
    expect(new Set(answers.map(idOf)).size).toBe(1)
    expect(await sessionsOf(user)).toEqual(['provisioning run'])
    for (let round = 0; round < 5; round += 1) expect((await user.start()).status).toBeLessThan(300)
    expect(outcome(await user.start())).toEqual([429, 'rate_limited'])
  })

  test('with another body is refused, and stays what it was', async () => {
    const user = await still.user()
    const key = randomUUID()
    const first = await user.start({ connection_id: 'a' }, key)
    expect(outcome(await user.start({ connection_id: 'b' }, key))).toEqual([422, 'idempotency_key_reused'])
    expect(outcome(await user.start({ connection_id: 'a', region: 'tiny' }, key))).toEqual([
      422,
      'idempotency_key_reused',
    ])
    const again = await user.start({ connection_id: 'a' }, key)
    expect([again.status, idOf(again)]).toEqual([200, idOf(first)])
    expect(await sessionsOf(user)).toHaveLength(1)
  })

  test('of one account means nothing to another', async () => {
    const [one, other] = [await still.user(), await still.user()]
    const key = randomUUID()
    const answers = [await one.start({}, key), await other.start({}, key)]
    expect(answers.map((answer) => answer.status)).toEqual([201, 201])
    expect(idOf(answers[0] as never)).not.toBe(idOf(answers[1] as never))
  })

  test('answers the session as it is now: one that was stopped stays stopped, and nothing starts', async () => {
    const user = await service.user()
    const key = randomUUID()
    const { session_id } = (await user.start({}, key)).body.session
    await user.stop({ session_id, immediate: true })
    const replay = await user.start({}, key)
    expect([replay.status, replay.body.session]).toEqual([
      200,
      expect.objectContaining({ session_id, state: 'stopped', reason: 'stop_requested' }),
    ])
    expect(replay.body.session).not.toHaveProperty('pair_token')
    expect(await sessionsOf(user, service)).toEqual(['stopped stop_now'])
  })

  test('does not bring a session back that is in grace for a stop', async () => {
    const user = await still.user()
    const key = randomUUID()
    const session_id = idOf(await user.start({}, key))
    await becomeActive(session_id)
    await askToStop(session_id)
    await goIntoGrace(session_id)
    const replay = await user.start({}, key)
    expect([replay.status, replay.body.session.state]).toEqual([200, 'grace'])
    expect(await sessionsOf(user)).toEqual(['grace stop'])
  })

  test('is fresh again after its hour', async () => {
    const user = await service.user()
    const key = randomUUID()
    const first = await user.start({}, key)
    await user.stop({ session_id: idOf(first), immediate: true })
    const age = (interval: string) =>
      service.api.sql`update idempotency_keys set accepted_at = now() - ${interval}::interval where key = ${key}`
    await age('59 minutes 59 seconds')
    expect((await user.start({}, key)).body.session.state).toBe('stopped')
    await age('1 hour')
    const fresh = await user.start({ connection_id: 'other' }, key)
    expect(fresh.status).toBe(201)
    expect(idOf(fresh)).not.toBe(idOf(first))
    expect(idOf(await user.start({ connection_id: 'other' }, key))).toBe(idOf(fresh))
    await user.stop({ session_id: idOf(fresh), immediate: true })
  })

  test('is not used up by a refusal', async () => {
    const user = await still.user({ addons: 0 })
    const key = randomUUID()
    await still.api.sql`update users set plan_tier = 'free' where id = ${user.userId}`
    expect(outcome(await user.start({}, key))).toEqual([403, 'relay_access_denied'])
    await still.api.sql`update users set plan_tier = 'paid' where id = ${user.userId}`
    await user.start({ connection_id: 'first' })
    expect(outcome(await user.start({ connection_id: 'second' }, key))).toEqual([403, 'relay_limit_reached'])
    await still.api.sql`update users set addons = 3 where id = ${user.userId}`
    expect((await user.start({ connection_id: 'third' }, key)).status).toBe(201)
    const rows = await still.api.sql`select from idempotency_keys where user_id = ${user.userId}`
    expect(rows).toHaveLength(2)
  })
})

describe('the limit on starts', () => {
  test('is six a minute for each user, told with every counted answer', async () => {
    const [user, other] = [await still.user(), await still.user()]
    const keys = Array.from({ length: 7 }, () => randomUUID())
    const answers = []
    for (const key of keys) answers.push(await user.start({}, key))
    expect(answers.map((answer) => answer.status)).toEqual([201, 200, 200, 200, 200, 200, 429])
    expect(answers.map((answer) => answer.headers.get('ratelimit')?.split(';')[1])).toEqual([
      'r=5',
      'r=4',
      'r=3',
      'r=2',
      'r=1',
      'r=0',
      'r=0',
    ])
    const last = answers.at(-1)
    expect(outcome(last as never)).toEqual([429, 'rate_limited'])
    expect(Number(last?.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(last?.headers.get('ratelimit-policy')).toBe('"relay_start";q=6;w=60')
    expect((await other.start()).status).toBe(201)

    // A replay neither counts nor is refused; what was refused kept nothing.
    const replay = await user.start({}, keys[0])
    expect([replay.status, replay.headers.get('ratelimit')]).toEqual([200, null])
    await still.api.sql`update rate_limit_windows set opened_at = opened_at - interval '1 minute'`
    expect((await user.start({}, keys[6])).status).toBe(200)
  })

  test('counts refused starts too, and is exact when they come at once', async () => {
    const user = await still.user()
    await still.api.sql`update users set plan_tier = 'free' where id = ${user.userId}`
    const answers = await Promise.all(Array.from({ length: 20 }, () => user.start()))
    expect(answers.map(outcome).sort()).toEqual([
      ...Array(6).fill([403, 'relay_access_denied']),
      ...Array(14).fill([429, 'rate_limited']),
    ])
  })
})

describe('a start makes room', () => {
  test('by ending at once what is in grace for a stop', async () => {
    const { user, session } = await service.activeRelay(await service.user({ addons: 0 }))
    expect((await user.stop({ session_id: session.session_id })).body.session.state).toBe('grace')
    const next = await user.start({ connection_id: 'next' })
    expect(next.status).toBe(201)
    const left = await eventually(
      () => user.active(),
      ({ sessions }) => sessions.length === 1,
      2,
    )
    expect(left.session?.session_id).toBe(idOf(next))
    expect((await service.history(session.session_id)).transitions.at(-1)).toMatchObject({
      from: 'grace',
      to: 'stopped',
      reason: 'stop_requested',
    })
    await user.stop({ connection_id: 'next', immediate: true })
  })

  test('by the oldest of several only, and only when it has to', async () => {
    const user = await still.user({ addons: 1 })
    for (const name of ['a', 'b']) {
      const id = idOf(await user.start({ connection_id: name }))
      await becomeActive(id)
      await askToStop(id)
      await goIntoGrace(id)
    }
    expect((await user.start({ connection_id: 'c' })).status).toBe(201)
    expect(await sessionsOf(user)).toEqual(['grace stop_now', 'grace stop', 'provisioning run'])
    expect((await user.start({ connection_id: 'd' })).status).toBe(201)
    expect(await sessionsOf(user)).toEqual(['grace stop_now', 'grace stop_now', 'provisioning run', 'provisioning run'])
    expect(outcome(await user.start({ connection_id: 'e' }))).toEqual([403, 'relay_limit_reached'])
  })

  test('by as many as it takes, so that a plan that shrank never has more machines than it includes', async () => {
    const user = await still.user({ addons: 3 })
    for (const name of ['a', 'b', 'c', 'd']) {
      const id = idOf(await user.start({ connection_id: name }))
      await becomeActive(id)
      await askToStop(id)
      await goIntoGrace(id)
    }
    await still.api.sql`update users set addons = 1 where id = ${user.userId}`
    expect((await user.start({ connection_id: 'next' })).status).toBe(201)
    expect(await sessionsOf(user)).toEqual([
      ...['grace stop_now', 'grace stop_now', 'grace stop_now'],
      ...['grace stop', 'provisioning run'],
    ])
  })

  test('and the one that had to go does not come back beside it', async () => {
    const user = await still.user({ addons: 0 })
    const first = idOf(await user.start({ connection_id: 'first' }))
    await becomeActive(first)
    await askToStop(first)
    expect((await user.start({ connection_id: 'second' })).status).toBe(201)
    expect(outcome(await user.start({ connection_id: 'first' }))).toEqual([403, 'relay_limit_reached'])
    expect(await sessionsOf(user)).toEqual(['active stop_now', 'provisioning run'])
  })

  test('not by ending one that was told to go on a moment ago', async () => {
    const user = await still.user({ addons: 0 })
    const id = idOf(await user.start({ connection_id: 'first' }))
    await becomeActive(id)
    await askToStop(id)
    await goIntoGrace(id)
    expect((await user.start({ connection_id: 'first' })).status).toBe(200)
    expect(outcome(await user.start({ connection_id: 'second' }))).toEqual([403, 'relay_limit_reached'])
    expect(await sessionsOf(user)).toEqual(['grace run'])
  })
})

test('a relay that is stopping is told to go on only while its owner’s plan has relays', async () => {
  const user = await still.user({ addons: 0 })
  const id = idOf(await user.start())
  await becomeActive(id)
  await askToStop(id)
  await still.api.sql`update users set plan_tier = 'free' where id = ${user.userId}`
  expect(outcome(await user.start())).toEqual([403, 'relay_access_denied'])
  expect(await sessionsOf(user)).toEqual(['active stop'])
})

describe('a session that was ordered to disconnect', () => {
  const disconnected = async () => {
    const user = await still.user({ addons: 0 })
    const id = idOf(await user.start())
    await becomeActive(id)
    await still.api
      .sql`update relay_sessions set command = 'disconnect', command_seq = command_seq + 1 where id = ${id}`
    return { user, id }
  }

  test('is no answer to a start that the plan does not allow', async () => {
    const { user } = await disconnected()
    await still.api.sql`update users set plan_tier = 'free' where id = ${user.userId}`
    expect(outcome(await user.start())).toEqual([403, 'relay_access_denied'])
    expect(await sessionsOf(user)).toEqual(['active disconnect'])
  })

  test('gives way to a new one that the plan allows, which its connection then stands for', async () => {
    const { user, id } = await disconnected()
    const next = await user.start()
    expect(next.status).toBe(201)
    expect(idOf(next)).not.toBe(id)
    expect(await sessionsOf(user)).toEqual(['active disconnect', 'provisioning run'])
    expect((await user.active('default')).session?.session_id).toBe(idOf(next))
    expect((await user.active()).session?.session_id).toBe(idOf(next))
    const again = await user.start()
    expect([again.status, idOf(again)]).toEqual([200, idOf(next)])
  })

  test('gives way once, however many starts come at once', async () => {
    const { user } = await disconnected()
    const answers = await Promise.all(Array.from({ length: 5 }, () => user.start()))
    expect(new Set(answers.map(idOf)).size).toBe(1)
    expect(await sessionsOf(user)).toHaveLength(2)
  })
})

describe('the live sessions', () => {
  test('are none for who has none', async () => {
    const user = await still.user()
    expect(await user.active()).toEqual({ session: null, sessions: [] })
    expect(await user.active('obs')).toEqual({ session: null, sessions: [] })
  })

  test('are all there, the oldest first, and the asked one by its connection', async () => {
    const user = await still.user()
    const ids = []
    for (const name of ['z', 'a', 'm']) ids.push(idOf(await user.start({ connection_id: name })))
    const all = await user.active()
    expect(all.sessions.map((one) => one.session_id)).toEqual(ids)
    expect(all.session?.session_id).toBe(ids[0])
    expect((await user.active('m')).session?.session_id).toBe(ids[2])
    expect((await user.active('m')).sessions).toHaveLength(3)
    expect((await user.active('unknown')).session).toBeNull()
    expect((await (await still.user()).active()).sessions).toEqual([])
  })
})

describe('a stop', () => {
  test.each(['session_id', 'connection_id'])('by %s ends the relay; a stopped one is answered as it is', async (by) => {
    const user = await service.user()
    const { session } = (await user.start({ connection_id: 'obs' })).body
    const named = by === 'session_id' ? { session_id: session.session_id } : { connection_id: 'obs' }
    const first = await user.stop(named)
    expect([first.status, first.body.session.state]).toEqual([200, 'stopped'])
    for (let round = 0; round < 3; round += 1) {
      const again = await user.stop({ ...named, immediate: round === 1 })
      expect([again.status, again.body]).toEqual([200, first.body])
    }
    for (const secret of ['pair_token', 'relay_ws_token', 'connect', 'relay_host'])
      expect(first.body.session).not.toHaveProperty(secret)
  })

  test('twenty times at once is one stop', async () => {
    const { user, session } = await service.activeRelay()
    const answers = await Promise.all(Array.from({ length: 20 }, () => user.stop({ session_id: session.session_id })))
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]))
    await eventually(
      async () => (await user.active()).sessions.length,
      (count) => count === 0,
    )
    expect((await service.history(session.session_id)).transitions).toHaveLength(3)
  })

  test('finds nothing that is unknown or someone else’s', async () => {
    const [owner, stranger] = [await still.user(), await still.user()]
    const session_id = idOf(await owner.start({ connection_id: 'obs' }))
    for (const named of [{ session_id }, { connection_id: 'obs' }, { session_id: randomUUID() }])
      expect(outcome(await stranger.stop(named))).toEqual([404, 'not_found'])
    expect(await sessionsOf(owner)).toEqual(['provisioning run'])
  })

  test.each([
    {},
    { session_id: 'x' },
    { session_id: null },
    { connection_id: '' },
    { connection_id: 'a', immediate: 'yes' },
    { session_id: randomUUID(), immediate: null },
  ])('of %j is a bad request', async (body) => {
    const user = await still.user()
    expect(outcome(await user.stop(body))).toEqual([400, 'invalid_request'])
  })

  test('takes its session’s id in capitals', async () => {
    const user = await service.user()
    const session_id = idOf(await user.start())
    const { status, body } = await user.stop({ session_id: session_id.toUpperCase(), immediate: true })
    expect([status, body.session.session_id, body.session.state]).toEqual([200, session_id, 'stopped'])
  })

  test('is taken twenty times a minute', async () => {
    const user = await still.user()
    const statuses = []
    for (let round = 0; round < 21; round += 1) statuses.push((await user.stop({ session_id: randomUUID() })).status)
    expect(statuses).toEqual([...Array(20).fill(404), 429])
  })
})
