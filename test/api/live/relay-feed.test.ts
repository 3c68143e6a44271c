/** What the clients of `GET /relay/ws` receive. */
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { connectPostgres, type Database } from '../../../db/connection.ts'
import { startOwnPostgres } from '../../support/own-postgres.ts'
import { writeActive, writeAge, writeProvisionFailed, writeStopGrace, writeStopped } from '../../support/relay-rows.ts'
import { connectSocket } from '../../support/relay-sockets.ts'
import { eventually, passageTo, type RelayUser, startService, type TestService } from '../../support/relays.ts'

/**
 * Two api processes with one database, without a worker, so that sessions keep their states. Neither reads
 * periodically.
 */
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

async function startedSession(user?: RelayUser, connection_id = 'default') {
  const owner = user ?? (await service.user())
  const { session } = (await owner.start({ connection_id })).body
  return { user: owner, session, id: session.session_id, token: session.relay_ws_token }
}

/** Makes the transition without a session change, as if that had been lost. */
const writeActiveSilently = (at: Database, sessionId: string) =>
  at.begin(async (tx) => {
    await tx`set local session_replication_role = replica`
    await writeActive(tx, sessionId)
  })

test('the holder of a session token gets the dock view when it connects, at each change, and the stopped state at last', async () => {
  const { id, token } = await startedSession()
  const client = await connectSocket(service.api.url, { token })
  expect(client.socket.protocol).toBe('svc.relay.v1')
  const first = await client.message(() => true)
  expect(first).toMatchObject({ type: 'session', session: { session_id: id, state: 'provisioning' } })
  await writeActive(sql, id)
  const { session } = await client.message((message) => message.session.state === 'active')
  expect(session).toMatchObject({ relay_host_masked: '198.51.x.x' })
  for (const field of ['relay_host', 'pair_token', 'relay_ws_token', 'connect', 'instance_id'])
    expect(session).not.toHaveProperty(field)
  await sql`update relay_sessions set state = 'grace', reason = 'health_lost', grace_ends_at = now() where id = ${id}`
  await writeStopped(sql, id)
  expect(await client.closed).toEqual({ code: 1000, reason: 'the relay session has stopped' })
  expect(client.states()).toEqual(expect.arrayContaining(['provisioning', 'active', 'stopped']))
  expect(client.states().at(-1)).toBe('stopped')
})

test('a change that is made through one process reaches the clients of another', async () => {
  const { user, id, token } = await startedSession()
  const clients = await Promise.all([
    connectSocket(other.api.url, { token }),
    connectSocket(other.api.url, { bearer: user.bearer }),
  ])
  await writeActive(sql, id)
  for (const client of clients) await client.message(({ session }) => session.state === 'active')
  const extended = new Date(Date.now() + 60_000).toISOString()
  await sql`
    update relay_sessions set state = 'grace', reason = 'health_lost', grace_ends_at = now() + interval '2 s' where id = ${id}`
  await sql`update relay_sessions set grace_ends_at = ${extended} where id = ${id}`
  for (const client of clients) await client.message(({ session }) => session.grace_ends_at === extended)
})

test('a user gets all live sessions, those that start later, and their last states, and no session of another user', async () => {
  const { user, id } = await startedSession()
  const second = await startedSession(user, 'second')
  const client = await connectSocket(service.api.url, { bearer: user.bearer })
  await eventually(
    () => client.messages.length,
    (count) => count === 2,
  )
  expect(client.messages.map(({ session }) => session.session_id)).toEqual([id, second.id])
  const third = await startedSession(user, 'third')
  await startedSession()
  await client.message(({ session }) => session.session_id === third.id)
  await writeStopped(sql, second.id)
  await client.message(({ session }) => session.session_id === second.id && session.state === 'stopped')
  expect(client.socket.readyState).toBe(client.socket.OPEN)
  expect(new Set(client.messages.map(({ session }) => session.session_id))).toEqual(new Set([id, second.id, third.id]))
})

test('a client of one session gets no message of another session of the account', async () => {
  const { user, id, token } = await startedSession()
  const second = await startedSession(user, 'second')
  const client = await connectSocket(service.api.url, { token })
  await client.message(() => true)
  await writeActive(sql, second.id)
  await writeActive(sql, id)
  await client.message(({ session }) => session.state === 'active')
  expect(new Set(client.messages.map(({ session }) => session.session_id))).toEqual(new Set([id]))
})

test('the changes of one transaction arrive as one message', async () => {
  const { id, token } = await startedSession()
  const client = await connectSocket(service.api.url, { token })
  await client.message(() => true)
  await sql.begin(async (tx) => {
    await writeStopGrace(tx, id)
    await tx`update relay_sessions set grace_ends_at = now() + interval '3 minutes' where id = ${id}`
  })
  await client.message(({ session }) => session.state === 'grace')
  expect(client.states()).toEqual(['provisioning', 'grace'])
})

test('a change that clients do not see sends nothing', async () => {
  const { id, token } = await startedSession()
  const client = await connectSocket(service.api.url, { token })
  await client.message(() => true)
  await sql`update relay_sessions set command_delivered_seq = command_seq, deliver_at = now() where id = ${id}`
  await writeActive(sql, id)
  await client.message(({ session }) => session.state === 'active')
  expect(client.messages).toHaveLength(2)
})

test('after its connection for session changes was lost, every client gets the present state again', async () => {
  const { user, id, token } = await startedSession()
  const clients = await Promise.all([
    connectSocket(service.api.url, { token }),
    connectSocket(other.api.url, { bearer: user.bearer }),
  ])
  for (const client of clients) await client.message(() => true)
  await writeActiveSilently(sql, id)
  await sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and query ilike 'listen%'`
  for (const client of clients) await client.message(({ session }) => session.state === 'active')
})

test('what changes without a session change is sent at the next periodic read', async () => {
  const often = await startService({ worker: false })
  const user = await often.user()
  const { session } = (await user.start()).body
  const client = await connectSocket(often.api.url, { bearer: user.bearer })
  await client.message(() => true)
  await writeActiveSilently(often.api.sql, session.session_id)
  await client.message((message) => message.session.state === 'active')
  expect(client.messages).toHaveLength(2)
})

test('a session that is about to reach its longest duration is sent again at the next periodic read', async () => {
  const often = await startService({ worker: false, variables: { SVC_RELAY_MAX_SESSION_SECONDS: '3600' } })
  const user = await often.user()
  const { session } = (await user.start()).body
  const client = await connectSocket(often.api.url, { bearer: user.bearer })
  const first = await client.message(() => true)
  expect(first.session.ending_soon).toBe(false)
  // Without a session change, as when time passes. The session ends at 5400 s.
  await writeAge(often.api.sql, session.session_id, 5390)
  const { session: warned } = await client.message((message) => message.session.ending_soon === true)
  const { created_at, ends_at, idle_ends_at } = (await user.active()).session ?? {}
  const { signal } = warned
  expect(warned).toEqual({ ...first.session, ending_soon: true, created_at, ends_at, idle_ends_at, signal })
  expect((await user.active()).session).toMatchObject({ ending_soon: true })
})

test('the last message of a session that could not be created has the reason', async () => {
  const { id, token } = await startedSession()
  const client = await connectSocket(service.api.url, { token })
  await writeProvisionFailed(sql, id, 'capacity')
  const { session } = await client.message((message) => message.session.state === 'stopped')
  expect(session).toMatchObject({ reason: 'provision_failed', detail: 'capacity' })
})

const reportStream = (at: TestService, session_id: string, stats: object) =>
  at.api.post(
    '/relay/health',
    { session_id, instance_id: 'i-1', stats: { bitrate_kbps: 0, links: 1, players: 0, bytes_total: 0, ...stats } },
    { headers: { 'X-Relay-Auth': relaySecret } },
  )

test('the begin and the end of a stream are sent at once, and its bitrate at the next periodic read', async () => {
  const { id, token } = await startedSession()
  await writeActive(sql, id)
  const client = await connectSocket(other.api.url, { token })
  await client.message(() => true)
  for (const bitrate_kbps of [5000, 6000, 7000]) await reportStream(service, id, { publishing: true, bitrate_kbps })
  await client.message(({ session }) => session.ingest?.publishing === true)
  await reportStream(service, id, { publishing: false })
  await client.message(({ session }) => session.ingest?.publishing === false)
  expect(client.messages.length).toBeLessThanOrEqual(3)

  const often = await startService({ worker: false, variables: { SVC_RELAY_AUTH_SECRET: relaySecret } })
  const user = await often.user()
  const { session } = (await user.start()).body
  await writeActive(often.api.sql, session.session_id)
  const watching = await connectSocket(often.api.url, { bearer: user.bearer })
  for (const bitrate_kbps of [5000, 6000]) {
    await reportStream(often, session.session_id, { publishing: true, bitrate_kbps })
    await watching.message((message) => message.session.ingest?.bitrate_kbps === bitrate_kbps)
  }
})

test('a process that started while Postgres was unavailable gets session changes once it is available', async () => {
  const passage = await passageTo(config.database.url)
  await passage.block()
  const starting = startService({ worker: false, variables: { ...slow, DATABASE_URL: passage.url } })
  let refused = 0
  const refusing = createServer((socket) => {
    refused += 1
    socket.destroy()
  }).listen(Number(new URL(passage.url).port), '127.0.0.1')
  await eventually(
    () => refused,
    (count) => count > 0,
  )
  await new Promise((resolve) => refusing.close(resolve))
  await passage.open()
  const late = await starting
  const user = await late.user()
  const client = await connectSocket(late.api.url, { bearer: user.bearer })
  await user.start()
  await client.message(({ session }) => session.state === 'provisioning')
})

test('after a restart of Postgres every client gets the present state, and later changes', async () => {
  const postgres = await startOwnPostgres()
  const restarted = await startService({ worker: false, variables: { ...slow, DATABASE_URL: postgres.url } })
  const user = await restarted.user()
  const { session } = (await user.start()).body
  const { session_id: id, relay_ws_token: token } = session
  const { url } = restarted.api
  const clients = await Promise.all([connectSocket(url, { token }), connectSocket(url, { bearer: user.bearer })])
  for (const client of clients) await client.message(() => true)
  const direct = connectPostgres(postgres.url, 1)
  await writeActiveSilently(direct, id)
  await postgres.restart()
  for (const client of clients) await client.message((message) => message.session.state === 'active')
  await direct`
    update relay_sessions set state = 'grace', reason = 'health_lost', grace_ends_at = now() + interval '1 minute'
    where id = ${id}`
  await direct.end({ timeout: 5 })
  for (const client of clients) await client.message((message) => message.session.state === 'grace')
})

test('the deletion of an account closes the sockets of its sessions', async () => {
  const { user, token } = await startedSession()
  const client = await connectSocket(service.api.url, { token })
  await client.message(() => true)
  await sql`delete from users where id = ${user.userId}`
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'listen%' and datname = current_database()`
  expect((await client.closed).code).toBe(1000)
})

test('a burst of changes is coalesced, and every client gets the last one', async () => {
  const { user, id, token } = await startedSession()
  await writeStopGrace(sql, id)
  const clients = await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      connectSocket(service.api.url, index % 2 === 0 ? { token } : { bearer: user.bearer }),
    ),
  )
  const times = Array.from({ length: 100 }, (_, index) => new Date(Date.now() + (index + 1) * 60_000).toISOString())
  for (const time of times) await sql`update relay_sessions set grace_ends_at = ${time} where id = ${id}`
  for (const client of clients) {
    await client.message(({ session }) => session.grace_ends_at === times.at(-1))
    expect(client.messages.length).toBeLessThan(50)
    expect(client.messages.at(-1)?.session.grace_ends_at).toBe(times.at(-1))
  }
})
