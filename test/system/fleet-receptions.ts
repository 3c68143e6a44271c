/** When reports could be received: what the service states at any moment of the simulation, which may be a break. */
import type { Database } from '../../db/connection.ts'

/** Times are in seconds since 1970. */
export interface Reception {
  /** Null for the API, which all regions need. */
  readonly region: string | null
  readonly since: number
  /** When reports could be received last before; the same as `since` for the first time. */
  readonly seenBefore: number
}

/** Records each begin of a reception. A busy machine may be too slow to look for them. @returns what was recorded. */
export async function recordReceptions(sql: Database): Promise<() => Promise<readonly Reception[]>> {
  await sql`create table simulated_receptions (region text, since timestamptz, seen_before timestamptz)`
  await sql`
    create function record_reception() returns trigger language plpgsql as $$
    begin
      insert into simulated_receptions
      select to_jsonb(new)->>'region', new.since, case tg_op when 'UPDATE' then old.seen_at else new.since end
      where tg_op = 'INSERT' or new.since <> old.since;
      return null;
    end $$`
  await sql`
    create trigger record_reception after insert or update on report_paths
    for each row execute function record_reception()`
  await sql`
    create trigger record_reception after insert or update on presence
    for each row when (new.role = 'api') execute function record_reception()`
  await sql`
    insert into simulated_receptions
    select null, since, since from presence where role = 'api' union all select region, since, since from report_paths`
  return () => sql<Reception[]>`
    select region, extract(epoch from since)::float8 as since, extract(epoch from seen_before)::float8 as seen_before
    from simulated_receptions order by since`
}
