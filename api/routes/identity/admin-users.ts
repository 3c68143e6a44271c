/** Accounts for operators. Every change is recorded as an audit entry. */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { type AuditEntry, recordAuditEntry } from '../../../db/audit.ts'
import { findUserIdsByBillingId } from '../../../db/billing/customers.ts'
import { type Entitlement, findEntitlementsWithUsage } from '../../../db/billing/entitlements.ts'
import { findEventStatus, recordGrant } from '../../../db/billing/events.ts'
import type { Sql } from '../../../db/connection.ts'
import { findPlayAccess } from '../../../db/identity/play-access.ts'
import { findProfile, findProfileByEmail, listProfiles, type ProfileRow } from '../../../db/identity/profiles.ts'
import { lockUser, setDisabled, setRelayAccess } from '../../../db/identity/users.ts'
import { disconnectAll } from '../../../db/relay/commands.ts'
import { listPlayKeys } from '../../../db/relay/play-keys.ts'
import { listLiveSessions, type RelaySessionRow } from '../../../db/relay/sessions.ts'
import { revokeAllAccess } from '../../../db/transactions/secure-account.ts'
import { addonsMax, planStatuses, planTiers } from '../../../domain/billing/plans.ts'
import { parseEmailAddress } from '../../../domain/identity/email-address.ts'
import { maskAccountEmail } from '../../../domain/identity/masked-email.ts'
import { playKeyKinds } from '../../../domain/relay/play-keys.ts'
import { present } from '../../http/present.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import type { Request } from '../../http/requests.ts'
import { id, storableText, timestamp } from '../../http/schemas.ts'
import type { Services } from '../../services.ts'
import { SubscriptionWorkflowView, showSubscriptionWorkflow } from '../../views/subscription-workflow.ts'
import { presentUsage, UsageView } from '../billing/usage.ts'
import { OperatorSession, presentForOperator } from '../relay/admin-sessions.ts'
import { route } from '../route.ts'
import { Reason, reasonDetail } from '../schemas.ts'
import { EntitlementView, presentEntitlement, presentUser, UserView } from './session-summary.ts'

const ById = z.object({ id })
const PlayKeyName = z.object({
  id,
  name: z.string(),
  kind: z.enum(playKeyKinds),
  connection_id: z.string().nullable(),
  created_at: timestamp,
  last_used_at: timestamp.nullable(),
})
const OperatorUser = UserView.extend({ disabled: z.boolean().describe('By an operator. Its owner cannot sign in.') })
const UserDetail = z.object({
  user: OperatorUser,
  entitlement: EntitlementView,
  usage: UsageView,
  sessions: z.array(OperatorSession),
  play_keys: z.array(PlayKeyName).describe('The play keys of the account, without the keys themselves.'),
  play_with_keys_only: z.boolean().describe('Whether the stream token does not admit players.'),
  subscription: SubscriptionWorkflowView.describe(
    'The subscription workflow of the account, which wrote its entitlement.',
  ),
})

const presentAccount = (profile: ProfileRow, entitlement: Entitlement): z.infer<typeof OperatorUser> => ({
  ...presentUser(profile, entitlement),
  disabled: profile.isDisabled,
})

const pageSize = 50

/** Without a filter nothing is listed: an operator looks at accounts for a reason. */
const UserFilter = z
  .object({
    email: storableText(254)
      .optional()
      .describe('The whole address, without regard to case. Other filters are ignored.'),
    billing_id: storableText(200)
      .optional()
      .describe('A customer or a subscription at the billing provider. Other filters except the address are ignored.'),
    plan_tier: z.enum(planTiers).optional(),
    plan_status: z.enum(planStatuses).optional(),
    disabled: z.enum(['true', 'false']).optional().describe('By an operator.'),
    cursor: id.optional(),
  })
  .refine(
    ({ email, billing_id, plan_tier, plan_status, disabled }) =>
      (email ?? billing_id ?? plan_tier ?? plan_status ?? disabled) !== undefined,
    'must have email, billing_id, plan_tier, plan_status or disabled',
  )

export const findUser = route.operator({
  id: 'findUser',
  summary: 'Find accounts',
  description:
    'The account with exactly this address, without regard to case, or an empty list. Or the accounts that match all other filters, in the order of their ids, 50 a page. One filter is required.',
  query: UserFilter,
  answers: { 200: z.object({ users: z.array(OperatorUser), next_cursor: id.nullable() }) },
  refuses: [],
  handle: async ({ query }, { sql, config }) => {
    const rows = await findAccounts(sql, query)
    const page = rows.slice(0, pageSize)
    const accounts = await findEntitlementsWithUsage(
      sql,
      page.map((profile) => profile.id),
      config.timeBank,
    )
    return ok({
      users: page.flatMap((profile) => {
        const account = accounts.get(profile.id)
        return account ? [presentAccount(profile, account.entitlement)] : []
      }),
      next_cursor: rows.length > pageSize ? (page.at(-1)?.id ?? null) : null,
    })
  },
})

const findAccounts = (sql: Sql, query: z.output<typeof UserFilter>): Promise<readonly ProfileRow[]> => {
  if (query.email !== undefined) return findByEmail(sql, query.email)
  return query.billing_id === undefined ? listAccounts(sql, query) : findByBillingId(sql, query.billing_id)
}

const findByBillingId = async (sql: Sql, billingId: string): Promise<readonly ProfileRow[]> => {
  const userIds = await findUserIdsByBillingId(sql, billingId)
  const profiles = await Promise.all(userIds.map((userId) => findProfile(sql, userId)))
  return profiles.filter((profile) => profile !== undefined)
}

/** One more than a page has if there is a next page. */
const listAccounts = (sql: Sql, { plan_tier, plan_status, disabled, cursor }: z.output<typeof UserFilter>) =>
  listProfiles(
    sql,
    {
      planTier: plan_tier,
      planStatus: plan_status,
      isDisabled: disabled === undefined ? undefined : disabled === 'true',
      after: cursor,
    },
    pageSize + 1,
  )

async function findByEmail(sql: Sql, email: string): Promise<ProfileRow[]> {
  const parsed = parseEmailAddress(email)
  const profile = 'address' in parsed ? await findProfileByEmail(sql, parsed.address) : undefined
  return profile ? [profile] : []
}

export const showUser = route.operator({
  id: 'getUser',
  summary: 'Show an account',
  description:
    'An account with its entitlement, its live sessions without secrets, and the snapshot of its subscription workflow, which may take 2 seconds.',
  params: ById,
  answers: { 200: UserDetail },
  refuses: ['not_found'],
  handle: async ({ params }, services) => {
    const [account, keys, playWithKeysOnly, sessions, subscription] = await Promise.all([
      readAccount(params.id, services),
      listPlayKeys(services.sql, params.id),
      findPlayAccess(services.sql, params.id),
      listLiveSessions(services.sql, params.id),
      showSubscriptionWorkflow(params.id, services),
    ])
    const maskedEmail = maskAccountEmail(account.user.email)
    return ok({
      ...account,
      play_keys: keys.map((key) => present(PlayKeyName, key)),
      play_with_keys_only: playWithKeysOnly,
      sessions: sessions.map((row) => presentForOperator({ ...row, maskedEmail }, services.config.relay)),
      subscription,
    })
  },
})

/** Shared by the routes that change an account. */
const changeParts = { params: ById, refuses: ['not_found'] } as const

export const grant = route.operator({
  ...changeParts,
  id: 'grantPlan',
  summary: 'Grant or withdraw a complimentary plan',
  description:
    'Grants a complimentary plan, until a date or without an end; `free` withdraws it. A plan that the account pays for is not changed. The grant is stored in any case; the reply shows its effect if it was applied within five seconds.',
  body: z.object({
    plan_tier: z.enum(['free', 'paid']),
    addons: z.int().min(0).max(addonsMax).default(0),
    until: z.iso
      .datetime({ offset: true })
      .refine(
        (text) => Date.parse(text) >= 0 && Date.parse(text) < Date.UTC(10_000, 0),
        'must be between the years 1970 and 9999',
      )
      .optional(),
    reason: Reason,
  }),
  answers: { 200: z.object({ entitlement: EntitlementView }) },
  examples: {
    requests: {
      until: {
        summary: 'The paid plan and an additional relay until a date',
        value: {
          plan_tier: 'paid',
          addons: 1,
          until: '2026-12-31T23:59:59.000Z',
          reason: 'A month for a broken stream',
        },
      },
    },
  },
  handle: async (request, services) => {
    const { plan_tier: planTier, addons, until } = request.body
    const eventId = await changeAccount(request, services, {
      action: 'plan_granted',
      detail: { plan_tier: planTier, addons, until: until ?? null },
      write: (tx, userId) => recordGrant(tx, { userId, planTier, addons, until: until ? new Date(until) : null }),
    })
    const action = planTier === 'paid' ? 'grant' : 'withdraw'
    services.billingMetrics.countEvent({ provider: 'operator', action, outcome: 'pending' })
    await waitUntilApplied(eventId, request.params.id, services)
    const { entitlement } = await readAccount(request.params.id, services)
    return ok({ entitlement })
  },
})

/**
 * The response waits this long for the subscription workflow. The grant is stored even if the workflow is not
 * available.
 */
const applyMillisMax = 5000

/** Resolves once the subscription workflow has applied the event, or after {@link applyMillisMax}. */
async function waitUntilApplied(
  eventId: string,
  userId: string,
  { sql, subscriptions, deliveries }: Services,
): Promise<void> {
  deliveries.signal(() => subscriptions.wake(userId))
  for (const deadline = Date.now() + applyMillisMax; Date.now() < deadline; await sleep(20))
    if ((await findEventStatus(sql, eventId)) === 'applied') return
}

export const relayAccess = route.operator({
  ...changeParts,
  id: 'setRelayAccess',
  summary: 'Enable or disable relays for an account',
  description:
    'Enables or disables relays for an account, whatever its plan. Disabling ends its live relays. Safe to repeat.',
  body: z.object({ enabled: z.boolean(), reason: Reason }),
  answers: { 200: z.object({ entitlement: EntitlementView }) },
  handle: async (request, services) => {
    const { enabled } = request.body
    await changeAccount(request, services, {
      action: enabled ? 'relay_access_enabled' : 'relay_access_disabled',
      endsRelays: !enabled,
      write: (tx, userId) => setRelayAccess(tx, userId, enabled),
    })
    const { entitlement } = await readAccount(request.params.id, services)
    return ok({ entitlement })
  },
})

export const disable = route.operator({
  ...changeParts,
  id: 'disableUser',
  summary: 'Disable or enable an account',
  description:
    'Disables an account and ends its auth sessions and relays, or enables it again with `disabled: false`. Safe to repeat.',
  body: z.object({ disabled: z.boolean().default(true), reason: Reason }),
  answers: { 200: z.object({ user: OperatorUser }) },
  handle: async (request, services) => {
    const { disabled } = request.body
    await changeAccount(request, services, {
      action: disabled ? 'account_disabled' : 'account_enabled',
      endsRelays: disabled,
      write: async (tx, userId) => {
        await setDisabled(tx, userId, disabled)
        if (disabled) await revokeAllAccess(tx, userId, 'account_disabled')
      },
    })
    const { user } = await readAccount(request.params.id, services)
    return ok({ user })
  },
})

interface AccountChange<Result> {
  readonly action: string
  readonly detail?: AuditEntry['detail']
  readonly endsRelays?: boolean
  readonly write: (tx: Sql, userId: string) => Promise<Result>
}

/**
 * Runs a change and records its audit entry in one transaction. Disconnected relays are signalled after the commit.
 * @returns the result of `write`. Refuses with `not_found`.
 */
async function changeAccount<Result>(
  {
    params,
    body,
    ip,
  }: Pick<Request<unknown, { id: string }, unknown, { reason?: string | undefined }>, 'params' | 'body' | 'ip'>,
  { sql, deliveries }: Services,
  { action, detail = {}, endsRelays = false, write }: AccountChange<Result>,
): Promise<Result> {
  const { result, disconnected } = (await sql.begin(async (tx) => {
    // A relay start locks the same row, so that no relay starts on an entitlement that is being removed.
    if (!(await lockUser(tx, params.id))) throw new Refusal('not_found')
    const result = await write(tx, params.id)
    await recordAuditEntry(tx, {
      initiator: 'operator',
      action,
      userId: params.id,
      ip,
      detail: { ...detail, ...reasonDetail(body) },
    })
    return { result, disconnected: endsRelays ? await disconnectAll(tx, params.id, 'operator') : [] }
  })) as { result: Result; disconnected: RelaySessionRow[] }
  for (const session of disconnected) deliveries.send(session)
  return result
}

/** Refuses with `not_found`. */
async function readAccount(userId: string, { sql, config }: Services) {
  const [profile, accounts] = await Promise.all([
    findProfile(sql, userId),
    findEntitlementsWithUsage(sql, [userId], config.timeBank),
  ])
  const account = accounts.get(userId)
  if (!profile || !account) throw new Refusal('not_found')
  return {
    user: presentAccount(profile, account.entitlement),
    entitlement: presentEntitlement(account.entitlement),
    usage: presentUsage(account, config.timeBank),
  }
}
