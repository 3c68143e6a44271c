/** `svc users`: accounts, their plans and their access. */
import type { Command } from 'commander'
import { expectSuccess } from '../../client/api-error.ts'
import type { ApiClient } from '../../client/client.ts'
import type { Reply } from '../../client/reply.ts'
import { addonsMax, planStatuses, planTiers } from '../../domain/billing/plans.ts'
import { grantPlan as requestGrant } from '../plan-grants.ts'
import { findUser, readAccountId } from './accounts.ts'
import { confirm } from './confirmation.ts'
import { connect } from './connection.ts'
import { addExamples } from './examples.ts'
import { usageError } from './exit-codes.ts'
import {
  addDestructiveOptions,
  addListOptions,
  addReasonOption,
  type ChangeOptions,
  choiceOption,
  type GlobalOptions,
  type ListOptions,
  parseAccount,
  parseTime,
  parseWholeNumber,
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
import { printList } from './pages.ts'
import { sessionColumns } from './sessions.ts'
import { addUserDataCommands } from './user-data.ts'

type UserDetail = Reply<'get', '/admin/users/{id}'>
type User = UserDetail['user']
type Entitlement = UserDetail['entitlement']
type Subscription = Reply<'get', '/admin/users/{id}/subscriptions'>['subscriptions'][number]
type Plan = Reply<'get', '/admin/users/{id}/subscription'>

const account = ['<account>', 'email address or id of the account', parseAccount] as const

export function addUsersCommands(program: Command): void {
  const users = program.command('users').description('accounts, their plans and their access')
  addExamples(users.command('find').argument(...account), ['streamer@example.com'])
    .description('find an account')
    .action((text: string, _, command: Command) => findUsers(text, command.optsWithGlobals()))
  addExamples(users.command('show').argument(...account), ['streamer@example.com', 'streamer@example.com --json'])
    .description('show an account with its plan, its usage and its live sessions')
    .action((text: string, _, command: Command) => showUser(text, command.optsWithGlobals()))
  addExamples(users.command('plan').argument(...account), ['streamer@example.com'])
    .description('show the plan of an account, and what its workflow says')
    .action((text: string, _, command: Command) => showPlan(text, command.optsWithGlobals()))
  addExamples(users.command('subscriptions').argument(...account), ['streamer@example.com'])
    .description('list what an account pays for')
    .action((text: string, _, command: Command) => listSubscriptions(text, command.optsWithGlobals()))
  addListCommand(users)
  addGrantCommand(users)
  addAccessCommands(users)
  addUserDataCommands(users)
}

function addListCommand(users: Command): void {
  const list = addListOptions(users.command('list'))
    .addOption(choiceOption('--plan <tier>', 'only accounts with this plan', planTiers))
    .addOption(choiceOption('--status <status>', 'only accounts whose plan has this status', planStatuses))
    .addOption(choiceOption('--disabled <disabled>', 'only disabled accounts, or only others', ['true', 'false']))
    .description('list accounts by one filter or more')
    .action((_, command: Command) => listUsers(command.optsWithGlobals()))
  addExamples(list, ['--status past_due', '--disabled true --all --json'])
}

function addGrantCommand(users: Command): void {
  const grant = addReasonOption(users.command('grant'))
    .argument(...account)
    .addOption(choiceOption('--plan <tier>', 'free withdraws what was granted', planTiers).default('paid'))
    .option('--addons <number>', `add-ons, 0 to ${addonsMax}`, parseWholeNumber(0, addonsMax), 0)
    .option('--until <time>', 'when the grant ends; without it, never', parseTime)
    .description('grant a complimentary plan, or withdraw it')
    .action((text: string, _, command: Command) => grantPlan(text, command.optsWithGlobals()))
  addExamples(grant, [
    'streamer@example.com --addons 1',
    'streamer@example.com --until 2027-01-31 --reason "beta tester"',
    'streamer@example.com --plan free',
  ])
}

/** The commands that enable or disable an account or its relays. */
function addAccessCommands(users: Command): void {
  const reason = '--reason "chargeback, ticket 4711"'
  addExamples(addDestructiveOptions(users.command('disable').argument(...account)), [`streamer@example.com ${reason}`])
    .description('disable an account: ends its relays and its sign-ins, and refuses new ones')
    .action((text: string, _, command: Command) => setDisabled(text, true, command.optsWithGlobals()))
  addExamples(addReasonOption(users.command('enable').argument(...account)), ['streamer@example.com'])
    .description('enable an account again')
    .action((text: string, _, command: Command) => setDisabled(text, false, command.optsWithGlobals()))
  addExamples(addDestructiveOptions(users.command('disable-relays').argument(...account)), [
    `streamer@example.com ${reason}`,
  ])
    .description('end the relays of an account, and refuse new ones; its owner can sign in')
    .action((text: string, _, command: Command) => setRelayAccess(text, false, command.optsWithGlobals()))
  addExamples(addReasonOption(users.command('enable-relays').argument(...account)), ['streamer@example.com'])
    .description('allow relays again')
    .action((text: string, _, command: Command) => setRelayAccess(text, true, command.optsWithGlobals()))
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

async function findUsers(text: string, options: GlobalOptions): Promise<void> {
  const user = await findUser(await connect(options), text)
  if (options.json) return printJson({ users: [user], next_cursor: null })
  printTable(userColumns, [user])
}

interface UserFilter {
  readonly plan?: (typeof planTiers)[number]
  readonly status?: (typeof planStatuses)[number]
  readonly disabled?: 'true' | 'false'
}

async function listUsers(options: ListOptions & UserFilter): Promise<void> {
  const { plan, status, disabled } = options
  if ((plan ?? status ?? disabled) === undefined) throw usageError('Add --plan, --status or --disabled.')
  const api = await connect(options)
  const filter = {
    ...(plan === undefined ? {} : { plan_tier: plan }),
    ...(status === undefined ? {} : { plan_status: status }),
    ...(disabled === undefined ? {} : { disabled }),
  }
  const readPage = async (cursor: { cursor?: string }) =>
    expectSuccess(await api.GET('/api/v1/admin/users', { params: { query: { ...filter, ...cursor } } }))
  await printList({ key: 'users', columns: userColumns, readPage }, options)
}

async function showUser(text: string, options: GlobalOptions): Promise<void> {
  const api = await connect(options)
  const id = await readAccountId(api, text)
  const detail = await readUser(api, id)
  if (options.json) return printJson(detail)
  const { user, usage, sessions } = detail
  printFields([
    ...userFields(user),
    ...entitlementFields(detail.entitlement),
    ...workflowFields(detail.subscription),
    ['usage', `${formatDuration(usage.consumed_seconds)} of ${formatDuration(usage.included_seconds)}`],
    ['cycle', `${formatTime(usage.cycle_start)} to ${formatTime(usage.cycle_end)}`],
  ])
  printHeading('Live sessions')
  printTable(sessionColumns, sessions)
}

const readUser = async (api: ApiClient, id: string): Promise<UserDetail> =>
  expectSuccess(await api.GET('/api/v1/admin/users/{id}', { params: { path: { id } } }), `The request for ${id}`)

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
  ['grace ends', formatTime(entitlement.grace_ends_at)],
]

const workflowFields = ({ temporal_ui_url, live }: Omit<Plan, 'entitlement'>): Field[] => [
  ['workflow', temporal_ui_url],
  ['workflow says', live ? `${live.plan_tier}, ${live.plan_status}, add-ons: ${live.addons}` : 'no answer'],
  ['next deadline', formatTime(live?.wakes_at)],
]

async function showPlan(text: string, options: GlobalOptions): Promise<void> {
  const api = await connect(options)
  const path = { id: await readAccountId(api, text) }
  const plan: Plan = expectSuccess(await api.GET('/api/v1/admin/users/{id}/subscription', { params: { path } }))
  if (options.json) return printJson(plan)
  printFields([...entitlementFields(plan.entitlement), ...workflowFields(plan)])
}

const subscriptionColumns: readonly Column<Subscription>[] = [
  { header: 'SUBSCRIPTION', value: ({ subscription_id }) => subscription_id },
  { header: 'PROVIDER', value: ({ provider }) => provider },
  { header: 'KIND', value: ({ kind }) => kind },
  { header: 'QUANTITY', value: ({ quantity }) => quantity },
  { header: 'STATUS', value: ({ status }) => status },
  { header: 'PERIOD ENDS', value: ({ period_end }) => formatTime(period_end) },
  { header: 'CUSTOMER', value: ({ customer_id }) => customer_id },
]

async function listSubscriptions(text: string, options: GlobalOptions): Promise<void> {
  const api = await connect(options)
  const path = { id: await readAccountId(api, text) }
  const reply = expectSuccess(await api.GET('/api/v1/admin/users/{id}/subscriptions', { params: { path } }))
  if (options.json) return printJson(reply)
  printTable(subscriptionColumns, reply.subscriptions)
}

interface GrantOptions extends ChangeOptions {
  readonly plan: (typeof planTiers)[number]
  readonly addons: number
  readonly until?: string
}

async function grantPlan(text: string, options: GrantOptions): Promise<void> {
  const api = await connect(options)
  const { plan, addons, until, reason } = options
  const reply = await requestGrant(api, await readAccountId(api, text), {
    plan_tier: plan,
    addons,
    ...(until === undefined ? {} : { until }),
    ...(reason === undefined ? {} : { reason }),
  })
  if (options.json) return printJson(reply)
  printFields(entitlementFields(reply.entitlement))
}

async function setDisabled(text: string, disabled: boolean, options: ChangeOptions): Promise<void> {
  const api = await connect(options)
  const path = { id: await readAccountId(api, text) }
  if (disabled) await confirm(`Disable the account ${text}, and end its relays and sign-ins?`, options)
  const body = { disabled, ...(options.reason === undefined ? {} : { reason: options.reason }) }
  const reply = expectSuccess(await api.POST('/api/v1/admin/users/{id}/disable', { params: { path }, body }))
  if (options.json) return printJson(reply)
  printFields(userFields(reply.user))
}

async function setRelayAccess(text: string, enabled: boolean, options: ChangeOptions): Promise<void> {
  const api = await connect(options)
  const path = { id: await readAccountId(api, text) }
  if (!enabled) await confirm(`End the relays of ${text}, and refuse new ones?`, options)
  const body = { enabled, ...(options.reason === undefined ? {} : { reason: options.reason }) }
  const reply = expectSuccess(await api.POST('/api/v1/admin/users/{id}/relay-access', { params: { path }, body }))
  if (options.json) return printJson(reply)
  printFields(entitlementFields(reply.entitlement))
}
