/** `svc users`: accounts, their plans and their access. */
import { type Command, Option } from 'commander'
import type { ApiClient } from '../../client/client.ts'
import type { Reply } from '../../client/reply.ts'
import { addonsMax, planStatuses, planTiers } from '../../domain/billing/plans.ts'
import type { Plan } from '../plan-grants.ts'
import { account, findUser } from './accounts.ts'
import { byId, defineCommand, defined, defineRequest } from './commands.ts'
import { connect } from './connection.ts'
import { defineList } from './lists.ts'
import {
  type ChangeOptions,
  choiceOption,
  type GlobalOptions,
  parseTime,
  parseWholeNumber,
  reasonOption,
} from './options.ts'
import {
  type Column,
  type Field,
  formatDuration,
  formatTime,
  printFields,
  printHeading,
  printJson,
  printTable,
} from './output.ts'
import { sessionColumns } from './sessions.ts'
import { addUserDataCommands } from './user-data.ts'

type UserDetail = Reply<'get', '/admin/users/{id}'>
type User = UserDetail['user']
type Entitlement = UserDetail['entitlement']

const { example } = account

export function addUsersCommands(program: Command): void {
  const users = program.command('users').description('accounts, their plans and their access')
  addShowCommands(users)
  defineRequest(users.command('subscriptions'), {
    description: 'list what an account pays for',
    subject: account,
    request: (api, id) => api.GET('/api/v1/admin/users/{id}/subscriptions', byId(id)),
    print: ({ subscriptions }) => printTable(subscriptionColumns, subscriptions),
  })
  defineList(users.command('list'), {
    description: 'list accounts by one filter or more',
    examples: ['--status past_due', '--disabled true --all --json'],
    path: '/admin/users',
    key: 'users',
    filters: {
      plan_tier: choiceOption('--plan <tier>', 'only accounts with this plan', planTiers),
      plan_status: choiceOption('--status <status>', 'only accounts whose plan has this status', planStatuses),
      disabled: choiceOption('--disabled <disabled>', 'only disabled accounts, or only others', ['true', 'false']),
    },
    missingFilter: 'Add --plan, --status or --disabled.',
    columns: userColumns,
  })
  defineRequest(users.command('grant'), {
    description: 'grant a complimentary plan, or withdraw it',
    examples: [
      `${example} --addons 1`,
      `${example} --until 2027-01-31 --reason "beta tester"`,
      `${example} --plan free`,
    ],
    subject: account,
    options: [
      reasonOption,
      choiceOption('--plan <tier>', 'free withdraws what was granted', planTiers).default('paid'),
      new Option('--addons <number>', `add-ons, 0 to ${addonsMax}`)
        .argParser(parseWholeNumber(0, addonsMax))
        .default(0),
      new Option('--until <time>', 'when the grant ends; without it, never').argParser(parseTime),
    ],
    request: (
      api,
      id,
      { plan, addons, until, reason }: Omit<Plan, 'plan_tier'> & { readonly plan: Plan['plan_tier'] },
    ) =>
      api.POST('/api/v1/admin/users/{id}/grant', {
        ...byId(id),
        body: { plan_tier: plan, addons, ...defined({ until, reason }) },
      }),
    failure: () => 'The grant',
    print: ({ entitlement }) => printFields(entitlementFields(entitlement)),
  })
  addAccessCommands(users)
  addUserDataCommands(users)
}

function addShowCommands(users: Command): void {
  defineCommand<GlobalOptions>(users.command('find'), {
    description: 'find an account',
    examples: [example],
    argument: account.argument,
    run: async (options, name) => {
      const user = await findUser(await connect(options), name)
      if (options.json) printJson({ users: [user], next_cursor: null })
      else printTable(userColumns, [user])
    },
  })
  defineRequest(users.command('show'), {
    description: 'show an account with its plan, its usage and its live sessions',
    examples: [example, `${example} --json`],
    subject: account,
    request: (api, id) => api.GET('/api/v1/admin/users/{id}', byId(id)),
    failure: (id) => `The request for ${id}`,
    print: ({ user, entitlement, subscription, usage, sessions }) => {
      printFields([
        ...userFields(user),
        ...entitlementFields(entitlement),
        ...workflowFields(subscription),
        ['usage', `${formatDuration(usage.consumed_seconds)} of ${formatDuration(usage.included_seconds)}`],
        ['cycle', `${formatTime(usage.cycle_start)} to ${formatTime(usage.cycle_end)}`],
      ])
      printHeading('Live sessions')
      printTable(sessionColumns, sessions)
    },
  })
  defineRequest(users.command('plan'), {
    description: 'show the plan of an account, and what its workflow says',
    subject: account,
    request: (api, id) => api.GET('/api/v1/admin/users/{id}/subscription', byId(id)),
    print: (plan) => printFields([...entitlementFields(plan.entitlement), ...workflowFields(plan)]),
  })
}

/** The commands that enable or disable an account or its relays. */
function addAccessCommands(users: Command): void {
  const withReason = [`${example} --reason "chargeback, ticket 4711"`]
  const setDisabled =
    (disabled: boolean) =>
    (api: ApiClient, id: string, { reason }: ChangeOptions) =>
      api.POST('/api/v1/admin/users/{id}/disable', { ...byId(id), body: { disabled, ...defined({ reason }) } })
  const setRelayAccess =
    (enabled: boolean) =>
    (api: ApiClient, id: string, { reason }: ChangeOptions) =>
      api.POST('/api/v1/admin/users/{id}/relay-access', { ...byId(id), body: { enabled, ...defined({ reason }) } })
  const ofUser = { subject: account, print: ({ user }: { user: User }) => printFields(userFields(user)) }
  const ofRelays = {
    subject: account,
    print: (reply: { entitlement: Entitlement }) => printFields(entitlementFields(reply.entitlement)),
  }
  defineRequest(users.command('disable'), {
    ...ofUser,
    description: 'disable an account: ends its relays and its sign-ins, and refuses new ones',
    examples: withReason,
    question: (name) => `Disable the account ${name}, and end its relays and sign-ins?`,
    request: setDisabled(true),
  })
  defineRequest(users.command('enable'), {
    ...ofUser,
    description: 'enable an account again',
    options: [reasonOption],
    request: setDisabled(false),
  })
  defineRequest(users.command('disable-relays'), {
    ...ofRelays,
    description: 'end the relays of an account, and refuse new ones; its owner can sign in',
    examples: withReason,
    question: (name) => `End the relays of ${name}, and refuse new ones?`,
    request: setRelayAccess(false),
  })
  defineRequest(users.command('enable-relays'), {
    ...ofRelays,
    description: 'allow relays again',
    options: [reasonOption],
    request: setRelayAccess(true),
  })
}

const userColumns: readonly Column<User>[] = [
  { header: 'ACCOUNT', value: ({ id }) => id },
  { header: 'EMAIL', value: ({ email }) => email },
  { header: 'VERIFIED', value: ({ email_verified }) => email_verified },
  { header: 'PLAN', value: ({ plan_tier }) => plan_tier },
  { header: 'RELAYS', value: ({ relay_access_status }) => relay_access_status },
  { header: 'DISABLED', value: ({ disabled }) => disabled },
  { header: 'CREATED', value: ({ created_at }) => formatTime(created_at) },
]

const subscriptionColumns: readonly Column<Reply<'get', '/admin/users/{id}/subscriptions'>['subscriptions'][number]>[] =
  [
    { header: 'SUBSCRIPTION', value: ({ subscription_id }) => subscription_id },
    { header: 'PROVIDER', value: ({ provider }) => provider },
    { header: 'KIND', value: ({ kind }) => kind },
    { header: 'QUANTITY', value: ({ quantity }) => quantity },
    { header: 'STATUS', value: ({ status }) => status },
    { header: 'PERIOD ENDS', value: ({ period_end }) => formatTime(period_end) },
    { header: 'CUSTOMER', value: ({ customer_id }) => customer_id },
  ]

const userFields = (user: User): Field[] => [
  ['account', user.id],
  ['email', user.email === null ? null : `${user.email} (${user.email_verified ? 'verified' : 'not verified'})`],
  ['linked to', user.linked_accounts.flatMap(({ provider, linked }) => (linked ? [provider] : [])).join(', ')],
  ['created', formatTime(user.created_at)],
  ['disabled', user.disabled],
  ['is erased at', formatTime(user.deletion_due_at)],
]

const entitlementFields = (entitlement: Entitlement): Field[] => [
  ['plan', `${entitlement.plan_tier}, ${entitlement.plan_status}`],
  ['relays', `${entitlement.relay_access_status} (${entitlement.reason_code})`],
  ['in use', `${entitlement.active_managed_conns} of ${entitlement.max_concurrent_conns}`],
  [
    'trial',
    entitlement.trial && `${formatDuration(entitlement.trial.remaining_seconds)} left (${entitlement.trial.state})`,
  ],
  ['grace ends', formatTime(entitlement.grace_ends_at)],
]

const workflowFields = ({ temporal_ui_url, live }: UserDetail['subscription']): Field[] => [
  ['workflow', temporal_ui_url],
  ['workflow says', live ? `${live.plan_tier}, ${live.plan_status}, add-ons: ${live.addons}` : 'no answer'],
  ['next deadline', formatTime(live?.wakes_at)],
]
