/** Withdrawals as tasks of operators: each is to be refunded. */
import { z } from 'zod'
import { recordAuditEntry } from '../../../db/audit.ts'
import {
  findWithdrawal,
  type ListedWithdrawal,
  listWithdrawalsOf,
  markRefunded,
  recordRefundFailure,
  withdrawalStates,
} from '../../../db/billing/withdrawals.ts'
import { billingSources } from '../../../domain/billing/event.ts'
import { subscriptionKinds } from '../../../domain/billing/plans.ts'
import { type RefundWay, refundWays } from '../../../domain/billing/withdrawal.ts'
import { BillingProviderError } from '../../../providers/billing/provider.ts'
import { pageOf, present } from '../../http/present.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import type { Services } from '../../services.ts'
import { route } from '../route.ts'
import { maskedEmail, ReasonOnly, reasonDetail } from '../schemas.ts'

const View = z
  .object({
    id,
    user_id: id.nullable().describe('Null once the account is erased.'),
    masked_email: maskedEmail,
    provider: z.enum(billingSources),
    subscription_id: z.string(),
    kind: z.enum(subscriptionKinds),
    quantity: z.int(),
    purchased_at: timestamp,
    received_at: timestamp,
    refunded_at: timestamp.nullable(),
    refunded: z
      .enum(refundWays)
      .nullable()
      .describe('`provider`: at the billing provider by this service; `elsewhere`: as an operator says.'),
    refund_error: z.string().nullable().describe('Of the last attempt that failed.'),
    refund_failed_at: timestamp.nullable(),
    can_refund: z.boolean().describe('Whether it is open, and at the billing provider that is in use.'),
  })
  .meta({ id: 'OperatorWithdrawal' })

const presentRow = (row: ListedWithdrawal, { billing }: Services) =>
  present(View, { ...row, canRefund: row.refundedAt === null && row.provider === billing.provider.name })

const pageMax = 50

export const listAll = route.operator({
  id: 'listAllWithdrawals',
  summary: 'List withdrawals',
  description:
    'Withdrawals from contracts that are to be refunded, the oldest first, or that were refunded, the newest first; 50 a page.',
  query: z.object({ state: z.enum(withdrawalStates).default('open'), cursor: id.optional() }),
  answers: { 200: z.object({ withdrawals: z.array(View), next_cursor: id.nullable() }) },
  refuses: [],
  handle: async ({ query }, services) => {
    const rows = await listWithdrawalsOf(services.sql, query.state, query.cursor, pageMax + 1)
    const page = pageOf(rows, {
      size: pageMax,
      presentRow: (row) => presentRow(row, services),
      cursorOf: (row) => row.id,
    })
    return ok({ withdrawals: page.items, next_cursor: page.next_cursor })
  },
})

const ById = z.object({ id })
const Answer = z.object({ withdrawal: View })

export const showOne = route.operator({
  id: 'inspectWithdrawal',
  summary: 'Inspect a withdrawal',
  description: 'One withdrawal from a contract, with the error of the last refund that failed.',
  params: ById,
  answers: { 200: Answer },
  refuses: ['not_found'],
  handle: async ({ params }, services) =>
    ok({ withdrawal: presentRow(await requireWithdrawal(params.id, services), services) }),
})

async function requireWithdrawal(withdrawalId: string, { sql }: Services): Promise<ListedWithdrawal> {
  const row = await findWithdrawal(sql, withdrawalId)
  if (!row) throw new Refusal('not_found')
  return row
}

export const refund = route.operator({
  id: 'refundWithdrawal',
  summary: 'Refund a withdrawal',
  description:
    'Ends the subscription at the billing provider at once and refunds in full what was paid for it. Its webhooks end the access. When the provider refuses, the withdrawal stays open with the error. Safe to repeat.',
  params: ById,
  body: ReasonOnly,
  answers: { 200: Answer },
  refuses: ['not_found', 'billing_provider_error'],
  handle: async ({ params, body, ip }, services) => {
    const row = await requireWithdrawal(params.id, services)
    if (row.refundedAt === null) {
      await refundAtProvider(row, { ip, ...body }, services)
      await settle(row, 'provider', { ip, ...body }, services)
    }
    return ok({ withdrawal: presentRow(await requireWithdrawal(params.id, services), services) })
  },
})

export const markAsRefunded = route.operator({
  id: 'markWithdrawalRefunded',
  summary: 'Mark a withdrawal as refunded',
  description:
    'For a refund that was made elsewhere, such as on the pages of the billing provider. Changes nothing there: end the subscription too. Safe to repeat.',
  params: ById,
  body: ReasonOnly,
  answers: { 200: Answer },
  refuses: ['not_found'],
  handle: async ({ params, body, ip }, services) => {
    await settle(await requireWithdrawal(params.id, services), 'elsewhere', { ip, ...body }, services)
    return ok({ withdrawal: presentRow(await requireWithdrawal(params.id, services), services) })
  },
})

interface Act {
  readonly ip: string
  readonly reason?: string | undefined
}

const detailOf = ({ id: withdrawalId, provider, subscriptionId }: ListedWithdrawal, act: Act) => ({
  withdrawal_id: withdrawalId,
  provider,
  subscription_id: subscriptionId,
  ...reasonDetail(act),
})

/** Refuses with `billing_provider_error`, and then records the error with the withdrawal. */
async function refundAtProvider(row: ListedWithdrawal, act: Act, { sql, billing, log }: Services): Promise<void> {
  if (row.provider !== billing.provider.name)
    throw new Refusal('billing_provider_error', {
      message: `This withdrawal is of ${row.provider}, which is no longer in use. Refund it there, and mark it as refunded.`,
    })
  try {
    await billing.provider.refund(row.subscriptionId)
  } catch (error) {
    if (!(error instanceof BillingProviderError)) throw error
    log.error({ err: error, withdrawalId: row.id }, 'a withdrawal could not be refunded at the billing provider')
    await sql.begin(async (tx) => {
      await recordRefundFailure(tx, row.id, error.message)
      await recordAuditEntry(tx, {
        initiator: 'operator',
        action: 'withdrawal_refund_failed',
        userId: row.userId ?? undefined,
        ip: act.ip,
        detail: { ...detailOf(row, act), error: error.message },
      })
    })
    throw new Refusal('billing_provider_error', { message: `The refund failed: ${error.message}.` })
  }
}

/** Closes the withdrawal, once. */
async function settle(row: ListedWithdrawal, way: RefundWay, act: Act, { sql }: Services): Promise<void> {
  await sql.begin(async (tx) => {
    if (!(await markRefunded(tx, row.id, way))) return
    await recordAuditEntry(tx, {
      initiator: 'operator',
      action: 'withdrawal_refunded',
      userId: row.userId ?? undefined,
      ip: act.ip,
      detail: { ...detailOf(row, act), refunded: way },
    })
  })
}
