/**
 * Audit entries of what strangers can repeat without end: failed sign-ins, requests for links, sign-ups with a taken address.
 *
 * Attempts of one action on one account and one day (UTC) share at most {@link accountEntriesMax} entries, those that concern
 * no account {@link strangerEntriesMax}. Each network has an entry of its own, with a count, as long as there are entries
 * left; the last one counts all other networks. So the rows of a day are bounded by the number of accounts, whatever is
 * sent from however many addresses, and an owner's list keeps what else happened.
 */
import type { AuditEntry } from './audit.ts'
import type { Sql } from './connection.ts'

export const accountEntriesMax = 3
export const strangerEntriesMax = 20

/** Counts stop here: one that overflows its column would fail the sign-in itself. */
const attemptsMax = 1_000_000_000

export interface AuditAttempt extends AuditEntry {
  readonly ip: string
  /** What has an entry of its own: the network, and what else distinguishes attempts of one action. */
  readonly source: string
}

/** Counts each attempt, in one statement for all of them. All writers lock entries in the same order. */
export async function recordAttempts(sql: Sql, attempts: readonly AuditAttempt[]): Promise<void> {
  const asked = attempts.map(({ actor, action, userId, ip, source, client, detail = {} }) => ({
    ...{ actor, action, user_id: userId ?? null, ip, source, detail },
    ...{ client: client?.name ?? null, client_kind: client?.kind ?? null },
  }))
  await sql`
    with asked as (
      select concat_ws(':', action, (now() at time zone 'UTC')::date, user_id) as attempt_group, user_id, source,
        count(*) as attempts, min(actor) as actor, min(action) as action, min(ip) as ip, min(client) as client,
        min(client_kind) as client_kind, (array_agg(detail))[1] as detail
      from jsonb_to_recordset(${sql.json(asked)}) as asked
        (actor text, action text, user_id uuid, ip text, source text, client text, client_kind text, detail jsonb)
      group by action, user_id, source
    ), seen as (
      select asked.*, own.attempt_slot,
        (select count(*) from audit_entries e where e.attempt_group = asked.attempt_group) as taken
      from asked left join audit_entries own
        on own.attempt_group = asked.attempt_group and own.attempt_source = asked.source
    ), placed as (
      select *, coalesce(attempt_slot, least(
        case when user_id is null then ${strangerEntriesMax}::int else ${accountEntriesMax}::int end - 1,
        taken - 1 + row_number() over (partition by attempt_group, attempt_slot is null order by source))) as slot
      from seen
    )
    insert into audit_entries as e (actor, action, user_id, client, client_kind, attempt_group, attempt_slot, attempts,
      last_at, ip, attempt_source, detail)
    select min(actor), min(action), user_id, min(client), min(client_kind), attempt_group, slot,
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
