/** The values of `domain/` and the constraints of the database agree. */
import { expect, test } from 'vitest'
import { billingEventActions, billingEventStatuses, billingSources } from '../../domain/billing-event.ts'
import { ingestEngines } from '../../domain/ingest.ts'
import {
  endpointDisabledReasons,
  endpointTypes,
  notificationChannels,
  notificationKinds,
} from '../../domain/notifications.ts'
import { addonsMax, planStatuses, planTiers, subscriptionKinds, subscriptionStatuses } from '../../domain/plans.ts'
import { processRoles } from '../../domain/relay-health.ts'
import { legalTransitions, provisioningDetails, relayCommands, relayStates } from '../../domain/relay-session.ts'
import { sandboxStatuses } from '../../domain/sandbox-subscription.ts'
import { relayEngines } from '../../platform/relay-engines.ts'
import { startApi } from '../support/api.ts'

const { sql } = await startApi()

async function definitionOf(constraint: string): Promise<string> {
  const [row] = await sql<{ definition: string }[]>`
    select pg_get_constraintdef(oid) as definition from pg_constraint where conname = ${constraint}`
  if (!row) throw new Error(`there is no constraint ${constraint}`)
  return row.definition
}

test.each([
  ['relay_sessions_state_check', relayStates],
  ['relay_sessions_command_check', relayCommands],
  ['relay_sessions_detail_check', provisioningDetails],
  ['presence_role_check', processRoles],
  ['users_plan_tier_check', planTiers],
  ['users_plan_status_check', planStatuses],
  ['subscriptions_kind_check', subscriptionKinds],
  ['subscriptions_status_check', subscriptionStatuses],
  ['billing_events_action_check', billingEventActions],
  ['billing_events_provider_check', billingSources],
  ['billing_events_status_check', billingEventStatuses],
  ['notification_settings_kind_check', notificationKinds],
  ['notification_settings_channel_check', notificationChannels],
  ['notification_endpoints_type_check', endpointTypes],
  ['notification_endpoints_disabled_reason_check', endpointDisabledReasons],
  ['sandbox_subscriptions_kind_check', subscriptionKinds],
  ['sandbox_subscriptions_status_check', sandboxStatuses],
] as const)('%s allows the values of the domain', async (constraint, values) => {
  const definition = await definitionOf(constraint)
  const allowed = [...definition.matchAll(/'(\w+)'/g)].map(([, value]) => value)
  expect(allowed.toSorted()).toEqual([...values].toSorted())
})

test.each(['users_addons_check', 'subscriptions_quantity_check', 'sandbox_subscriptions_quantity_check'])(
  '%s allows as many add-ons as the domain',
  async (constraint) => {
    const numbers = [...(await definitionOf(constraint)).matchAll(/\d+/g)].map(([number]) => Number(number))
    expect(numbers).toEqual([0, addonsMax])
  },
)

test('Postgres has the legal transitions of the domain, with their reasons', async () => {
  const rows = await sql<{ fromState: string; toState: string; reason: string }[]>`
    select from_state, to_state, reason from relay_legal_transitions`
  const ofDomain = Object.entries(legalTransitions).flatMap(([from, targets]) =>
    Object.entries(targets).flatMap(([to, reasons]) =>
      (reasons as readonly string[]).map((reason) => `${from} → ${to}: ${reason}`),
    ),
  )
  expect(rows.map((row) => `${row.fromState} → ${row.toState}: ${row.reason}`).toSorted()).toEqual(ofDomain.toSorted())
})

test('relays report the engines that the configuration offers', () => {
  expect(ingestEngines).toEqual([...relayEngines, 'none'])
})
