/** The commands of svc that compare subscriptions with the list of the billing provider. */
import { beforeEach, expect, test } from 'vitest'
import type { Database } from '../../../db/connection.ts'
import { newAccount, startBillingDatabase } from '../../support/billing-database.ts'
import { testEnvironment } from '../../support/environment.ts'
import { runSvc, runSvcHere } from '../../support/svc.ts'

let sql: Database
beforeEach(async () => {
  sql = await startBillingDatabase()
})

/** The variables of a worker with the sandbox, which is the default. */
function workerVariables() {
  const { host, port, database, user, pass } = sql.options
  return testEnvironment({ DATABASE_URL: `postgres://${user}:${pass}@${host[0]}:${port[0]}/${database}` })
}
const reconcile = (...flags: string[]) => runSvcHere(['billing', 'reconcile', ...flags], workerVariables())

/** A plan at the provider whose webhook was lost. */
async function givenLostPurchase(id: string): Promise<string> {
  const userId = await newAccount(sql)
  await sql`
    insert into sandbox_subscriptions (id, user_id, kind, quantity, status, period_start, period_end)
    values (${id}, ${userId}, 'plan', 1, 'active', '2026-03-01T10:00:00Z', '2126-04-01T10:00:00Z')`
  return userId
}

test('differences from the provider are listed, stored by nothing in a dry run, and applied otherwise', async () => {
  const userId = await givenLostPurchase('sub_lost')
  const dry = await runSvc(['billing', 'reconcile', '--dry-run'], workerVariables())
  expect(dry).toEqual({
    code: 0,
    stdout: expect.stringMatching(
      new RegExp(
        `^SUBSCRIPTION +KIND +ACCOUNT .*\\nsub_lost +plan +${userId} +none +active × 1 until 2126\\S+ +would be corrected\\n$`,
      ),
    ),
    stderr: 'Subscriptions at sandbox: 1. Different from the stored ones: 1.\nDry run: nothing was changed.\n',
  })
  expect(await sql`select from billing_events`).toHaveLength(0)
  const { code, stdout, stderr } = await reconcile()
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^sub_lost .* corrected$/m)])
  expect(stderr).toContain('Corrected: 1.')
  expect(await sql`select from billing_events where status = 'pending'`).toHaveLength(1)
})

test('the differences are JSON with --json', async () => {
  const userId = await givenLostPurchase('sub_lost')
  const { stdout, stderr } = await reconcile('--json', '--dry-run')
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toEqual({
    provider: 'sandbox',
    dry_run: true,
    listed: 1,
    corrected: 0,
    held: 0,
    unsettled: 0,
    differences: [
      {
        subscription_id: 'sub_lost',
        kind: 'plan',
        user_id: userId,
        stored: 'none',
        listed: 'active × 1 until 2126-04-01T10:00:00.000Z',
        outcome: 'corrected',
      },
    ],
    subscriptions_without_account: [],
  })
})

test('more differences than one run corrects wait for the next one, with exit code 6', async () => {
  for (let count = 0; count < 51; count += 1) await givenLostPurchase(`sub_${count}`)
  const first = await reconcile()
  expect(first).toMatchObject({ code: 6, stderr: expect.stringMatching(/^error: Waiting for the next run: 1\. /m) })
  expect(first.stdout).toMatch(/ waits for the next run$/m)
  expect(await reconcile()).toMatchObject({ code: 0, stderr: expect.stringContaining('Corrected: 1.') })
})

test('a difference that remains after its event was applied is left to the operator', async () => {
  await givenLostPurchase('sub_refunded')
  await reconcile()
  await sql`update billing_events set status = 'applied', applied_at = now()`
  const { code, stdout, stderr } = await reconcile()
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^sub_refunded .* not settled$/m)])
  expect(stderr).toMatch(/^Not settled by reconciliation: 1\. /m)
})

test('a provider whose list cannot be read changes nothing, and ends the command with exit code 1', async () => {
  const { code, stdout, stderr } = await runSvcHere(['billing', 'reconcile'], {
    ...workerVariables(),
    SVC_BILLING_PROVIDER: 'stripe',
    SVC_STRIPE_API_KEY: 'sk_test_none',
    SVC_STRIPE_PLAN_PRICE_ID: 'price_plan',
    SVC_STRIPE_ADDON_PRICE_ID: 'price_addon',
    SVC_STRIPE_API_URL: 'http://127.0.0.1:1',
  })
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(/^error: /)
})
