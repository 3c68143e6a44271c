/** `svc billing`: the billing inbox, and accounts that pay for nothing. */
import type { Command } from 'commander'
import { expectSuccess } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import { billingEventStatuses, billingSources } from '../../domain/billing/event.ts'
import { readAccountId } from './accounts.ts'
import { confirm } from './confirmation.ts'
import { connect } from './connection.ts'
import { addExamples } from './examples.ts'
import {
  addDestructiveOptions,
  addListOptions,
  addReasonOption,
  type ChangeOptions,
  choiceOption,
  type GlobalOptions,
  type ListOptions,
  parseAccount,
  parseId,
} from './options.ts'
import { type Column, type Field, formatTime, printFields, printHeading, printJson } from './output.ts'
import { printList } from './pages.ts'

type BillingEvent = Reply<'get', '/admin/billing/events'>['events'][number]
type UnusedBilling = Reply<'get', '/admin/billing/accounts'>['accounts'][number]

const eventId = ['<event>', 'id of the billing event', parseId] as const
const exampleId = '5d3f0c62-8a1e-4b7d-9c05-2f6e1a7b4d90'

export function addBillingCommands(program: Command): void {
  const billing = program.command('billing').description('billing events, and accounts that pay for nothing')
  addEventsCommands(billing.command('events').description('events of the billing provider and of operators'))
  addExamples(billing.command('reconcile'), ['--dry-run', ''])
    .option('--dry-run', 'report the differences and store nothing')
    .description(
      "compare all subscriptions with the billing provider's list, and apply the differences. Works without the API, with the variables of the worker or a stack in SVC_DATA_DIR. Exit code 6 if differences wait for the next run",
    )
    .action((_, command: Command) => reconcile(command.optsWithGlobals()))
  addExamples(addListOptions(billing.command('unused')), ['--billed without_plan', '--billed twice --all'])
    .addOption(
      choiceOption('--billed <how>', 'add-ons without a plan, or two plans', [
        'without_plan',
        'twice',
      ]).makeOptionMandatory(),
    )
    .description('list accounts that pay for nothing')
    .action((_, command: Command) => listUnused(command.optsWithGlobals()))
}

function addEventsCommands(events: Command): void {
  addExamples(addListOptions(events.command('list')), ['--status parked', '--user streamer@example.com --all --json'])
    .addOption(choiceOption('--status <status>', 'only events with this status', billingEventStatuses))
    .addOption(choiceOption('--provider <provider>', 'only events of this provider', billingSources))
    .option('--user <account>', 'only events of this account: its email address or id', parseAccount)
    .description('list billing events, newest first')
    .action((_, command: Command) => listEvents(command.optsWithGlobals()))
  addExamples(events.command('show').argument(...eventId), [exampleId])
    .description('show a billing event with its normalised form')
    .action((id: string, _, command: Command) => showEvent(id, command.optsWithGlobals()))
  addExamples(addReasonOption(events.command('replay').argument(...eventId)), [exampleId])
    .description('parse a billing event again and evaluate its account again; safe to repeat')
    .action((id: string, _, command: Command) => replayEvent(id, command.optsWithGlobals()))
  addExamples(addDestructiveOptions(events.command('dismiss').argument(...eventId)), [`${exampleId} --reason "test"`])
    .description('set a parked or dead event aside')
    .action((id: string, _, command: Command) => dismissEvent(id, command.optsWithGlobals()))
}

const eventColumns: readonly Column<BillingEvent>[] = [
  { header: 'EVENT', value: ({ id }) => id },
  { header: 'RECEIVED', value: ({ received_at }) => formatTime(received_at) },
  { header: 'STATUS', value: ({ status }) => status },
  { header: 'PROVIDER', value: ({ provider }) => provider },
  { header: 'TYPE', value: ({ type }) => type },
  { header: 'ACTION', value: ({ action }) => action },
  { header: 'ACCOUNT', value: ({ user_id }) => user_id },
  { header: 'EMAIL', value: ({ masked_email }) => masked_email },
  { header: 'ERROR', value: ({ error }) => error },
]

interface EventFilter {
  readonly status?: (typeof billingEventStatuses)[number]
  readonly provider?: (typeof billingSources)[number]
  readonly user?: string
}

async function listEvents(options: ListOptions & EventFilter): Promise<void> {
  const api = await connect(options)
  const { status, provider, user } = options
  const filter = {
    ...(status === undefined ? {} : { status }),
    ...(provider === undefined ? {} : { provider }),
    ...(user === undefined ? {} : { user_id: await readAccountId(api, user) }),
  }
  const readPage = async (cursor: { cursor?: string }) =>
    expectSuccess(await api.GET('/api/v1/admin/billing/events', { params: { query: { ...filter, ...cursor } } }))
  await printList({ key: 'events', columns: eventColumns, readPage }, options)
}

async function showEvent(id: string, options: GlobalOptions): Promise<void> {
  const api = await connect(options)
  const reply = expectSuccess(await api.GET('/api/v1/admin/billing/events/{id}', { params: { path: { id } } }))
  if (options.json) return printJson(reply)
  const { event } = reply
  printFields([
    ...eventFields(event),
    ['subscription', event.subscription_id],
    ['names account', event.user_ref],
    ['failed requests', event.attempts],
    ['next request', formatTime(event.next_attempt_at)],
    ['applied', formatTime(event.applied_at)],
  ])
  if (event.normalised === null) return
  printHeading('Normalised')
  printFields(Object.entries(event.normalised))
}

const eventFields = (event: BillingEvent): Field[] => [
  ['event', event.id],
  ['status', event.status],
  ['error', event.error],
  ['provider', event.provider],
  ['type', event.type],
  ['action', event.action],
  ['account', event.user_id],
  ['email', event.masked_email],
  ['key', event.event_key],
  ['received', formatTime(event.received_at)],
  ['occurred', formatTime(event.occurred_at)],
]

async function replayEvent(id: string, options: ChangeOptions): Promise<void> {
  const api = await connect(options)
  const body = options.reason === undefined ? {} : { reason: options.reason }
  const params = { path: { id } }
  printChange(expectSuccess(await api.POST('/api/v1/admin/billing/events/{id}/replay', { params, body })), options)
}

async function dismissEvent(id: string, options: ChangeOptions): Promise<void> {
  const api = await connect(options)
  await confirm(`Dismiss the billing event ${id}?`, options)
  const body = { reason: options.reason ?? '' }
  const params = { path: { id } }
  printChange(expectSuccess(await api.POST('/api/v1/admin/billing/events/{id}/dismiss', { params, body })), options)
}

const printChange = (reply: { event: BillingEvent }, { json }: GlobalOptions): void =>
  json ? printJson(reply) : printFields(eventFields(reply.event))

const unusedColumns: readonly Column<UnusedBilling>[] = [
  { header: 'ACCOUNT', value: ({ user_id }) => user_id },
  { header: 'EMAIL', value: ({ masked_email }) => masked_email },
  { header: 'ADD-ONS WITHOUT PLAN', value: ({ addons_without_plan }) => addons_without_plan },
  { header: 'BILLED PLANS', value: ({ billed_plans }) => billed_plans },
]

async function listUnused(options: ListOptions & { readonly billed: 'without_plan' | 'twice' }): Promise<void> {
  const api = await connect(options)
  const { billed } = options
  const readPage = async (cursor: { cursor?: string }) =>
    expectSuccess(await api.GET('/api/v1/admin/billing/accounts', { params: { query: { billed, ...cursor } } }))
  await printList({ key: 'accounts', columns: unusedColumns, readPage }, options)
}

async function reconcile({ dryRun = false, ...options }: GlobalOptions & { readonly dryRun?: boolean }): Promise<void> {
  // Large modules, which the other commands do not load.
  const { reconcileBilling } = await import('../direct/billing-reconciliation.ts')
  await reconcileBilling({ dryRun, ...options })
}
