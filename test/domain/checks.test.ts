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
import { incidentKinds, incidentParts } from '../../domain/operations/incidents.ts'
import { relayEngines } from '../../domain/relay/engines.ts'
import { processRoles } from '../../domain/relay/health.ts'
import { ingestEngines } from '../../domain/relay/ingest.ts'
import { lossCauses, relayCommands, relayStates, sessionDetails } from '../../domain/relay/session.ts'
import { streamEventKinds } from '../../domain/relay/stream-events.ts'

const schema = readFileSync('db/schema.sql', 'utf8')

function checkOf(table: string, column: string): string {
  const [, columns = ''] = new RegExp(`^create table ${table} \\(\\n(.*?)^\\)`, 'ms').exec(schema) ?? []
  const [, check] = new RegExp(`^  ${column} .*? check (.*)$`, 'm').exec(columns) ?? []
  if (!check) throw new Error(`${table}.${column} has no check`)
  return check
}

test.each([
  ['relay_sessions', 'state', relayStates],
  ['relay_sessions', 'command', relayCommands],
  ['relay_sessions', 'detail', sessionDetails],
  ['relay_replacements', 'cause', lossCauses],
  ['stream_events', 'kind', streamEventKinds],
  ['incidents', 'part', incidentParts],
  ['incidents', 'kind', incidentKinds],
  ['presence', 'role', processRoles],
  ['users', 'plan_tier', planTiers],
  ['users', 'plan_status', planStatuses],
  ['subscriptions', 'kind', subscriptionKinds],
  ['subscriptions', 'status', subscriptionStatuses],
  ['billing_events', 'action', billingEventActions],
  ['billing_events', 'provider', billingSources],
  ['billing_events', 'status', billingEventStatuses],
  ['notification_settings', 'kind', notificationKinds],
  ['notification_settings', 'channel', notificationChannels],
  ['notification_endpoints', 'type', endpointTypes],
  ['notification_endpoints', 'disabled_reason', endpointDisabledReasons],
  ['sandbox_subscriptions', 'kind', subscriptionKinds],
  ['sandbox_subscriptions', 'status', sandboxStatuses],
] as const)('%s.%s allows the values of the domain', (table, column, values) => {
  const allowed = [...checkOf(table, column).matchAll(/'(\w+)'/g)].map(([, value]) => value)
  expect(allowed.toSorted()).toEqual([...values].toSorted())
})

test.each([
  ['users', 'addons'],
  ['subscriptions', 'quantity'],
  ['sandbox_subscriptions', 'quantity'],
] as const)('%s.%s allows as many add-ons as the domain', (table, column) => {
  const numbers = [...checkOf(table, column).matchAll(/\d+/g)].map(([number]) => Number(number))
  expect(numbers).toEqual([0, addonsMax])
})

test('relays report the engines that the configuration offers', () => {
  expect(ingestEngines).toEqual([...relayEngines, 'none'])
})
