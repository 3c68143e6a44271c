/** Bodies of the API's replies to operators. */
import type { Reply } from '../../client/reply.ts'

export type AccountDetail = Reply<'get', '/admin/users/{id}'>
export type ProviderSubscription = Reply<'get', '/admin/users/{id}/subscriptions'>['subscriptions'][number]
export type SessionPage = Reply<'get', '/admin/sessions'>
export type OperatorSession = SessionPage['sessions'][number]
export type OperatorSessionDetail = Reply<'get', '/admin/sessions/{id}'>
export type EventPage = Reply<'get', '/admin/billing/events'>
export type BillingEvent = EventPage['events'][number]
export type BillingEventDetail = Reply<'get', '/admin/billing/events/{id}'>['event']
export type WithdrawalPage = Reply<'get', '/admin/billing/withdrawals'>
export type OperatorWithdrawal = WithdrawalPage['withdrawals'][number]
export type BilledAccountPage = Reply<'get', '/admin/billing/accounts'>
export type InstancePage = Reply<'get', '/admin/instances'>
export type Instance = InstancePage['instances'][number]
export type AuditPage = Reply<'get', '/admin/audit'>
export type Region = Reply<'get', '/admin/regions'>['regions'][number]
