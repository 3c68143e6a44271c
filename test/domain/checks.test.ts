/**
 * The values of `domain/` and the constraints of the database agree. Another test holds `db/schema.sql` to the
 * migrations.
 */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { billingEventActions, billingEventStatuses, billingSources } from '../../domain/billing/event.ts'
import {
  addonsMax,
  planStatuses,
  planTiers,
  subscriptionKinds,
  subscriptionStatuses,
} from '../../domain/billing/plans.ts'
import { sandboxStatuses } from '../../domain/billing/sandbox-subscription.ts'
import {
  endpointDisabledReasons,
  endpointTypes,
  notificationChannels,
  notificationKinds,
} from '../../domain/notifications/kinds.ts'
import { relayEngines } from '../../domain/relay/engines.ts'
import { processRoles } from '../../domain/relay/health.ts'
import { ingestEngines } from '../../domain/relay/ingest.ts'
import { provisioningDetails, relayCommands, relayStates } from '../../domain/relay/session.ts'

const schema = readFileSync('db/schema.sql', 'utf8')

function definitionOf(constraint: string): string {
  const [, definition] = new RegExp(`^ *constraint ${constraint} check (.*)$`, 'm').exec(schema) ?? []
  if (!definition) throw new Error(`there is no constraint ${constraint}`)
  return definition
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
] as const)('%s allows the values of the domain', (constraint, values) => {
  const definition = definitionOf(constraint)
  const allowed = [...definition.matchAll(/'(\w+)'/g)].map(([, value]) => value)
  expect(allowed.toSorted()).toEqual([...values].toSorted())
})

test.each(['users_addons_check', 'subscriptions_quantity_check', 'sandbox_subscriptions_quantity_check'])(
  '%s allows as many add-ons as the domain',
  (constraint) => {
    const numbers = [...definitionOf(constraint).matchAll(/\d+/g)].map(([number]) => Number(number))
    expect(numbers).toEqual([0, addonsMax])
  },
)

test('relays report the engines that the configuration offers', () => {
  expect(ingestEngines).toEqual([...relayEngines, 'none'])
})
