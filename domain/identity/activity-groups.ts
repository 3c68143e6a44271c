/** Groups of the activity of an account, by which its owner can filter it. */

export const activityGroups = ['sign_in', 'security', 'plan', 'relays'] as const
export type ActivityGroup = (typeof activityGroups)[number]

/** The actions of audit entries in each group. All others belong to `security`, so that no action is in none. */
const actionsByGroup: Readonly<Record<Exclude<ActivityGroup, 'security'>, readonly string[]>> = {
  sign_in: [
    'signed_up',
    'signed_in',
    'signed_out',
    'signed_out_elsewhere',
    'sign_in_failed',
    'sign_in_unverified',
    'plugin_login_approved',
    'plugin_login_denied',
    'app_connected',
    'app_signed_out',
    'app_disconnected',
  ],
  plan: [
    'plan_changed',
    'plan_granted',
    'plan_billed_twice',
    'addons_billed_without_plan',
    'subscription_cancelled',
    'contract_withdrawn',
    'withdrawal_refunded',
    'withdrawal_refund_failed',
    'billing_event_replayed',
    'billing_event_dismissed',
    'usage_notice',
  ],
  relays: [
    'relay_access_enabled',
    'relay_access_disabled',
    'session_disconnected',
    'session_transition_requested',
    'session_transition_refused',
    'session_transition_withdrawn',
    'session_transitioned',
  ],
}

/** Selects the actions in the list, or all that are not in it. */
export interface ActionFilter {
  readonly actions: readonly string[]
  readonly isExclusion: boolean
}

/** @param group undefined for the actions of all groups. */
export const actionFilterOf = (group: ActivityGroup | undefined): ActionFilter =>
  group === undefined || group === 'security'
    ? { actions: group === undefined ? [] : Object.values(actionsByGroup).flat(), isExclusion: true }
    : { actions: actionsByGroup[group], isExclusion: false }

/** Whether relay starts and stops belong to the group. */
export const includesRelays = (group: ActivityGroup | undefined): boolean => group === undefined || group === 'relays'
