/**
 * The audit trail: security-relevant actions on accounts, by users, operators and the system. Entries are only added,
 * never changed. Actions that unauthenticated callers can repeat without limit are counted instead
 * (`db/identity/audit-attempts.ts`).
 */
import { type ActivityGroup, actionFilterOf } from '../domain/identity/activity-groups.ts'
import type { Client } from './clients.ts'
import type { Sql } from './connection.ts'
import { emailColumn, maskEmails, type WithEmail, type WithMaskedEmail } from './masked-emails.ts'

export interface AuditEntry {
  readonly initiator: 'user' | 'operator' | 'system'
  /** A past participle in snake case, such as `signed_in` or `account_disabled`. */
  readonly action: string
  /** The account that the action concerns. */
  readonly userId?: string | undefined
  readonly ip?: string | undefined
  /** The client that signed in or acted. */
  readonly client?: Client | undefined
  /** Never a secret, and no text from an unauthenticated caller: entries are stored for months. */
  readonly detail?: Readonly<Record<string, string | number | boolean | null>>
}

/** Call it in the transaction of the action, so that the action and its entry commit together. */
export async function recordAuditEntry(
  sql: Sql,
  { initiator, action, userId, ip, client, detail = {} }: AuditEntry,
): Promise<void> {
  await sql`
    insert into audit_entries (initiator, action, user_id, ip, client, client_kind, detail)
    values (${initiator}, ${action}, ${userId ?? null}, ${ip ?? null}, ${client?.name ?? null}, ${client?.kind ?? null},
      ${sql.json(detail)})`
}

export interface AuditRow {
  /** Decimal digits: a bigint, which a JavaScript number cannot always represent. */
  readonly id: string
  readonly at: Date
  readonly initiator: AuditEntry['initiator']
  readonly action: string
  readonly userId: string | null
  readonly ip: string | null
  readonly client: string | null
  readonly clientKind: Client['kind'] | null
  readonly detail: NonNullable<AuditEntry['detail']>
  /** The number of attempts that the entry counts since `at`; null for a single action. */
  readonly attempts: number | null
  readonly lastAt: Date | null
  /** The attempts came from several networks; `ip` is null. */
  readonly hasSeveralSources: boolean
}

export type ListedAuditRow = AuditRow & WithMaskedEmail

interface AuditFilter {
  /** Entries of all accounts when undefined. */
  readonly userId?: string | undefined
  readonly action?: string | undefined
  readonly initiator?: AuditEntry['initiator'] | undefined
  /** Entries of all groups when undefined. */
  readonly group?: ActivityGroup | undefined
  /** The id of the last entry on the previous page. */
  readonly before?: string | undefined
}

/** One page of entries, newest first. */
export async function listAuditEntries(
  sql: Sql,
  { userId, action, initiator, group, before }: AuditFilter,
  limit: number,
): Promise<ListedAuditRow[]> {
  const { actions, isExclusion } = actionFilterOf(group)
  const isListed = sql`action = any(${actions as string[]}::text[])`
  return maskEmails(
    await sql<WithEmail<ListedAuditRow>[]>`
      select id, at, initiator, action, user_id, ${emailColumn(sql, sql`audit_entries.user_id`)}, ip, client, client_kind,
        detail, attempts, last_at,
        attempts is not null and attempt_source is null as has_several_sources
      from audit_entries
      where ${isExclusion ? sql`not ${isListed}` : isListed} ${userId ? sql`and user_id = ${userId}` : sql``}
        ${action ? sql`and action = ${action}` : sql``} ${initiator ? sql`and initiator = ${initiator}` : sql``}
        ${before ? sql`and id < ${before}` : sql``}
      order by id desc limit ${limit}`,
  )
}
