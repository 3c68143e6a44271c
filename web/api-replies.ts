/** Names for the parts of the API's successful replies that several pages show. */
import type { Reply } from '../client/reply.ts'

type AccountSummary = Reply<'get', '/auth/session'>
export type Account = AccountSummary['user']
export type LinkedAccount = Account['linked_accounts'][number]
export type Entitlement = AccountSummary['entitlement']
export type FirstSteps = AccountSummary['first_steps']
export type Usage = AccountSummary['usage']
export type UsageByDay = Reply<'get', '/usage/days'>
export type AuthSession = Reply<'get', '/auth/sessions'>['sessions'][number]
export type ActivityEntry = Reply<'get', '/auth/activity'>['entries'][number]
export type LoginAttempt = Reply<'get', '/auth/plugin/login/attempts/{id}'>
export type Billing = Reply<'get', '/billing/subscription'>
export type Subscription = Billing['subscriptions'][number]
export type Withdrawals = Reply<'get', '/billing/withdrawals'>
export type Contract = Withdrawals['contracts'][number]
export type Withdrawal = Withdrawals['withdrawals'][number]
export type SandboxSubscription = Reply<'get', '/billing/sandbox/subscriptions'>['subscriptions'][number]
export type ConnectedApp = Reply<'get', '/auth/apps'>['apps'][number]
export type AppRequest = Reply<'get', '/auth/apps/requests/{id}'>
export type PlayKeys = Reply<'get', '/relay/play-keys'>
export type PlayKey = PlayKeys['play_keys'][number]
export type Connection = Reply<'get', '/relay/connections'>['connections'][number]
/** A live relay session. */
export type Session = Reply<'get', '/relay/active'>['sessions'][number]
export type Region = Reply<'get', '/relay/manifest'>['regions'][number]
/** A relay session in its owner's history. */
export type EndedSession = Reply<'get', '/relay/sessions'>['sessions'][number]
export type SessionDetail = Reply<'get', '/relay/sessions/{id}'>
export type SessionTransition = SessionDetail['transitions'][number]
export type SessionStreamEvent = SessionDetail['stream_events'][number]
/** The points and the events of a session. */
export type StreamRecord = Reply<'get', '/relay/sessions/{id}/record'>
export type RecordEvent = StreamRecord['events'][number]
export type StreamPoint = StreamRecord['points'][number]
export type SharedSession = Reply<'get', '/shared/{token}'>
