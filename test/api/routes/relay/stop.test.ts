/** The stop of a relay, by session or by connection. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { statusAndCode } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { type FakeRelayService, startFakeRelayService } from '../../../support/fake-relays.ts'
import { waitForBlockedQuery } from '../../../support/locks.ts'
import { listStatesAndCommands, writeProvisionFailed } from '../../../support/relay-rows.ts'
import { eventually, startService, type TestService } from '../../../support/relays.ts'

/** With a worker. */
let service: FakeRelayService
/** Without a worker, so that sessions keep the state in which they were accepted. */
let serviceWithoutWorker: TestService
beforeAll(async () => {
  const variables = { SVC_RATE_LIMITS: highLimits({ relay_stop: 20 }) }
  serviceWithoutWorker = await startService({ worker: false, variables })
  service = await startFakeRelayService()
})

describe('a stop', () => {
  test.each(['session_id', 'connection_id'])(
    'by %s ends the session, and repeated returns it unchanged',
    async (by) => {
      const user = await service.user()
      const { session } = (await user.start({ connection_id: 'obs' })).body
      const address = by === 'session_id' ? { session_id: session.session_id } : { connection_id: 'obs' }
      // The API answers with the state before the stop when the workflow takes long.
      const first = await eventually(
        () => user.stop(address),
        ({ body }) => body.session.state === 'stopped',
      )
      expect(first.status).toBe(200)
      for (const immediate of [false, true, false]) {
        const repeated = await user.stop({ ...address, immediate })
        expect([repeated.status, repeated.body]).toEqual([200, first.body])
      }
      for (const secret of ['pair_token', 'relay_ws_token', 'connect', 'relay_host'])
        expect(first.body.session).not.toHaveProperty(secret)
    },
  )

  test('requested twenty times concurrently makes the transitions of one stop', async () => {
    const user = await service.user()
    const session = await service.startActiveRelay(user)
    const responses = await Promise.all(Array.from({ length: 20 }, () => user.stop({ session_id: session.session_id })))
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
    await eventually(
      async () => (await user.active()).sessions.length,
      (count) => count === 0,
    )
    expect((await service.history(session.session_id)).transitions).toHaveLength(3)
  })

  test('by connection_id stops the session that began while the one before it ended', async () => {
    const { sql } = serviceWithoutWorker.api
    const user = await serviceWithoutWorker.user()
    const ending = (await user.start({ connection_id: 'obs' })).body.session.session_id
    const stopped = await sql.begin(async (tx) => {
      await writeProvisionFailed(tx, ending, null)
      const response = user.stop({ connection_id: 'obs' })
      await waitForBlockedQuery(sql, tx)
      await tx`
        insert into relay_sessions (user_id, connection_id, region, command_initiator)
        select user_id, connection_id, region, command_initiator from relay_sessions where id = ${ending}`
      // In an object, so that the transaction does not wait for it.
      return { response }
    })
    expect((await stopped.response).status).toBe(200)
    expect(await listStatesAndCommands(sql, user.userId)).toEqual(['stopped run', 'provisioning stop'])
  })

  test('of an unknown session or of another user’s session is refused', async () => {
    const [owner, otherUser] = [await serviceWithoutWorker.user(), await serviceWithoutWorker.user()]
    const { session_id } = (await owner.start({ connection_id: 'obs' })).body.session
    for (const address of [{ session_id }, { connection_id: 'obs' }, { session_id: randomUUID() }])
      expect(statusAndCode(await otherUser.stop(address))).toEqual([404, 'not_found'])
    expect(await listStatesAndCommands(serviceWithoutWorker.api.sql, owner.userId)).toEqual(['provisioning run'])
  })

  test.each([
    {},
    { session_id: 'x' },
    { session_id: null },
    { connection_id: '' },
    { connection_id: 'a', immediate: 'yes' },
    { session_id: randomUUID(), immediate: null },
  ])('refuses the request body %j', async (body) => {
    const user = await serviceWithoutWorker.user()
    expect(statusAndCode(await user.stop(body))).toEqual([400, 'invalid_request'])
  })

  test('accepts a session_id in upper case', async () => {
    const user = await service.user()
    const { session_id } = (await user.start()).body.session
    const { status, body } = await user.stop({ session_id: session_id.toUpperCase(), immediate: true })
    expect([status, body.session.session_id]).toEqual([200, session_id])
    expect(await listStatesAndCommands(service.api.sql, user.userId)).toEqual([expect.stringMatching(/ stop_now$/)])
  })

  test('is limited to twenty requests a minute', async () => {
    const user = await serviceWithoutWorker.user()
    const statuses: number[] = []
    for (let index = 0; index < 21; index += 1) statuses.push((await user.stop({ session_id: randomUUID() })).status)
    expect(statuses).toEqual([...Array(20).fill(404), 429])
  })
})
