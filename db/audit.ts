/**
 * What people and operators did that matters for trust in an account. Entries are only ever added; what strangers can repeat
 * without end is counted instead (`db/audit-attempts.ts`).
 */
import type { Client } from './clients.ts'
import type { Sql } from './connection.ts'

export interface AuditEntry {
  readonly actor: 'user' | 'operator' | 'system'
  /** What happened, as a past participle in snake case: `signed_in`, `account_disabled`. */
  readonly action: string
  /** Whose account it concerns. */
  readonly userId?: string | undefined
  readonly ip?: string | undefined
  /** What signed in or acted. */
  readonly client?: Client | undefined
  /** Never a secret, and nothing that a stranger typed: entries outlive the request by far. */
  readonly detail?: Readonly<Record<string, string | number | boolean | null>>
}

/** Adds an entry, in the transaction of what it tells of, so that neither stands without the other. */
export async function audit(sql: Sql, { actor, action, userId, ip, client, detail = {} }: AuditEntry): Promise<void> {
  await sql`
    insert into audit_entries (actor, action, user_id, ip, client, client_kind, detail)
    values (${actor}, ${action}, ${userId ?? null}, ${ip ?? null}, ${client?.name ?? null}, ${client?.kind ?? null},
      ${sql.json(detail)})`
}

export interface AuditRow {
  /** Digits: it counts up, and does not fit a number for ever. */
  readonly id: string
  readonly at: Date
  readonly actor: AuditEntry['actor']
  readonly action: string
  readonly userId: string | null
  readonly ip: string | null
  readonly client: string | null
  readonly clientKind: Client['kind'] | null
  readonly detail: NonNullable<AuditEntry['detail']>
  /** How many attempts the entry stands for, since `at`; null for a single act. */
  readonly attempts: number | null
  readonly lastAt: Date | null
  /** The attempts came from several networks, so that no address is named. */
  readonly hasSeveralSources: boolean
}

interface AuditFilter {
  /** Everybody's when left out. */
  readonly userId?: string | undefined
  /** The last entry of the page before, by its id. */
  readonly before?: string | undefined
}

/** Entries, newest first, one page. */
export const auditEntries = async (sql: Sql, { userId, before }: AuditFilter, limit: number): Promise<AuditRow[]> =>
  sql<AuditRow[]>`
    select id, at, actor, action, user_id, ip, client, client_kind, detail, attempts, last_at,
      attempts is not null and attempt_source is null as has_several_sources
    from audit_entries
    where true ${userId ? sql`and user_id = ${userId}` : sql``} ${before ? sql`and id < ${before}` : sql``}
    order by id desc limit ${limit}`
