/** States as badges, whose colour says whether someone must look. */
import type { BillingEvent, Instance, OperatorSession, OperatorWithdrawal } from './operator-replies.ts'

type Look = 'good' | 'warn' | 'bad' | 'live' | undefined

const Badge = ({ look, children }: { readonly look: Look; readonly children: string }) => (
  <span class={`badge ${look ?? 'plain'}`}>{children}</span>
)

const sessionLooks: Readonly<Record<OperatorSession['state'], Look>> = {
  provisioning: undefined,
  active: 'live',
  grace: 'warn',
  stopped: undefined,
}

export const SessionState = ({ state }: Pick<OperatorSession, 'state'>) => (
  <Badge look={sessionLooks[state]}>{state}</Badge>
)

const eventLooks: Readonly<Record<BillingEvent['status'], Look>> = {
  unresolved: 'warn',
  pending: 'warn',
  applied: 'good',
  ignored: undefined,
  parked: 'bad',
  dead: 'bad',
  dismissed: undefined,
}

export const EventStatus = ({ status }: Pick<BillingEvent, 'status'>) => (
  <Badge look={eventLooks[status]}>{status}</Badge>
)

/** What an instance is there for. */
export function instanceUse(instance: Instance): 'gone' | 'retired' | 'assigned' | 'orphan' | 'warm' | 'unassigned' {
  if (instance.gone_at !== null) return 'gone'
  if (instance.owned) return 'assigned'
  if (instance.retired_at !== null) return 'retired'
  if (instance.unowned_since !== null) return 'orphan'
  return instance.warm ? 'warm' : 'unassigned'
}

const instanceLooks: Readonly<Record<ReturnType<typeof instanceUse>, Look>> = {
  gone: undefined,
  retired: undefined,
  assigned: 'live',
  orphan: 'bad',
  warm: 'good',
  unassigned: 'warn',
}

export const InstanceUse = ({ instance }: { readonly instance: Instance }) => {
  const use = instanceUse(instance)
  return <Badge look={instanceLooks[use]}>{use}</Badge>
}

export const PlanBadge = ({ tier, status }: { readonly tier: string; readonly status: string }) => (
  <Badge look={tier === 'free' ? undefined : status === 'past_due' ? 'bad' : status === 'cancelled' ? 'warn' : 'good'}>
    {status === 'none' ? tier : `${tier}, ${status}`}
  </Badge>
)

export const WithdrawalStatus = ({ of: withdrawal }: { readonly of: OperatorWithdrawal }) => {
  if (withdrawal.refunded_at !== null) return <Badge look="good">refunded</Badge>
  return withdrawal.refund_error === null ? <Badge look="warn">open</Badge> : <Badge look="bad">refund failed</Badge>
}
