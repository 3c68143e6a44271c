/** Starts of a user who has sessions that are stopping or disconnected. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../../../api/views/relay-session.ts'
import { type Answer, statusAndCode } from '../../../support/api.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import {
  listStatesAndCommands,
  writeActive,
  writeCommand,
  writeStopGrace,
  writeStopped,
} from '../../../support/relay-rows.ts'
import { eventually, type RelayUser, startService, type TestService } from '../../../support/relays.ts'
import { longRelayTimeouts } from '../../../support/subscribers.ts'

/** Without a worker, so that sessions keep the state in which they were accepted. */
let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})

const idOf = ({ body }: Answer<{ session: SessionView }>) => body.session.session_id
const statesAndCommands = ({ userId }: RelayUser) => listStatesAndCommands(service.api.sql, userId)

async function startInStopGrace(user: RelayUser, connectionIds: readonly string[]): Promise<void> {
  for (const connection_id of connectionIds)
    await writeStopGrace(service.api.sql, idOf(await user.start({ connection_id })))
}

describe('a start that would exceed the limit of concurrent relays', () => {
  test('ends a session in its stop grace at once', async () => {
    const serviceWithWorker = await startFakeRelayService({
      variables: { ...longRelayTimeouts, SVC_RELAY_STOP_GRACE_SECONDS: '600' },
    })
    const user = await serviceWithWorker.user({ addons: 0 })
    const session = await serviceWithWorker.startActiveRelay(user)
    expect((await user.stop({ session_id: session.session_id })).body.session.state).toBe('grace')
    const next = await user.start({ connection_id: 'next' })
    expect(next.status).toBe(201)
    const active = await eventually(
      () => user.active(),
      ({ sessions }) => sessions.length === 1,
    )
    expect(active.session?.session_id).toBe(idOf(next))
    expect((await serviceWithWorker.history(session.session_id)).transitions.at(-1)).toMatchObject({
      from: 'grace',
      to: 'stopped',
      reason: 'stop_requested',
    })
  })

  test('ends only the oldest session in its stop grace', async () => {
    const user = await service.user({ addons: 1 })
    await startInStopGrace(user, ['a', 'b'])
    expect((await user.start({ connection_id: 'c' })).status).toBe(201)
    expect(await statesAndCommands(user)).toEqual(['grace stop_now', 'grace stop', 'provisioning run'])
    expect((await user.start({ connection_id: 'd' })).status).toBe(201)
    expect(await statesAndCommands(user)).toEqual([
      'grace stop_now',
      'grace stop_now',
      'provisioning run',
      'provisioning run',
    ])
    expect(statusAndCode(await user.start({ connection_id: 'e' }))).toEqual([403, 'relay_limit_reached'])
  })

  test('ends several sessions in their stop grace after the plan has lost add-ons', async () => {
    const user = await service.user({ addons: 3 })
    await startInStopGrace(user, ['a', 'b', 'c', 'd'])
    await service.api.sql`update users set addons = 1 where id = ${user.userId}`
    expect((await user.start({ connection_id: 'next' })).status).toBe(201)
    expect(await statesAndCommands(user)).toEqual([
      'grace stop_now',
      'grace stop_now',
      'grace stop_now',
      'grace stop',
      'provisioning run',
    ])
  })

  test('leaves no capacity to resume the session that it ended', async () => {
    const user = await service.user({ addons: 0 })
    const sessionId = idOf(await user.start({ connection_id: 'first' }))
    await writeActive(service.api.sql, sessionId)
    await writeCommand(service.api.sql, sessionId, 'stop')
    expect((await user.start({ connection_id: 'second' })).status).toBe(201)
    expect(statusAndCode(await user.start({ connection_id: 'first' }))).toEqual([403, 'relay_limit_reached'])
    expect(await statesAndCommands(user)).toEqual(['active stop_now', 'provisioning run'])
  })

  test('does not end a session that was resumed from its stop grace', async () => {
    const user = await service.user({ addons: 0 })
    await startInStopGrace(user, ['first'])
    expect((await user.start({ connection_id: 'first' })).status).toBe(200)
    expect(statusAndCode(await user.start({ connection_id: 'second' }))).toEqual([403, 'relay_limit_reached'])
    expect(await statesAndCommands(user)).toEqual(['grace run'])
  })
})

test('a start that waited for the stop of the connection is of a session that begins after it', async () => {
  const { sql } = service.api
  const user = await service.user()
  const sessionId = idOf(await user.start())
  const isWaiting = async () =>
    (
      await sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%for no key update%'`
    ).length > 0
  const connection = await sql.reserve()
  await connection`begin`
  await connection`select from users where id = ${user.userId} for no key update`
  const started = user.start()
  await eventually(isWaiting, Boolean)
  await writeStopped(sql, sessionId)
  await connection`commit`
  connection.release()
  const next = idOf(await started)
  const [row] = await sql`
    select next.id <> before.id as is_new, next.created_at >= before.stopped_at as is_after
    from relay_sessions next, relay_sessions before where next.id = ${next} and before.id = ${sessionId}`
  expect(row).toEqual({ isNew: true, isAfter: true })
})

test('a session that is stopping is resumed only if the plan includes relays', async () => {
  const user = await service.user({ addons: 0 })
  const sessionId = idOf(await user.start())
  await writeActive(service.api.sql, sessionId)
  await writeCommand(service.api.sql, sessionId, 'stop')
  await service.api.sql`update users set plan_tier = 'free' where id = ${user.userId}`
  expect(statusAndCode(await user.start())).toEqual([403, 'relay_access_denied'])
  expect(await statesAndCommands(user)).toEqual(['active stop'])
})

describe('a disconnected session', () => {
  const startDisconnected = async () => {
    const user = await service.user({ addons: 0 })
    const sessionId = idOf(await user.start())
    await writeActive(service.api.sql, sessionId)
    await writeCommand(service.api.sql, sessionId, 'disconnect')
    return { user, sessionId }
  }

  test('is not returned by a start that the plan does not allow', async () => {
    const { user } = await startDisconnected()
    await service.api.sql`update users set plan_tier = 'free' where id = ${user.userId}`
    expect(statusAndCode(await user.start())).toEqual([403, 'relay_access_denied'])
    expect(await statesAndCommands(user)).toEqual(['active disconnect'])
  })

  test('is followed by a new session, which is the session of the connection from then on', async () => {
    const { user, sessionId } = await startDisconnected()
    const next = await user.start()
    expect(next.status).toBe(201)
    expect(idOf(next)).not.toBe(sessionId)
    expect(await statesAndCommands(user)).toEqual(['active disconnect', 'provisioning run'])
    expect((await user.active('default')).session?.session_id).toBe(idOf(next))
    expect((await user.active()).session?.session_id).toBe(idOf(next))
    const repeated = await user.start()
    expect([repeated.status, idOf(repeated)]).toEqual([200, idOf(next)])
  })

  test('is followed by one new session after concurrent starts', async () => {
    const { user } = await startDisconnected()
    const responses = await Promise.all(Array.from({ length: 5 }, () => user.start()))
    expect(new Set(responses.map(idOf)).size).toBe(1)
    expect(await statesAndCommands(user)).toHaveLength(2)
  })
})
