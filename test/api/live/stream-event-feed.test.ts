/** The stream events that the clients of `GET /relay/ws?events=1` receive. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { connectPostgres } from '../../../db/connection.ts'
import { writeActive, writeStopped } from '../../support/relay-rows.ts'
import { connectSocket, refusalOf, type SocketClient } from '../../support/relay-sockets.ts'
import { eventually, startService } from '../../support/relays.ts'

/** Two api processes with one database and without a worker. Neither reads periodically. */
const relaySecret = randomBytes(48).toString('base64')
const slow = {
  SVC_RELAY_AUTH_SECRET: relaySecret,
  SVC_RELAY_HEALTH_INTERVAL_SECONDS: '300',
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '900',
}
const service = await startService({ worker: false, variables: slow })
const { config } = service.api.services
const other = await startService({
  worker: false,
  variables: {
    ...slow,
    DATABASE_URL: config.database.url,
    SVC_JWT_SECRET: config.jwt.secret,
    OAUTH_ENCRYPTION_KEY: config.oauthEncryptionKeys.map(({ id, key }) => `${id}:${key}`).join(','),
    SVC_API_URL: config.apiUrl,
  },
})
const { sql } = service.api
const query = '?events=1'

async function startedSession() {
  const user = await service.user()
  const { session } = (await user.start()).body
  await writeActive(sql, session.session_id)
  return { user, id: session.session_id, token: session.relay_ws_token ?? '' }
}

const kindAt = (seq: number) => (seq === 1 ? 'stream_started' : seq % 2 === 0 ? 'stream_lost' : 'stream_recovered')

/** Sends a report with the events up to a number. */
const report = (session_id: string, seq: number) =>
  service.api.post(
    '/relay/health',
    {
      session_id,
      instance_id: 'i-1',
      events: Array.from({ length: seq }, (_, index) => ({
        seq: index + 1,
        kind: kindAt(index + 1),
        age_ms: 0,
        bitrate_kbps: 4_000 + index,
      })),
      stats: { started_at_ms: 1 },
    },
    { headers: { 'X-Relay-Auth': relaySecret } },
  )

interface EventMessage {
  readonly type: string
  readonly session_id: string
  readonly kind: string
  readonly bitrate_kbps: number
  readonly is_current?: boolean
}

const eventsOf = ({ messages }: SocketClient) =>
  (messages as unknown as readonly EventMessage[]).filter(({ type }) => type === 'stream_event')

const untilEvents = (client: SocketClient, count: number) =>
  eventually(
    () => eventsOf(client),
    ({ length }) => length >= count,
  )

const untilFirst = (client: SocketClient) => client.message(({ type }) => type === 'session')

test('an event is sent at once to the clients of every process that want events', async () => {
  const { user, id, token } = await startedSession()
  const clients = await Promise.all(
    [{ token }, { bearer: user.bearer }].map((offer) => connectSocket(other.api.url, { ...offer, query })),
  )
  for (const client of clients) await untilFirst(client)
  const before = performance.now()
  await report(id, 1)
  for (const client of clients) {
    const [event] = await untilEvents(client, 1)
    expect(event).toEqual({
      type: 'stream_event',
      session_id: id,
      kind: 'stream_started',
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      bitrate_kbps: 4_000,
    })
  }
  expect(performance.now() - before).toBeLessThan(1_000)
})

test('a client that does not want events gets the same messages as before, with or without an empty query', async () => {
  const { id, token } = await startedSession()
  const clients = await Promise.all(
    ['', '?'].map((without) => connectSocket(service.api.url, { token, query: without })),
  )
  const witness = await connectSocket(service.api.url, { token, query })
  for (const client of [...clients, witness]) await untilFirst(client)
  await report(id, 1)
  await untilEvents(witness, 1)
  await sql`
    update relay_sessions set state = 'grace', reason = 'stop_requested', grace_ends_at = now() + interval '1 hour' where id = ${id}`
  for (const client of clients) {
    await client.message(({ session }) => session.state === 'grace')
    expect(client.messages.map(({ type }) => type)).toEqual(['session', 'session'])
    expect(Object.keys(client.messages[0] ?? {})).toEqual(['type', 'session'])
  }
})

test.each(['?events=', '?events=0', '?events=true', '?events=2', '?events=1&events=1'])(
  'the query %s is refused with 400',
  async (wrong) => {
    const { token } = await startedSession()
    expect(await refusalOf(connectSocket(service.api.url, { token, query: wrong }))).toEqual([400, 'invalid_request'])
  },
)

describe('a client that connects', () => {
  test('gets the last event of each live session right after its session, marked as the present state', async () => {
    const { user, id } = await startedSession()
    const { session } = (await user.start({ connection_id: 'second' })).body
    await report(id, 4)
    const client = await connectSocket(service.api.url, { bearer: user.bearer, query })
    await client.message((message) => message.session?.session_id === session.session_id)
    await untilEvents(client, 1)
    const seen = (client.messages as unknown as readonly EventMessage[]).map(({ type }) => type)
    expect(seen).toEqual(['session', 'stream_event', 'session'])
    expect(eventsOf(client)).toMatchObject([{ session_id: id, kind: 'stream_lost', is_current: true }])
    await report(id, 5)
    const [, next] = await untilEvents(client, 2)
    expect(next).toMatchObject({ kind: 'stream_recovered' })
    expect(next).not.toHaveProperty('is_current')
  })

  test('gets no event of a session without one, and its first event later', async () => {
    const { id, token } = await startedSession()
    const client = await connectSocket(service.api.url, { token, query })
    await untilFirst(client)
    await report(id, 1)
    expect(await untilEvents(client, 1)).toMatchObject([{ kind: 'stream_started' }])
    expect(eventsOf(client)[0]).not.toHaveProperty('is_current')
  })
})

test('many events reach clients that connect at different times each once and in order', async () => {
  const { user, id, token } = await startedSession()
  const clients: SocketClient[] = []
  const total = 60
  for (let seq = 1; seq <= total; seq += 1) {
    if (seq % 12 === 1)
      clients.push(
        await connectSocket(other.api.url, seq % 24 === 1 ? { token, query } : { bearer: user.bearer, query }),
      )
    await report(id, seq)
  }
  for (const client of clients) {
    await eventually(
      () => eventsOf(client).at(-1)?.bitrate_kbps,
      (kbps) => kbps === 4_000 + total - 1,
    )
    const places = eventsOf(client).map(({ bitrate_kbps: kbps }) => kbps)
    expect(places).toEqual(Array.from({ length: places.length }, (_, index) => (places[0] ?? 0) + index))
    expect(
      eventsOf(client)
        .slice(1)
        .some(({ is_current }) => is_current),
    ).toBe(false)
  }
  expect(eventsOf(clients[0] as SocketClient)).toHaveLength(total)
})

test('events during an outage of the notifications are sent after it', async () => {
  const { id, token } = await startedSession()
  const client = await connectSocket(service.api.url, { token, query })
  await untilFirst(client)
  await report(id, 1)
  await untilEvents(client, 1)
  const silent = connectPostgres(config.database.url, 1)
  await silent.begin(async (tx) => {
    await tx`set local session_replication_role = replica`
    for (const [number, kind] of [
      [2, 'stream_weak'],
      [3, 'stream_recovered'],
    ] as const)
      await tx`
        insert into stream_events (session_id, number, kind, at, bitrate_kbps) values (${id}, ${number}, ${kind}, now(), 1)`
  })
  await silent.end({ timeout: 5 })
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'listen%' and datname = current_database()`
  const events = await untilEvents(client, 3)
  expect(events.map(({ kind }) => kind)).toEqual(['stream_started', 'stream_weak', 'stream_recovered'])
})

test('the end of a stream with its session is sent before the last message of the session', async () => {
  const { id, token } = await startedSession()
  const client = await connectSocket(service.api.url, { token, query })
  await untilFirst(client)
  await report(id, 1)
  await untilEvents(client, 1)
  await sql`update relay_sessions set state = 'grace', reason = 'stop_requested', grace_ends_at = now() where id = ${id}`
  await sql.begin(async (tx) => {
    await writeStopped(tx, id)
    await tx`
      insert into stream_events (session_id, number, kind, at, bitrate_kbps) values (${id}, 2, 'stream_ended', now(), 0)`
  })
  expect((await client.closed).code).toBe(1000)
  const kinds = (client.messages as unknown as readonly EventMessage[]).map(({ type, kind }) => kind ?? type)
  expect(kinds.at(-1)).toBe('session')
  expect(kinds.filter((kind) => kind !== 'session')).toEqual(['stream_started', 'stream_ended'])
})
