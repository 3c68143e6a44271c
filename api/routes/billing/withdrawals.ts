/** Withdrawals of customers from contracts, within 14 days of the purchase. */
import { z } from 'zod'
import { recordAuditEntry } from '../../../db/audit.ts'
import {
  type Contract,
  insertWithdrawal,
  listContracts,
  listWithdrawals,
  type WithdrawalRow,
} from '../../../db/billing/withdrawals.ts'
import type { Sql } from '../../../db/connection.ts'
import { findCredentials, lockUser } from '../../../db/identity/users.ts'
import { subscriptionKinds } from '../../../domain/billing/plans.ts'
import { canWithdraw, isSeller, withdrawalEndsAt } from '../../../domain/billing/withdrawal.ts'
import { present } from '../../http/present.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { id, storableText, timestamp } from '../../http/schemas.ts'
import type { Services } from '../../services.ts'
import { route } from '../route.ts'
import { EmailAddress } from '../schemas.ts'

const ContractView = z
  .object({
    subscription_id: z.string(),
    kind: z.enum(subscriptionKinds),
    quantity: z.int().describe('The number of add-ons; 1 for a plan.'),
    purchased_at: timestamp,
    withdraw_until: timestamp,
    form_url: z
      .url()
      .nullable()
      .describe('The form of the billing provider where that is the seller. Null: withdraw with this API.'),
  })
  .meta({ id: 'Contract' })

const WithdrawalView = z
  .object({
    id,
    subscription_id: z.string(),
    kind: z.enum(subscriptionKinds),
    quantity: z.int(),
    purchased_at: timestamp,
    received_at: timestamp,
    receipt_email: z.string().nullable().describe('Where the receipt is sent. Null without an address.'),
    refunded_at: timestamp.nullable(),
  })
  .meta({ id: 'Withdrawal' })

const presentWithdrawal = (row: WithdrawalRow) => present(WithdrawalView, { ...row, receiptEmail: row.email })

export const list = route.user({
  id: 'listWithdrawals',
  summary: 'List contracts and withdrawals',
  description:
    'The contracts that the caller can still withdraw from, and the withdrawals that the service has received, the newest first.',
  answers: { 200: z.object({ contracts: z.array(ContractView), withdrawals: z.array(WithdrawalView) }) },
  refuses: [],
  handle: async ({ caller: { userId } }, services) => {
    const [contracts, withdrawals] = await Promise.all([
      listContracts(services.sql, userId),
      listWithdrawals(services.sql, userId),
    ])
    const withdrawn = new Set(withdrawals.map(({ subscriptionId }) => subscriptionId))
    const open = contracts.filter(({ subscriptionId }) => !withdrawn.has(subscriptionId))
    return ok({
      contracts: open.flatMap((contract) => presentContract(contract, services)),
      withdrawals: withdrawals.map(presentWithdrawal),
    })
  },
})

/** Nothing for a contract that can not be withdrawn from here or at a known form. */
function presentContract(contract: Contract, { config }: Services): z.infer<typeof ContractView>[] {
  const { isOffered, formUrl } = config.billing.withdrawal
  const isElsewhere = isSeller(contract.provider)
  if (!isOffered || !canWithdraw(contract.purchasedAt, new Date()) || (isElsewhere && formUrl === undefined)) return []
  const parts = {
    withdrawUntil: withdrawalEndsAt(contract.purchasedAt),
    formUrl: isElsewhere ? (formUrl ?? null) : null,
  }
  return [present(ContractView, { ...contract, ...parts })]
}

const WithdrawBody = z.object({
  subscription_id: storableText(200),
  name: storableText(200)
    .regex(/^\P{Cc}+$/u, 'must be one line')
    .optional()
    .describe('The name of the person who withdraws, for the receipt.'),
  email: EmailAddress.optional().describe('Where the receipt is sent; the address of the account by default.'),
})

export const withdraw = route.user({
  id: 'withdraw',
  summary: 'Withdraw from a contract',
  description:
    'Withdraws from the contract of a subscription that was bought in the last 14 days. It is recorded, the receipt is mailed, and an operator refunds it; the subscription ends with the refund. Safe to repeat: the reply is the first withdrawal.\n\nRefused with `not_withdrawable` when the time is over, and where the billing provider is the seller, which has a form of its own.',
  body: WithdrawBody,
  answers: { 200: z.object({ withdrawal: WithdrawalView }) },
  refuses: ['not_found', 'not_withdrawable'],
  examples: {
    requests: {
      withdraw: { summary: 'Withdraw', value: { subscription_id: 'sub_1042', name: 'Kim Example' } },
    },
  },
  handle: async ({ caller: { userId }, body, ip }, services) => {
    const request = { userId, ip, ...body, subscriptionId: body.subscription_id }
    const row = (await services.sql.begin((tx) => recordWithdrawal(tx, services, request))) as WithdrawalRow
    return ok({ withdrawal: presentWithdrawal(row) })
  },
})

interface WithdrawalRequest {
  readonly userId: string
  readonly ip: string
  readonly subscriptionId: string
  readonly name?: string | undefined
  readonly email?: string | undefined
}

/** Record, audit and receipt in one transaction. Returns the first withdrawal from the contract when repeated. */
async function recordWithdrawal(tx: Sql, services: Services, request: WithdrawalRequest): Promise<WithdrawalRow> {
  const { userId, ip, subscriptionId } = request
  if (!(await lockUser(tx, userId))) throw new Refusal('unauthorized')
  const earlier = (await listWithdrawals(tx, userId)).find((row) => row.subscriptionId === subscriptionId)
  if (earlier) return earlier
  const contract = (await listContracts(tx, userId)).find((found) => found.subscriptionId === subscriptionId)
  if (!contract) throw new Refusal('not_found')
  const { isOffered } = services.config.billing.withdrawal
  if (!isOffered || isSeller(contract.provider) || !canWithdraw(contract.purchasedAt, new Date()))
    throw new Refusal('not_withdrawable')
  const email = request.email ?? (await findCredentials(tx, userId))?.email ?? null
  const row = await insertWithdrawal(tx, userId, contract, { name: request.name ?? null, email })
  // The subscription has moved here from the account that withdrew.
  if (!row) throw new Refusal('not_withdrawable')
  const { kind } = contract
  const detail = { withdrawal_id: row.id, subscription_id: subscriptionId, kind }
  await recordAuditEntry(tx, { initiator: 'user', action: 'contract_withdrawn', userId, ip, detail })
  await sendReceipt(tx, services, row)
  return row
}

async function sendReceipt(tx: Sql, { config, mailer }: Services, row: WithdrawalRow): Promise<void> {
  if (row.email === null) return
  await mailer.send(tx, row.userId, {
    subject: 'withdrawal_received',
    to: row.email,
    link: `${config.siteUrl}/account`,
    withdrawalId: row.id,
    item: row.kind === 'plan' ? 'the paid plan' : `${row.quantity} add-on${row.quantity === 1 ? '' : 's'}`,
    subscriptionId: row.subscriptionId,
    purchasedAt: row.purchasedAt.toISOString(),
    receivedAt: row.receivedAt.toISOString(),
    name: row.name,
  })
}
