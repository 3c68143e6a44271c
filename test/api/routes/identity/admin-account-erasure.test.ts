/** Erasure of an account by an operator, carried out by a worker. */
import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { type GivenUser, statusAndCode, type TokenSet } from '../../../support/api.ts'
import { requestErasure, untilErased } from '../../../support/erasures.ts'
import { type FakeRelayService, startFakeRelayService } from '../../../support/fake-relays.ts'
import { runJob } from '../../../support/jobs.ts'
import { newCustomer } from '../../../support/sandbox-customers.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService()
})

const erase = (user: Pick<GivenUser, 'userId' | 'email'>, parts: object = {}) =>
  requestErasure(service.api, user, parts)
const requestsOf = ({ userId }: GivenUser) => service.api.sql`
  select initiator, user_id, detail from audit_entries
  where action = 'account_erasure_requested' and detail ->> 'account_id' = ${userId}`

test('an account is erased by the next run of the job, and the request and the erasure stay in the audit', async () => {
  const user = await service.api.given.user()
  const requested = await erase(user)
  expect([requested.status, requested.body]).toEqual([202, { state: 'scheduled' }])
  await runJob(service.api.sql, 'delete_accounts')
  const erased = await erase(user)
  expect([erased.status, erased.body]).toEqual([200, { state: 'erased' }])
  expect(await service.api.sql`select from users where id = ${user.userId}`).toHaveLength(0)
  expect(await requestsOf(user)).toEqual([
    { initiator: 'operator', userId: null, detail: { account_id: user.userId, reason: 'ticket 4711' } },
  ])
})

test('an erasure ends the relay and cancels the subscription at the provider first', async () => {
  const customer = await newCustomer(service.api)
  const plan = await customer.buy({ plan: 'paid' })
  const start = { bearer: customer.bearer, headers: { 'Idempotency-Key': randomUUID() } }
  const { status, body } = await service.api.post<{ session: { session_id: string } }>('/relay/start', {}, start)
  expect(status).toBe(201)
  expect((await erase(customer)).status).toBe(202)
  expect((await untilErased(service.api, customer)).status).toBe(200)
  const { sql } = service.api
  expect(await sql`select from relay_sessions where id = ${body.session.session_id}`).toHaveLength(0)
  const events = await sql`
    select user_id, body, event ->> 'action' is not null or event is not null as is_normalised from billing_events
    where subscription_id = ${plan}`
  expect(events.length).toBeGreaterThan(0)
  for (const event of events) expect(event).toEqual({ userId: null, body: null, isNormalised: true })
})

test('the owner is signed out at once, and can neither sign in nor take the erasure back', async () => {
  const user = await service.api.given.user()
  // An open relay session without a workflow keeps the account, so that the job cannot erase it.
  await service.api.sql`
    insert into instances (instance_id, session_id, region) values (${`i-${user.userId}`}, ${user.userId}, 'local')`
  await service.api.sql`
    insert into relay_sessions (id, user_id, connection_id, region, command_initiator, command, command_delivered_seq)
    values (${user.userId}, ${user.userId}, 'default', 'local', 'user', 'disconnect', 9)`
  expect((await erase(user)).status).toBe(202)
  const { bearer, email, password } = user
  expect((await service.api.post('/auth/account/restore', undefined, { bearer })).status).toBe(401)
  expect(statusAndCode(await service.api.post<TokenSet>('/auth/login', { email, password }))).toEqual([
    403,
    'account_disabled',
  ])
  expect((await erase(user)).status).toBe(202)
  expect(await requestsOf(user)).toHaveLength(1)
})

test('an erasure overrides the grace period of the owner’s own deletion', async () => {
  const user = await service.api.given.user()
  const { bearer, password } = user
  expect((await service.api.post('/auth/account/delete', { password }, { bearer })).status).toBe(200)
  expect((await erase(user)).status).toBe(202)
  expect((await untilErased(service.api, user)).status).toBe(200)
})

test('the address confirms the account, without regard to case; null confirms one without an address', async () => {
  const [user, other] = [await service.api.given.user(), await service.api.given.user()]
  for (const email of [other.email, null, undefined, 'not an address'])
    expect(statusAndCode(await erase(user, { email }))).toEqual([400, 'invalid_request'])
  expect(statusAndCode(await erase(user, { reason: undefined }))).toEqual([400, 'invalid_request'])
  expect(await service.api.sql`select from users where id = ${user.userId} and deletion_due_at is null`).toHaveLength(1)
  expect((await erase(user, { email: user.email.toUpperCase() })).status).toBe(202)
  await service.api.sql`update users set email = null where id = ${other.userId}`
  expect(statusAndCode(await erase(other))).toEqual([400, 'invalid_request'])
  expect((await erase(other, { email: null })).status).toBe(202)
})

test('an account that never existed is not found', async () => {
  const userId = randomUUID()
  expect(statusAndCode(await erase({ userId, email: 'a@example.com' }))).toEqual([404, 'not_found'])
})
