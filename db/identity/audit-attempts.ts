/**
 * Audit entries for actions that unauthenticated callers can repeat without limit: failed sign-ins, requests for links,
 * sign-ups with a taken address.
 *
 * The attempts of one action on one account and one day (UTC) share at most {@link accountEntriesMax} entries; attempts
 * that concern no account share {@link anonymousEntriesMax}. Each network has an entry with a count of its own until
 * the entries are used up; the last entry counts all other networks. So the number of rows per day depends only on the
 * number of accounts, not on the number of attempts or addresses, and attempts do not push other entries off the first
 * page of an account's list.
 */
import type { AuditEntry } from '../audit.ts'
import type { Sql } from '../connection.ts'

export const accountEntriesMax = 3
export const anonymousEntriesMax = 20

/** A larger count would overflow its column, and the error would fail the sign-in. */
const attemptsMax = 1_000_000_000

export interface AuditAttempt extends AuditEntry {
  readonly ip: string
  /**
   * Attempts with the same source share an entry: the network, and the details that distinguish attempts of one action.
   */
  readonly source: string
}

/** Counts all attempts in one statement. Every statement locks the entries in the same order, so none deadlock. */
export async function recordAuditAttempts(sql: Sql, attempts: readonly AuditAttempt[]): Promise<void> {
  const rows = attempts.map(({ initiator, action, userId, ip, source, client, detail = {} }) => ({
    initiator,
    action,
    user_id: userId ?? null,
    ip,
    source,
    detail,
    client: client?.name ?? null,
    client_kind: client?.kind ?? null,
  }))
  await sql`
    with incoming as (
      select concat_ws(':', action, (now() at time zone 'UTC')::date, user_id) as attempt_group, user_id, source,
        count(*) as attempts, min(initiator) as initiator, min(action) as action, min(ip) as ip, min(client) as client,
        min(client_kind) as client_kind, (array_agg(detail))[1] as detail
      from jsonb_to_recordset(${sql.json(rows)}) as attempt
        (initiator text, action text, user_id uuid, ip text, source text, client text, client_kind text, detail jsonb)
      group by action, user_id, source
    ), matched as (
      select incoming.*, own.attempt_slot,
        (select count(*) from audit_entries e where e.attempt_group = incoming.attempt_group) as used_slots
      from incoming left join audit_entries own
        on own.attempt_group = incoming.attempt_group and own.attempt_source = incoming.source
    ), placed as (
      select *, coalesce(attempt_slot, least(
        case when user_id is null then ${anonymousEntriesMax}::int else ${accountEntriesMax}::int end - 1,
        used_slots - 1 + row_number() over (partition by attempt_group, attempt_slot is null order by source))) as slot
      from matched
    )
    insert into audit_entries as e (initiator, action, user_id, client, client_kind, attempt_group, attempt_slot, attempts,
      last_at, ip, attempt_source, detail)
    select min(initiator), min(action), user_id, min(client), min(client_kind), attempt_group, slot,
      least(sum(attempts), ${attemptsMax}::int), now(),
      case when count(*) = 1 then min(ip) end, case when count(*) = 1 then min(source) end,
      case when count(*) = 1 then (array_agg(detail))[1] else '{}' end
    from placed group by attempt_group, slot, user_id order by attempt_group, slot
    on conflict (attempt_group, attempt_slot) where attempt_group is not null do update set
      attempts = least(e.attempts + excluded.attempts, ${attemptsMax}::int), last_at = excluded.last_at,
      ip = case when e.attempt_source = excluded.attempt_source then e.ip end,
      attempt_source = case when e.attempt_source = excluded.attempt_source then e.attempt_source end,
      detail = case when e.attempt_source = excluded.attempt_source then e.detail else '{}' end`
}
