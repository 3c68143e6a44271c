/** Buying a plan, and the effect of failed payments on relays, in a real browser. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { startBillingSite } from '../support/billing-site.ts'
import { eventually, operator } from '../support/relays.ts'
import { type Customer, newCustomer } from '../support/sandbox-customers.ts'
import { expectUsable, type Visitor, visitor } from './browser.ts'

const { service, api, site, report } = await startBillingSite({ SVC_PAYMENT_GRACE_SECONDS: '12' })

interface Person extends Visitor {
  readonly customer: Customer
}

/** A user without a plan, on the account page. */
async function newcomer(look: Parameters<typeof visitor>[0] = {}): Promise<Person> {
  const [customer, person] = [await newCustomer(api), await visitor(look)]
  const { page } = person
  await page.goto(`${site.url}/login?next=/account`)
  await page.getByLabel('Email address').fill(customer.email)
  await page.getByLabel('Password', { exact: true }).fill(customer.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.waitForURL(`${site.url}/account`)
  return { ...person, customer }
}

const says = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor()
const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first().click()

async function startRelay({ page }: Person): Promise<void> {
  await page.goto(`${site.url}/relays`)
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByRole('article', { name: 'default' }).waitFor()
}

/** The user's relay, once it is ready. */
async function readyRelay({ bearer }: Customer): Promise<string> {
  const active = async () =>
    (await api.get<{ session: { session_id: string; state: string } | null }>('/relay/active', { bearer })).body.session
  const id = (await active())?.session_id ?? ''
  await report(id)
  await eventually(active, (session) => session?.state === 'active')
  return id
}

/** The details line of the subscription workflow in the Temporal UI. */
async function detailsOf({ userId }: Customer): Promise<string> {
  const handle = api.services.temporal.workflow.getHandle(`subscription/${userId}`)
  return (await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata')).currentDetails
}

test('a failed payment ends the plan and its relay, and a later payment restores the plan', async () => {
  const person = await newcomer({ device: 'phone' })
  const { page, customer, faults } = person
  await press(page, 'Get the paid plan')
  await press(page, 'Pay')
  await says(page, /It renews on/)
  await startRelay(person)
  const relay = await readyRelay(customer)

  await page.goto(`${site.url}/account`)
  await page.getByRole('link', { name: 'Manage payments' }).click()
  await press(page, /Let a payment fail/)
  await says(page, 'A payment has failed.')
  const { grace_ends_at: ends } = await customer.fetchSubscription()
  expect(await detailsOf(customer)).toContain(`past due, downgrade at ${ends}`)

  await page.getByRole('link', { name: 'Relays' }).click()
  await page.getByRole('heading', { name: 'A payment did not get through' }).waitFor()
  const left = async () =>
    Number(/^0:(\d\d) minutes$/.exec((await page.locator('[data-until]').textContent()) ?? '')?.[1])
  const first = await left()
  expect(first).toBeGreaterThan(0)
  await expect.poll(left, { timeout: 5000 }).toBeLessThan(first)
  expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'paid', plan_status: 'past_due' })

  await says(page, 'You have no relay running.')
  await says(page, 'Your plan has no managed relay.')
  expect(await page.getByRole('heading', { name: 'A payment did not get through' }).count()).toBe(0)
  const { session, transitions } = await service.history(relay)
  expect(session).toMatchObject({ state: 'stopped', reason: 'force_disconnected' })
  expect(Date.parse(session.stopped_at ?? '')).toBeGreaterThanOrEqual(Date.parse(ends ?? ''))
  expect(transitions.at(-1)).toMatchObject({ to: 'stopped', reason: 'force_disconnected', initiator: 'system' })
  expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'free', plan_status: 'none' })

  await page.getByRole('link', { name: 'Get the paid plan' }).click()
  await page.getByRole('link', { name: 'Manage payments' }).click()
  await press(page, /Recover the payment/)
  await page.getByRole('link', { name: 'Back to your account' }).click()
  await says(page, /It renews on/)
  await startRelay(person)
  expect(await readyRelay(customer)).not.toBe(relay)
  expect(faults).toEqual([])
})

test('add-ons can be bought without scripts, with the keyboard only', async () => {
  const { page, customer } = await newcomer({ script: false })
  await customer.buy({ plan: 'paid' })
  await page.reload()
  await page.getByLabel('Add-ons in all').press('ArrowDown')
  await page.getByRole('button', { name: 'Add an add-on' }).press('Enter')
  await page.getByRole('heading', { name: 'Pay for it' }).waitFor()
  await page.getByRole('button', { name: 'Pay', exact: true }).press('Enter')
  await says(page, '3 managed relays at once')
  await page.reload()
  expect(await customer.fetchSubscription()).toMatchObject({ addons: 2 })
})

/** A plan that has ended, and two add-ons that are still billed. */
async function addonsAlone({ customer }: Person): Promise<void> {
  const plan = await customer.buy({ plan: 'paid' })
  await customer.buy({ addons: 2 })
  await customer.play(plan, 'end')
}

async function twoPlans({ customer }: Person): Promise<void> {
  const orders = [await customer.openSubscription({ plan: 'paid' }), await customer.openSubscription({ plan: 'paid' })]
  for (const id of orders) await customer.play(id, 'pay')
}

test('add-ons without a plan and a second plan can be cancelled without scripts, with the keyboard only', async () => {
  const person = await newcomer({ script: false })
  const { page, customer } = person
  await addonsAlone(person)
  await page.reload()
  await page.getByRole('region', { name: 'You are still billed for 2 add-ons' }).waitFor()
  await page.getByRole('button', { name: 'Cancel 2 add-ons' }).press('Enter')
  await says(page, 'Cancelled at the billing provider.')
  expect(await page.getByText('You are still billed').count()).toBe(0)

  await twoPlans(person)
  await page.reload()
  const warning = page.getByRole('region', { name: 'You are billed for 2 plans' })
  await warning.getByRole('button', { name: 'Cancel this plan' }).first().press('Enter')
  await says(page, 'Cancelled at the billing provider.')
  expect(await warning.count()).toBe(0)
  expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'paid', plan_status: 'active' })
})

/** Writes a past due plan to the row, without a workflow. Its payment grace period ends in 47 hours. */
async function pastDue({ userId }: Customer): Promise<void> {
  await api.sql`
    insert into subscriptions (provider, subscription_id, kind, user_id, status)
    values ('sandbox', ${`sub_${userId}`}, 'plan', ${userId}, 'past_due')`
  await api.sql`
    update users set plan_tier = 'paid', plan_status = 'past_due', addons = 1,
      payment_grace_ends_at = now() + interval '47 hours' where id = ${userId}`
}

test('a failed payment appears on the open relays page within minutes', async () => {
  const { page, customer } = await newcomer()
  await page.clock.install()
  await page.goto(`${site.url}/relays`)
  await page.evaluate('window.isStillThis = true')
  await pastDue(customer)
  await page.clock.fastForward(301_000)
  await page.clock.runFor(11_000)
  await page.getByRole('heading', { name: 'A payment did not get through' }).waitFor()
  expect(await page.locator('[data-news]').textContent()).toBe('A payment did not get through')
  await page.clock.runFor(60_000)
  expect(await page.locator('[data-until]').textContent()).toMatch(/^46 h 5\d min$/)
  expect(await page.evaluate('window.isStillThis')).toBe(true)
})

/** A visitor on each billing page, by the name of its screenshot. */
const pages: Readonly<Record<string, (person: Person) => Promise<unknown>>> = {
  'account-free': async () => {},
  'account-subscribed': async ({ page, customer }) => {
    await customer.buy({ plan: 'paid' })
    await customer.buy({ addons: 1 })
    await page.goto(`${site.url}/account?done=bought`)
  },
  'account-past-due': async ({ page, customer }) => {
    await pastDue(customer)
    await page.reload()
  },
  'account-addons-alone': async (person) => {
    await addonsAlone(person)
    await person.page.reload()
  },
  'account-two-plans': async (person) => {
    await twoPlans(person)
    await person.page.goto(`${site.url}/account?done=cancelled`)
  },
  'account-complimentary': async ({ page, customer }) => {
    const until = new Date(Date.now() + 30 * 86_400_000)
    await api.post(`/admin/users/${customer.userId}/grant`, { plan_tier: 'paid', until }, { headers: operator })
    await page.reload()
  },
  'relays-past-due': async ({ page, customer }) => {
    await pastDue(customer)
    await page.goto(`${site.url}/relays`)
  },
  'sandbox-checkout': async ({ page, customer }) => {
    await page.goto(`${site.url}/sandbox/checkout/${await customer.openSubscription({ addons: 3 })}`)
  },
  'sandbox-subscriptions': async ({ page, customer }) => {
    await customer.openSubscription({ plan: 'paid' })
    await customer.play(await customer.buy({ plan: 'paid' }), 'cancel')
    await customer.play(await customer.buy({ addons: 1 }), 'fail')
    await customer.play(await customer.buy({ addons: 2 }), 'end')
    await customer.buy({ addons: 2 })
    await page.goto(`${site.url}/sandbox/subscriptions?done=cancel`)
  },
}

test.for(Object.keys(pages))('everybody can read and use the page: %s', async (name) => {
  const person = await newcomer({ device: 'phone' })
  await pages[name]?.(person)
  await expectUsable(person, name)
})
