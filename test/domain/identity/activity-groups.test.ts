/** The groups of an account's activity. */
import { expect, test } from 'vitest'
import { actionFilterOf, activityGroups, includesRelays } from '../../../domain/identity/activity-groups.ts'

/** The groups that list an action. */
const groupsOf = (action: string) =>
  activityGroups.filter((group) => {
    const { actions, isExclusion } = actionFilterOf(group)
    return actions.includes(action) !== isExclusion
  })

test.each([
  ['signed_up', 'sign_in'],
  ['signed_in', 'sign_in'],
  ['signed_out', 'sign_in'],
  ['signed_out_elsewhere', 'sign_in'],
  ['sign_in_failed', 'sign_in'],
  ['sign_in_unverified', 'sign_in'],
  ['plugin_login_approved', 'sign_in'],
  ['plugin_login_denied', 'sign_in'],
  ['plan_changed', 'plan'],
  ['plan_granted', 'plan'],
  ['plan_billed_twice', 'plan'],
  ['addons_billed_without_plan', 'plan'],
  ['subscription_cancelled', 'plan'],
  ['billing_event_replayed', 'plan'],
  ['billing_event_dismissed', 'plan'],
  ['usage_notice', 'plan'],
  ['relay_access_enabled', 'relays'],
  ['relay_access_disabled', 'relays'],
  ['session_disconnected', 'relays'],
  ['session_transition_requested', 'relays'],
  ['session_transition_refused', 'relays'],
  ['session_transition_withdrawn', 'relays'],
  ['session_transitioned', 'relays'],
  ['password_changed', 'security'],
  ['an action of a later version', 'security'],
])('%s is listed in the group %s only', (action, group) => {
  expect(groupsOf(action)).toEqual([group])
})

test('without a group all actions are listed', () => {
  expect(actionFilterOf(undefined)).toEqual({ actions: [], isExclusion: true })
})

test('starts and ends of relays are listed without a group and in the group of relays', () => {
  expect([undefined, ...activityGroups].filter(includesRelays)).toEqual([undefined, 'relays'])
})
