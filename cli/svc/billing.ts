/** `svc billing`: the billing inbox, and accounts that pay for nothing. */
import { Argument, type Command, Option } from 'commander'
import type { Reply } from '../../client/reply.ts'
import { billingEventStatuses, billingSources } from '../../domain/billing/event.ts'
import { byId, defineCommand, defined, defineRequest } from './commands.ts'
import { defineList } from './lists.ts'
import {
  accountOption,
  type ChangeOptions,
  choiceOption,
  exampleId,
  type GlobalOptions,
  parseId,
  type ReasonOptions,
  reasonOption,
} from './options.ts'
import { type Field, formatTime, printFields, printHeading } from './output.ts'

type BillingEvent = Reply<'get', '/admin/billing/events'>['events'][number]

const subject = { argument: new Argument('<event>', 'id of the billing event').argParser(parseId), example: exampleId }

export function addBillingCommands(program: Command): void {
  const billing = program.command('billing').description('billing events, and accounts that pay for nothing')
  const events = billing.command('events').description('events of the billing provider and of operators')
  addListCommand(events)
  addEventCommands(events)
  defineCommand<GlobalOptions & { readonly dryRun?: boolean }>(billing.command('reconcile'), {
    description:
      "compare all subscriptions with the billing provider's list, and apply the differences. Works without the API, with the variables of the worker or a stack in SVC_DATA_DIR. Exit code 6 if differences wait for the next run",
    examples: ['--dry-run', ''],
    options: [new Option('--dry-run', 'report the differences and store nothing')],
    run: async ({ dryRun = false, ...options }) => {
      // Large modules, which the other commands do not load.
      const { reconcileBilling } = await import('../direct/billing-reconciliation.ts')
      await reconcileBilling(dryRun, options)
    },
  })
  const kinds = ['without_plan', 'twice']
  defineList(billing.command('unused'), {
    description: 'list accounts that pay for nothing',
    examples: ['--billed without_plan', '--billed twice --all'],
    path: '/admin/billing/accounts',
    key: 'accounts',
    filters: {
      billed: choiceOption('--billed <how>', 'add-ons without a plan, or two plans', kinds).makeOptionMandatory(),
    },
    columns: [
      { header: 'ACCOUNT', value: ({ user_id }) => user_id },
      { header: 'EMAIL', value: ({ masked_email }) => masked_email },
      { header: 'ADD-ONS WITHOUT PLAN', value: ({ addons_without_plan }) => addons_without_plan },
      { header: 'BILLED PLANS', value: ({ billed_plans }) => billed_plans },
    ],
  })
}

function addListCommand(events: Command): void {
  defineList(events.command('list'), {
    description: 'list billing events, newest first',
    examples: ['--status parked', '--user streamer@example.com --all --json'],
    path: '/admin/billing/events',
    key: 'events',
    filters: {
      status: choiceOption('--status <status>', 'only events with this status', billingEventStatuses),
      provider: choiceOption('--provider <provider>', 'only events of this provider', billingSources),
      user_id: accountOption('only events of this account'),
    },
    columns: [
      { header: 'EVENT', value: ({ id }) => id },
      { header: 'RECEIVED', value: ({ received_at }) => formatTime(received_at) },
      { header: 'STATUS', value: ({ status }) => status },
      { header: 'PROVIDER', value: ({ provider }) => provider },
      { header: 'TYPE', value: ({ type }) => type },
      { header: 'ACTION', value: ({ action }) => action },
      { header: 'ACCOUNT', value: ({ user_id }) => user_id },
      { header: 'EMAIL', value: ({ masked_email }) => masked_email },
      { header: 'ERROR', value: ({ error }) => error },
    ],
  })
}

function addEventCommands(events: Command): void {
  defineRequest(events.command('show'), {
    description: 'show a billing event with its normalised form',
    subject,
    request: (api, id) => api.GET('/api/v1/admin/billing/events/{id}', byId(id)),
    print: ({ event }) => {
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
    },
  })
  defineRequest(events.command('replay'), {
    description: 'parse a billing event again and evaluate its account again; safe to repeat',
    subject,
    options: [reasonOption],
    request: (api, id, { reason }: ChangeOptions) =>
      api.POST('/api/v1/admin/billing/events/{id}/replay', { ...byId(id), body: defined({ reason }) }),
    print: ({ event }) => printFields(eventFields(event)),
  })
  defineRequest(events.command('dismiss'), {
    description: 'set a parked or dead event aside',
    examples: [`${exampleId} --reason "test"`],
    subject,
    question: (id) => `Dismiss the billing event ${id}?`,
    request: (api, id, { reason }: ReasonOptions) =>
      api.POST('/api/v1/admin/billing/events/{id}/dismiss', { ...byId(id), body: { reason } }),
    print: ({ event }) => printFields(eventFields(event)),
  })
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
