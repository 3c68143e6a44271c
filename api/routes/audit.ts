/** The audit trail: what happened to an account and who did it, for its owner and for operators. */
import { z } from 'zod'
import { type AuditRow, listAuditEntries } from '../../db/audit.ts'
import { ok, route } from '../http/route.ts'
import { id, timestamp } from '../http/schemas.ts'

const pageSize = 50

/** Of at most 18 digits, which any bigint holds. */
const EntryId = z.string().regex(/^\d{1,18}$/, 'is not the next_cursor of a page')

const EntryView = z.object({
  id: EntryId,
  at: timestamp,
  actor: z.enum(['user', 'operator', 'system']),
  action: z.string(),
  ip: z.string().nullable(),
  client: z.string().nullable().describe("`web`, or a plugin's own name for itself: see `client_kind`."),
  client_kind: z.enum(['web', 'plugin']).nullable().describe('What signed in or acted, which its name does not say.'),
  detail: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
})
const OperatorEntryView = EntryView.extend({ user_id: id.nullable() })

const present = (row: AuditRow): z.infer<typeof EntryView> => ({
  id: row.id,
  at: row.at.toISOString(),
  actor: row.initiator,
  action: row.action,
  ip: row.ip,
  client: row.client,
  client_kind: row.clientKind,
  detail: { ...row.detail, ...attemptsOf(row) },
})

/** What an entry says that stands for several attempts: how many since `at`, until when, and whether from one address. */
const attemptsOf = ({ attempts, lastAt, hasSeveralSources: several }: AuditRow): AuditRow['detail'] =>
  attempts === null || attempts === 1
    ? {}
    : { times: attempts, last_at: lastAt?.toISOString() ?? null, ...(several ? { several_addresses: true } : {}) }

/** An account's owner learns what an operator did to it, not from where, nor what operators noted for each other. */
function presentToOwner(row: AuditRow): z.infer<typeof EntryView> {
  if (row.initiator !== 'operator') return present(row)
  const { reason, ...detail } = row.detail
  return { ...present(row), ip: null, detail }
}

/** @param rows one more than a page holds, when there is another page. */
const page = <Entry>(rows: readonly AuditRow[], presented: (row: AuditRow) => Entry) => {
  const shown = rows.slice(0, pageSize)
  return { entries: shown.map(presented), next_cursor: rows.length > pageSize ? (shown.at(-1)?.id ?? null) : null }
}

export const own = route({
  method: 'GET',
  path: '/auth/audit',
  summary: 'What happened to the account, newest first',
  caller: 'user',
  query: z.object({ cursor: EntryId.optional() }),
  answers: { 200: z.object({ entries: z.array(EntryView), next_cursor: EntryId.nullable() }) },
  refuses: [],
  handle: async ({ caller, query }, { sql }) => {
    const rows = await listAuditEntries(sql, { userId: caller.userId, before: query.cursor }, pageSize + 1)
    return ok(page(rows, presentToOwner))
  },
})

export const list = route({
  method: 'GET',
  path: '/admin/audit',
  summary: 'What happened to one account or to all, newest first',
  caller: 'operator',
  query: z.object({ user_id: id.optional(), cursor: EntryId.optional() }),
  answers: { 200: z.object({ entries: z.array(OperatorEntryView), next_cursor: EntryId.nullable() }) },
  refuses: [],
  handle: async ({ query }, { sql }) => {
    const rows = await listAuditEntries(sql, { userId: query.user_id, before: query.cursor }, pageSize + 1)
    return ok(page(rows, (row) => ({ ...present(row), user_id: row.userId })))
  },
})
