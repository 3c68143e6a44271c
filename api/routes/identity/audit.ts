/** The audit trail: an account's entries for its owner, all entries for operators. */
import { z } from 'zod'
import { type AuditRow, type ListedAuditRow, listAuditEntries } from '../../../db/audit.ts'
import { activityGroups } from '../../../domain/identity/activity-groups.ts'
import { pageOf, present } from '../../http/present.ts'
import { ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import { route } from '../route.ts'
import { maskedEmail } from '../schemas.ts'

const pageSize = 50

/** At most 18 digits, so that it fits into a bigint. */
const EntryId = z.string().regex(/^\d{1,18}$/, 'must be the next_cursor of a page')

const Initiator = z.enum(['user', 'operator', 'system'])

export const EntryView = z
  .object({
    id: EntryId,
    at: timestamp,
    actor: Initiator,
    action: z.string(),
    ip: z.string().nullable(),
    client: z.string().nullable().describe('`web`, or the name that a plugin has chosen: see `client_kind`.'),
    client_kind: z.enum(['web', 'plugin']).nullable().describe('The kind of client, which its name does not prove.'),
    detail: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  })
  .meta({ id: 'AuditEntry' })
const OperatorEntryView = EntryView.extend({ user_id: id.nullable(), masked_email: maskedEmail }).meta({
  id: 'OperatorAuditEntry',
})

const presentEntry = (row: AuditRow): z.infer<typeof EntryView> =>
  present(EntryView, { ...row, actor: row.initiator, detail: { ...row.detail, ...presentAttempts(row) } })

/**
 * Details of an entry that counts several attempts: their number since `at`, the last time, and whether from several
 * addresses.
 */
const presentAttempts = ({ attempts, lastAt, hasSeveralSources }: AuditRow): AuditRow['detail'] =>
  attempts === null || attempts === 1
    ? {}
    : {
        times: attempts,
        last_at: lastAt?.toISOString() ?? null,
        ...(hasSeveralSources ? { several_addresses: true } : {}),
      }

/** Hides the address of operators and their reasons, which are internal notes. */
export function presentToOwner(row: AuditRow): z.infer<typeof EntryView> {
  if (row.initiator !== 'operator') return presentEntry(row)
  const { reason, ...detail } = row.detail
  return { ...presentEntry(row), ip: null, detail }
}

const presentToOperator = (row: ListedAuditRow): z.infer<typeof OperatorEntryView> => ({
  ...presentEntry(row),
  user_id: row.userId,
  masked_email: row.maskedEmail,
})

const cursorOf = (row: AuditRow) => row.id

export const own = route.user({
  id: 'listActivity',
  summary: 'List the activity of the account',
  description:
    'What happened to the account and who did it, newest first, 50 entries a page. The addresses and notes of operators are left out.',
  query: z.object({ group: z.enum(activityGroups).optional(), cursor: EntryId.optional() }),
  answers: { 200: z.object({ entries: z.array(EntryView), next_cursor: EntryId.nullable() }) },
  refuses: [],
  handle: async ({ caller, query }, { sql }) => {
    const filter = { userId: caller.userId, group: query.group, before: query.cursor }
    const rows = await listAuditEntries(sql, filter, pageSize + 1)
    const { items: entries, next_cursor } = pageOf(rows, { size: pageSize, presentRow: presentToOwner, cursorOf })
    return ok({ entries, next_cursor })
  },
})

export const list = route.operator({
  id: 'listAuditEntries',
  summary: 'List audit entries',
  description: 'The audit trail of one account or of all, newest first, 50 entries a page.',
  query: z.object({
    user_id: id.optional().describe('The account that the actions concern.'),
    action: z
      .string()
      .regex(/^[a-z_]{1,64}$/, 'must be the action of an entry')
      .optional(),
    initiator: Initiator.optional().describe('Who acted.'),
    cursor: EntryId.optional(),
  }),
  answers: { 200: z.object({ entries: z.array(OperatorEntryView), next_cursor: EntryId.nullable() }) },
  refuses: [],
  handle: async ({ query }, { sql }) => {
    const { user_id: userId, action, initiator, cursor: before } = query
    const rows = await listAuditEntries(sql, { userId, action, initiator, before }, pageSize + 1)
    const { items: entries, next_cursor } = pageOf(rows, { size: pageSize, presentRow: presentToOperator, cursorOf })
    return ok({ entries, next_cursor })
  },
})
