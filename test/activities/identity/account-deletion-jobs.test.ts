/** The job that erases accounts whose deletion is due, and what stands in its way. */
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { accountDeletionJobs } from '../../../activities/identity/account-deletion-jobs.ts'
import type { Lifecycle } from '../../../platform/lifecycle.ts'
import { createLog } from '../../../platform/log.ts'
import { BillingProviderError } from '../../../providers/billing/provider.ts'
import { type GivenUser, statusAndCode } from '../../support/api.ts'
import { billingEvent, sandboxSender } from '../../support/billing.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { runJob } from '../../support/jobs.ts'
import { waitForBlockedQuery } from '../../support/locks.ts'
import { writeStopped } from '../../support/relay-rows.ts'
import { eventually } from '../../support/relays.ts'
import { createCustomer, newCustomer } from '../../support/sandbox-customers.ts'

// The tests run the job themselves, except where they let a worker run it.
const { api, ...service } = await startFakeRelayService({ worker: false })
const { sql } = api
const { billing } = api.services
const logged: string[] = []
const log = createLog('worker', 'debug', { write: (line) => void logged.push(line) })

/** Runs the job once, as a newly started worker does. */
const round = async (signal?: AbortSignal): Promise<void> => {
  const [job] = accountDeletionJobs({ sql, log, billing })
  await job?.run(signal)
}

const remove = async ({ bearer, password }: GivenUser) =>
  expect((await api.post('/auth/account/delete', { password }, { bearer })).status).toBe(200)
/** Lets the time pass until the deletion, or the next attempt, is due. */
const pass = (userId: string) => sql`
  update users set deletion_due_at = now() - interval '1 second', deletion_attempt_at = now() - interval '1 second'
  where id = ${userId} and deletion_due_at is not null`
const exists = async (userId: string) => (await sql`select from users where id = ${userId}`).length === 1

describe('an account whose deletion is due', () => {
  test('is erased with its rows, and operators see that in the audit', async () => {
    const user = await api.given.user()
    await remove(user)
    await round()
    expect(await exists(user.userId)).toBe(true)
    await pass(user.userId)
    await round()
    expect(await exists(user.userId)).toBe(false)
    for (const table of ['auth_sessions', 'audit_entries', 'mail_tokens', 'relay_sessions'])
      expect(await sql`select from ${sql(table)} where user_id = ${user.userId}`).toHaveLength(0)
    expect((await api.get('/auth/session', { bearer: user.bearer })).status).toBe(401)
    const { email, password } = user
    expect((await api.post('/auth/login', { email, password })).status).toBe(401)
    expect(
      await sql`select from audit_entries where action = 'account_erased' and detail ->> 'account_id' = ${user.userId}`,
    ).toHaveLength(1)
  })

  test('frees its address', async () => {
    const user = await api.given.user()
    await remove(user)
    await pass(user.userId)
    await round()
    const { email, password } = user
    expect((await api.post('/auth/signup', { email, password })).status).toBe(201)
  })

  test('stays when its owner withdraws the deletion first', async () => {
    const user = await api.given.user()
    await remove(user)
    await pass(user.userId)
    expect((await api.post('/auth/account/restore', undefined, { bearer: user.bearer })).status).toBe(204)
    await round()
    expect(await exists(user.userId)).toBe(true)
  })

  test('stays when its owner withdraws the deletion while the job waits for the row', async () => {
    const user = await api.given.user()
    await remove(user)
    await pass(user.userId)
    let running: Promise<void> | undefined
    await sql.begin(async (tx) => {
      await tx`update users set deletion_due_at = null, deletion_attempt_at = null where id = ${user.userId}`
      running = round()
      await waitForBlockedQuery(sql, tx)
    })
    await running
    expect(await exists(user.userId)).toBe(true)
  })

  test('is erased once by concurrent runs', async () => {
    const user = await api.given.user()
    await remove(user)
    await pass(user.userId)
    await Promise.all([round(), round(), round()])
    expect(await exists(user.userId)).toBe(false)
    expect(
      await sql`select from audit_entries where action = 'account_erased' and detail ->> 'account_id' = ${user.userId}`,
    ).toHaveLength(1)
  })

  test('stays while it has a live relay or an instance', async () => {
    const user = await service.user()
    const { body } = await user.start()
    const id = body.session.session_id
    await remove(user)
    await pass(user.userId)
    await round()
    expect(await exists(user.userId)).toBe(true)
    await writeStopped(sql, id)
    await sql`insert into instances (instance_id, session_id, region) values (${`i-${id}`}, ${id}, 'local')`
    await pass(user.userId)
    await round()
    expect(await exists(user.userId)).toBe(true)
    expect(logged.at(-1)).toContain('"obstacle":"instance"')
    await sql`update instances set gone_at = now() where session_id = ${id}`
    await pass(user.userId)
    await round()
    expect(await exists(user.userId)).toBe(false)
  })

  test('revokes the chat tokens of its identities', async () => {
    const user = await api.given.user()
    await sql`
      insert into user_oauth_accounts (user_id, provider, provider_user_id, chat_connected_at, access_token_sealed)
      values (${user.userId}, 'twitch', ${user.userId}, now(), 'sealed')`
    await remove(user)
    await pass(user.userId)
    await round()
    expect(await sql`select from provider_token_revocations where user_id = ${user.userId}`).toHaveLength(1)
  })

  test('is not looked at by a run that has to end', async () => {
    const user = await api.given.user()
    await remove(user)
    await pass(user.userId)
    await round(AbortSignal.abort())
    expect(await exists(user.userId)).toBe(true)
  })
})

describe('with subscriptions', () => {
  let worker: Lifecycle
  // Runs the subscription workflows and this job too. The tests above run the job without it.
  beforeAll(async () => {
    worker = await service.startWorker()
  })

  const statusesOf = async (userId: string) =>
    (await sql<{ status: string }[]>`select status from subscriptions where user_id = ${userId} order by status`).map(
      ({ status }) => status,
    )

  test('they are cancelled at once, and the account is erased when it is due', async () => {
    const customer = await newCustomer(api)
    const plan = await customer.buy({ plan: 'paid' })
    await customer.buy({ addons: 2 })
    await remove(customer)
    await runJob(api.sql, 'delete_accounts')
    await eventually(
      () => statusesOf(customer.userId),
      (statuses) => statuses.join() === 'cancelled,cancelled',
    )
    expect(await exists(customer.userId)).toBe(true)
    await pass(customer.userId)
    await runJob(api.sql, 'delete_accounts')
    expect(await exists(customer.userId)).toBe(false)
    const events = await sql`
      select user_id, body, event is not null as is_normalised from billing_events where user_ref = ${customer.userId}`
    expect(events.length).toBeGreaterThan(3)
    for (const event of events) expect(event).toEqual({ userId: null, body: null, isNormalised: true })
    // Such as the end of the paid period.
    const late = billingEvent('subscription.downgraded', { user_id: customer.userId, subscription_id: plan })
    expect((await sandboxSender(api).send(late, { id: 'late' })).status).toBe(200)
    await eventually(
      () =>
        sql<
          { status: string; body: Buffer | null }[]
        >`select status, body from billing_events where event_key = 'late'`,
      ([event]) => event?.status === 'ignored' && event.body === null,
    )
  })

  test('nothing can be bought while the deletion is scheduled', async () => {
    const customer = await newCustomer(api)
    await remove(customer)
    expect(statusAndCode(await customer.checkout({ plan: 'paid' }))).toEqual([403, 'forbidden'])
    await api.post('/auth/account/restore', undefined, { bearer: customer.bearer })
    expect((await customer.checkout({ plan: 'paid' })).status).toBe(200)
  })

  test('stay cancelled when the deletion is withdrawn', async () => {
    const customer = await newCustomer(api)
    await customer.buy({ plan: 'paid' })
    await remove(customer)
    await runJob(api.sql, 'delete_accounts')
    await eventually(
      () => statusesOf(customer.userId),
      (statuses) => statuses.join() === 'cancelled',
    )
    await api.post('/auth/account/restore', undefined, { bearer: customer.bearer })
    expect((await customer.fetchSubscription()).plan_status).toBe('cancelled')
  })

  test('the account stays while the provider fails, with a growing delay, and is erased afterwards', async () => {
    const customer = createCustomer(api, await api.given.user())
    await customer.buy({ plan: 'paid' })
    await worker.stop()
    const cancel = vi.spyOn(billing.provider, 'cancel').mockRejectedValue(new BillingProviderError('away'))
    await remove(customer)
    for (const seconds of [5, 10, 20]) {
      await pass(customer.userId)
      const [{ at } = { at: new Date() }] = await sql<{ at: Date }[]>`select now() as at`
      await round()
      const [row] = await sql<{ sinceBefore: number; untilThen: number }[]>`
        select extract(epoch from deletion_attempt_at - ${at})::float8 as since_before,
          extract(epoch from deletion_attempt_at - now())::float8 as until_then
        from users where id = ${customer.userId}`
      expect(row?.sinceBefore).toBeGreaterThanOrEqual(seconds)
      expect(row?.untilThen).toBeLessThanOrEqual(seconds)
    }
    expect(cancel).toHaveBeenCalledTimes(3)
    cancel.mockRestore()
    // It cancels the subscription, and erases the account once its webhook has taken effect.
    await service.startWorker()
    while (await exists(customer.userId)) {
      await pass(customer.userId)
      await runJob(api.sql, 'delete_accounts')
    }
  })
})
