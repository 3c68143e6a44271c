import { randomBytes } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { connectPostgres } from '../../db/connection.ts'
import { readMigrations } from '../../db/migrations.ts'
import { createEmptyDatabase } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { startFakeRelayService } from '../support/fake-relays.ts'
import { eventually, type TestService } from '../support/relays.ts'

/** Plans of operators and manually written ones, from before the inbox existed. */
const plans = {
  'for ever': { plan_tier: 'paid', addons: 2, plan_until: null },
  'until a day ahead': { plan_tier: 'paid', addons: 1, plan_until: '2399-06-01T12:00:00.123Z' },
  'until a day that is over': { plan_tier: 'paid', addons: 3, plan_until: '2026-01-01T00:00:00Z' },
  'until after the last day that we write': { plan_tier: 'paid', addons: 0, plan_until: '20000-01-01T00:00:00Z' },
  'until infinity': { plan_tier: 'paid', addons: 0, plan_until: 'infinity' },
  none: { plan_tier: 'free', addons: 0, plan_until: null },
} as const

let service: TestService
beforeAll(async () => {
  const database = await createEmptyDatabase()
  const sql = connectPostgres(database.url, 1)
  for (const { name, text } of await readMigrations()) if (name < '0006') await sql.unsafe(text)
  for (const [name, { plan_tier, addons, plan_until }] of Object.entries(plans)) {
    await sql`
      insert into users (email, stream_token, plan_tier, plan_status, addons, plan_until)
      values (${name}, ${randomBytes(4).toString('hex')}, ${plan_tier}, ${plan_tier === 'paid' ? 'active' : 'none'}, ${addons},
        (${plan_until}::text)::timestamptz)`
  }
  await sql.end()
  // Applies the remaining migrations; its worker wakes the workflows.
  service = await startFakeRelayService({ variables: { DATABASE_URL: database.url } })
  atEnd(() => database.drop())
})

const givenBefore = Object.entries(plans).filter(([, { plan_tier }]) => plan_tier === 'paid').length

test('plans that were given before there was an inbox stay as they were, and end when they would have', async () => {
  const { sql } = service.api
  const applied = () => sql`select from billing_events where action = 'grant' and status = 'applied'`
  await eventually(applied, ({ length }) => length === givenBefore)
  const rows = await sql<{ email: keyof typeof plans }[]>`
    select email, plan_tier, plan_status, addons, plan_until, entitlement_due_at from users`
  const active = { planTier: 'paid', planStatus: 'active' }
  const ever = { planUntil: null, entitlementDueAt: null }
  const day = new Date('2399-06-01T12:00:00.123Z')
  const nothing = { planTier: 'free', planStatus: 'none', addons: 0, ...ever }
  expect(Object.fromEntries(rows.map(({ email, ...row }) => [email, row]))).toEqual({
    'for ever': { ...active, addons: 2, ...ever },
    'until a day ahead': { ...active, addons: 1, planUntil: day, entitlementDueAt: day },
    'until a day that is over': nothing,
    'until after the last day that we write': { ...active, addons: 0, ...ever },
    'until infinity': { ...active, addons: 0, ...ever },
    none: nothing,
  })
})
