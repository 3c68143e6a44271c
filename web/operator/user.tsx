/** One account: what it has, what it may do, and the acts of operators on it. */
import type { ComponentChildren } from 'preact'
import type { ApiResponse } from '../api.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { NoticeMessage, type Problem, ProblemMessage } from '../pages/messages.tsx'
import type { AccountDetail, AuditPage, EventPage, ProviderSubscription, SessionPage } from './operator-replies.ts'
import { refusedPage, withCode } from './refused-page.tsx'
import { PlanBadge } from './state-badges.tsx'
import { submitAct } from './submit-act.ts'
import { UserActs } from './user-acts.tsx'
import { AccountFacts, EntitlementFacts } from './user-facts.tsx'
import { RecentAudit, RecentEvents, Relays } from './user-lists.tsx'
import { Subscriptions } from './user-subscriptions.tsx'

const path = '/operator/users/:id'

const notices: Readonly<Record<string, string>> = {
  grant: 'The plan is granted.',
  withdraw: 'The granted plan is withdrawn. A plan that is paid for at a provider stays.',
  'relay-access': 'The access to relays is changed.',
  disable: 'The account is disabled. Its sign-ins and relays are ended.',
  enable: 'The account is enabled. Its owner can sign in again.',
}

export const show: PageRoute = {
  method: 'GET',
  path,
  caller: 'operator',
  handle: (visit) => userPage(visit, { done: visit.query.get('done') ?? '' }),
}

interface UserAct {
  /** The last segment of the paths of the form. */
  readonly name: string
  /** The last segment of the path of the API. */
  readonly apiName: string
  readonly readBody: (form: URLSearchParams) => object
}

const actOf = ({ name, apiName, readBody }: UserAct): PageRoute => ({
  method: 'POST',
  path: `${path}/${name}`,
  caller: 'operator',
  returnTo: '/operator/users',
  handle: (visit) => {
    const { id } = visit.params
    return submitAct(visit, {
      path: `/api/v1/admin/users/${id}/${apiName}`,
      body: readBody(visit.form),
      redirectTo: `/operator/users/${id}?done=${name}`,
      showProblem: (problem, status) => userPage(visit, { problem: withCode(problem), status }),
    })
  },
})

/** A day counts to its end, in UTC. */
const endOf = (day: string): object => (day === '' ? {} : { until: `${day}T23:59:59Z` })

export const grant = actOf({
  name: 'grant',
  apiName: 'grant',
  readBody: (form) => ({
    ...{ plan_tier: 'paid', addons: Number(form.get('addons') || '0') },
    ...endOf(form.get('until') ?? ''),
  }),
})
export const withdraw = actOf({ name: 'withdraw', apiName: 'grant', readBody: () => ({ plan_tier: 'free' }) })
export const relayAccess = actOf({
  name: 'relay-access',
  apiName: 'relay-access',
  readBody: (form) => ({ enabled: form.get('enabled') === 'true' }),
})
export const disable = actOf({ name: 'disable', apiName: 'disable', readBody: () => ({ disabled: true }) })
export const enable = actOf({ name: 'enable', apiName: 'disable', readBody: () => ({ disabled: false }) })

interface Outcome {
  readonly done?: string
  readonly problem?: Problem
  readonly status?: number
}

interface Account {
  readonly detail: AccountDetail
  readonly subscriptions: readonly ProviderSubscription[]
  readonly events: EventPage
  readonly sessions: SessionPage
  readonly audit: AuditPage
}

async function userPage(visit: Visit, { done = '', problem, status = 200 }: Outcome): Promise<PageResult> {
  const account = await readAccount(visit)
  if ('refused' in account) return refusedPage('users', 'User', account.refused)
  const text = Object.hasOwn(notices, done) ? notices[done] : undefined
  return {
    name: 'operator-user',
    title: account.detail.user.email ?? 'Account without an address',
    console: 'users',
    status,
    page: (
      <UserPage account={account}>
        <NoticeMessage notice={text === undefined ? undefined : { code: done, text }} />
        <ProblemMessage problem={problem} />
      </UserPage>
    ),
  }
}

/** Everything at once: the snapshot of the workflow takes up to two seconds. */
async function readAccount({ params, callOperatorApi }: Visit): Promise<Account | { readonly refused: ApiResponse }> {
  const user = `/api/v1/admin/users/${params.id}`
  const filter = `?user_id=${encodeURIComponent(params.id ?? '')}`
  const responses = await Promise.all([
    callOperatorApi<AccountDetail>('GET', user),
    callOperatorApi<{ subscriptions: ProviderSubscription[] }>('GET', `${user}/subscriptions`),
    callOperatorApi<EventPage>('GET', `/api/v1/admin/billing/events${filter}`),
    callOperatorApi<SessionPage>('GET', `/api/v1/admin/sessions${filter}`),
    callOperatorApi<AuditPage>('GET', `/api/v1/admin/audit${filter}`),
  ])
  const refused = responses.find(({ status }) => status !== 200)
  if (refused) return { refused }
  const [detail, subscriptions, events, sessions, audit] = responses
  return {
    detail: detail.body,
    subscriptions: subscriptions.body.subscriptions,
    events: events.body,
    sessions: sessions.body,
    audit: audit.body,
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
      <Subscriptions subscriptions={subscriptions} entitlement={entitlement} workflow={detail.subscription} />
      <RecentEvents userId={user.id} events={events.events} />
      <RecentAudit userId={user.id} entries={audit.entries} />
    </>
  )
}
