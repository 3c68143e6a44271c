/** Lists and numbers of instances, for operators. */
import type { Sql } from '../connection.ts'
import { emailColumn, maskEmails, type WithEmail, type WithMaskedEmail } from '../masked-emails.ts'
import { isOwned } from './orphans.ts'

export interface InstanceRow extends WithMaskedEmail {
  instanceId: string
  sessionId: string | null
  /** The account of the session. */
  userId: string | null
  region: string
  createdAt: Date
  goneAt: Date | null
  unownedSince: Date | null
  provider: string | null
  /** The provider's own id. */
  providerId: string | null
  zone: number
  image: string | null
  isWarm: boolean
  retiredAt: Date | null
  lastReportAt: Date | null
  host: string | null
  /** Whether a live session owns it, by the same rule as {@link isOwned}. */
  owned: boolean
}

interface InstanceFilter {
  readonly instanceId?: string | undefined
  readonly region?: string | undefined
  readonly isGone?: boolean | undefined
  /** Existing instances that were observed without an owner. */
  readonly isOrphan?: boolean | undefined
  /** The id of the last instance of the previous page. */
  readonly after?: string | undefined
}

/** One page of instances, newest first. */
export async function listInstances(sql: Sql, filter: InstanceFilter, limit: number): Promise<InstanceRow[]> {
  const userId = sql`(select s.user_id from relay_sessions s where s.id = i.session_id)`
  return maskEmails(
    await sql<WithEmail<InstanceRow>[]>`
      select i.instance_id, i.session_id, ${userId} as user_id, ${emailColumn(sql, userId)},
        i.region, i.created_at, i.gone_at, i.unowned_since,
        i.provider, i.provider_id, i.zone, i.image, i.is_warm, i.retired_at, i.last_report_at, i.host,
        i.gone_at is null and ${isOwned(sql, sql`i.session_id`)} as owned
      from instances i
      where true
        ${filter.instanceId ? sql`and instance_id = ${filter.instanceId}` : sql``}
        ${filter.region ? sql`and region = ${filter.region}` : sql``}
        ${filter.isGone === undefined ? sql`` : filter.isGone ? sql`and gone_at is not null` : sql`and gone_at is null`}
        ${filter.isOrphan ? sql`and gone_at is null and unowned_since is not null` : sql``}
        ${filter.after ? sql`and (created_at, instance_id) < (select created_at, instance_id from instances where instance_id = ${filter.after})` : sql``}
      order by created_at desc, instance_id desc limit ${limit}`,
  )
}

/** The number of existing instances by region. */
export const countInstances = async (sql: Sql): Promise<{ region: string; count: number }[]> =>
  sql<{ region: string; count: number }[]>`
    select region, count(*)::int as count from instances where gone_at is null group by region`
