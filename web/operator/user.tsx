/** One account: what it has, what it may do, and the acts of operators on it. */
import type { ComponentChildren } from 'preact'
import type { ApiResult } from '../../client/api-error.ts'
import type { PageResult, Visit } from '../page.ts'
import { createActs, type Outcome, OutcomeMessages } from './acts.tsx'
import type { AccountDetail, AuditPage, EventPage, ProviderSubscription, SessionPage } from './operator-replies.ts'
import { refusedPage } from './refused-page.tsx'
import { PlanBadge } from './state-badges.tsx'
import { UserActs } from './user-acts.tsx'
import { AccountFacts, EntitlementFacts } from './user-facts.tsx'
import { RecentAudit, RecentEvents, Relays } from './user-lists.tsx'
import { PlayKeys } from './user-play-keys.tsx'
import { Subscriptions } from './user-subscriptions.tsx'

const { show, act } = createActs({
  pathOf: ({ params }) => `/operator/users/${params.id}`,
  notices: {
    grant: 'The plan is granted.',
    withdraw: 'The granted plan is withdrawn. A plan that is paid for at a provider stays.',
    'relay-access': 'The access to relays is changed.',
    disable: 'The account is disabled. Its sign-ins and relays are ended.',
    enable: 'The account is enabled. Its owner can sign in again.',
  },
  page: userPage,
})

export { show }

/** A day counts to its end, in UTC. */
const endOf = (day: string): { until?: string } => (day === '' ? {} : { until: `${day}T23:59:59Z` })

export const grant = act('grant', ({ form, operatorApi }, path, reason) => {
  const addons = Number(form.get('addons') || '0')
  const body = { plan_tier: 'paid', addons, ...endOf(form.get('until') ?? ''), reason } as const
  return operatorApi.POST('/api/v1/admin/users/{id}/grant', { params: { path }, body })
})
export const withdraw = act('withdraw', ({ operatorApi }, path, reason) =>
  operatorApi.POST('/api/v1/admin/users/{id}/grant', { params: { path }, body: { plan_tier: 'free', reason } }),
)
export const relayAccess = act('relay-access', ({ form, operatorApi }, path, reason) => {
  const body = { enabled: form.get('enabled') === 'true', reason }
  return operatorApi.POST('/api/v1/admin/users/{id}/relay-access', { params: { path }, body })
})
export const disable = act('disable', ({ operatorApi }, path, reason) =>
  operatorApi.POST('/api/v1/admin/users/{id}/disable', { params: { path }, body: { disabled: true, reason } }),
)
export const enable = act('enable', ({ operatorApi }, path, reason) =>
  operatorApi.POST('/api/v1/admin/users/{id}/disable', { params: { path }, body: { disabled: false, reason } }),
)

interface Account {
  readonly detail: AccountDetail
  readonly subscriptions: readonly ProviderSubscription[]
  readonly events: EventPage
  readonly sessions: SessionPage
  readonly audit: AuditPage
}

async function userPage(visit: Visit, outcome: Outcome): Promise<PageResult> {
  const account = await readAccount(visit)
  if ('refused' in account) return refusedPage('users', 'User', account.refused)
  return {
    name: 'operator-user',
    title: account.detail.user.email ?? 'Account without an address',
    console: 'users',
    status: outcome.status ?? 200,
    page: (
      <UserPage account={account}>
        <OutcomeMessages outcome={outcome} />
      </UserPage>
    ),
  }
}

/** Everything at once: the snapshot of the workflow takes up to two seconds. */
async function readAccount({ params, operatorApi }: Visit): Promise<Account | { readonly refused: ApiResult }> {
  const { id = '' } = params
  const path = { id }
  const query = { user_id: id }
  const [user, subscriptions, events, sessions, audit] = await Promise.all([
    operatorApi.GET('/api/v1/admin/users/{id}', { params: { path } }),
    operatorApi.GET('/api/v1/admin/users/{id}/subscriptions', { params: { path } }),
    operatorApi.GET('/api/v1/admin/billing/events', { params: { query } }),
    operatorApi.GET('/api/v1/admin/sessions', { params: { query } }),
    operatorApi.GET('/api/v1/admin/audit', { params: { query } }),
  ])
  if (!user.data) return { refused: user }
  if (!subscriptions.data) return { refused: subscriptions }
  if (!events.data) return { refused: events }
  if (!sessions.data) return { refused: sessions }
  if (!audit.data) return { refused: audit }
  return {
    detail: user.data,
    subscriptions: subscriptions.data.subscriptions,
    events: events.data,
    sessions: sessions.data,
    audit: audit.data,
  }
}

interface UserPageProps {
  readonly account: Account
  readonly children: ComponentChildren
}

const UserPage = ({ account, children }: UserPageProps) => {
  const { detail, subscriptions, events, sessions, audit } = account
  const { user, entitlement, usage } = detail
  return (
    <>
      <div class="page-head">
        <h1>{user.email ?? 'Account without an address'}</h1>
        <p class="row">
          {user.disabled ? <span class="badge bad">disabled</span> : null}
          <PlanBadge tier={entitlement.plan_tier} status={entitlement.plan_status} />
        </p>
      </div>
      {children}
      <div class="grid-2" data-user={user.id}>
        <AccountFacts user={user} />
        <EntitlementFacts entitlement={entitlement} usage={usage} />
      </div>
      <UserActs user={user} entitlement={entitlement} />
      <Relays userId={user.id} sessions={sessions} />
      <PlayKeys play_keys={detail.play_keys} play_with_keys_only={detail.play_with_keys_only} />
      <Subscriptions subscriptions={subscriptions} entitlement={entitlement} workflow={detail.subscription} />
      <RecentEvents userId={user.id} events={events.events} />
      <RecentAudit userId={user.id} entries={audit.entries} />
    </>
  )
}
