/** Operations for operators. Each change is recorded in the audit trail with its reason. */
import type { OperationTexts } from '../operation-text.ts'

export const operatorTexts: OperationTexts = {
  'POST /admin/sign-in': {
    id: 'openOperatorSession',
    description:
      'Exchanges the operator password (HTTP Basic) for the token of a session that ends soon, and after 15 minutes without use. Refused with the token of a session: it cannot prolong itself. Wrong passwords are limited and audited.',
    replies: {
      201: {
        session: {
          summary: 'An operator session',
          value: { operator_token: 'operator_example_5tGb8yHn', expires_at: '2026-08-01T19:00:00.000Z' },
        },
      },
    },
  },
  'POST /admin/sign-out': {
    id: 'closeOperatorSession',
    description: 'Ends the session of the token. Does nothing with the password. Safe to repeat.',
  },
  'GET /admin/users': {
    id: 'findUser',
    description:
      'The account with exactly this address, without regard to case, or an empty list. Or the accounts that match all other filters, in the order of their ids, 50 a page. One filter is required.',
  },
  'GET /admin/users/{id}': {
    id: 'getUser',
    description:
      'An account with its entitlement, its live sessions without secrets, and the snapshot of its subscription workflow, which may take 2 seconds.',
  },
  'GET /admin/users/{id}/export': {
    id: 'exportUser',
    description:
      'Everything that is stored about an account, by table, to answer a request of its owner. Secrets, notes of operators and their addresses are left out. Audited.',
  },
  'POST /admin/users/{id}/erase': {
    id: 'eraseUser',
    description:
      'Erases an account for good, as its owner asks under data protection law. `email` confirms it: the address of the account, or null if it has none. Disables the account, ends its relays and auth sessions, and cancels its subscriptions at their provider; then a job erases it, within seconds unless one of these takes longer. Billing events stay without the account. Safe to repeat: 202 until the account is erased, then 200 for 400 days.',
  },
  'POST /admin/users/{id}/grant': {
    id: 'grantPlan',
    description:
      'Grants a complimentary plan, until a date or without an end; `free` withdraws it. A plan that the account pays for is not changed. The grant is stored in any case; the reply shows its effect if it was applied within five seconds.',
  },
  'POST /admin/users/{id}/relay-access': {
    id: 'setRelayAccess',
    description:
      'Enables or disables relays for an account, whatever its plan. Disabling ends its live relays. Safe to repeat.',
  },
  'POST /admin/users/{id}/disable': {
    id: 'disableUser',
    description:
      'Disables an account and ends its auth sessions and relays, or enables it again with `disabled: false`. Safe to repeat.',
  },
  'GET /admin/audit': {
    id: 'listAuditEntries',
    description: 'The audit trail of one account or of all, newest first, 50 entries a page.',
  },
  'GET /admin/sessions': {
    id: 'listAllRelaySessions',
    description: 'Relay sessions of all accounts, newest first, 100 a page, without secrets.',
  },
  'GET /admin/sessions/{id}': {
    id: 'inspectRelaySession',
    description:
      'The row of a session, the snapshot of its workflow (null if it does not answer in time), its transitions, and the address of the workflow in the Temporal UI.',
  },
  'POST /admin/sessions/{id}/disconnect': {
    id: 'disconnectRelaySession',
    description: 'Ends a session at once, and for good. A stopped session is returned as it is. Safe to repeat.',
  },
  'POST /admin/sessions/{id}/transition': {
    id: 'transitionRelaySession',
    description:
      'Makes one of the possible transitions by hand. Its workflow decides whether it is possible from the current state. After a 503 the transition has not happened and will not happen.',
  },
  'GET /admin/billing/events': {
    id: 'listBillingEvents',
    description: 'Events of billing providers and operators, newest first, 50 a page.',
  },
  'GET /admin/billing/events/{id}': {
    id: 'inspectBillingEvent',
    description: 'One billing event with its normalised form, as the subscription workflow reads it.',
  },
  'GET /admin/overview': {
    id: 'getOverview',
    description: 'The health of the service and the figures of the last hour. It is computed once a second at most.',
  },
  'POST /admin/billing/events/{id}/dismiss': {
    id: 'dismissBillingEvent',
    description:
      'Marks a parked or dead event as one that needs no attention. Any other event is refused with `invalid_transition`. Safe to repeat.',
  },
  'POST /admin/billing/events/{id}/replay': {
    id: 'replayBillingEvent',
    description:
      'Parses the stored bytes of an event again and applies the result, for example after a change of the configuration. Safe to repeat.',
  },
  'GET /admin/billing/accounts': {
    id: 'listUnusedBilling',
    description: 'Accounts that pay for nothing: for add-ons without a plan, or for more than one plan.',
  },
  'GET /admin/users/{id}/subscriptions': {
    id: 'listUserSubscriptions',
    description: "An account's subscriptions at billing providers, ended ones last, at most 100.",
  },
  'GET /admin/users/{id}/subscription': {
    id: 'inspectPlan',
    description:
      'The entitlement of an account, the snapshot of its subscription workflow (null if it does not run or does not answer in time), and the address of the workflow in the Temporal UI.',
  },
  'GET /admin/jobs': {
    id: 'listJobs',
    description: 'Background jobs by name, with their last result and the worker that holds the lease.',
  },
  'GET /admin/instances': {
    id: 'listInstances',
    description: 'Instances at the providers, newest first, 100 a page, including those that no live session owns.',
  },
  'GET /admin/regions': {
    id: 'listRegionDetails',
    description: 'The regions in the configured order, with their sessions and instances.',
  },
  'POST /admin/regions/{region}/drain': {
    id: 'drainRegion',
    description: 'Stops new sessions in a region, while its live sessions run on. Safe to repeat.',
  },
  'POST /admin/regions/{region}/resume': {
    id: 'resumeRegion',
    description: 'Allows new sessions in a drained region again. Safe to repeat.',
  },
}
