/** Sessions whose instance their provider does not list any more. */
import type { Sql } from '../connection.ts'

export interface BoundSession {
  readonly id: string
  readonly instanceId: string | null
}

/** A missing instance that was observed longer ago than this belongs to an earlier silence, in seconds. */
const missingSecondsMax = 600

/**
 * Compares silent sessions with a complete list of their provider's instances.
 * @returns the sessions whose instance is missing in this list and in one at least `apartSeconds` ago. One list alone
 * may be incomplete.
 */
export async function findMissingInstances(
  sql: Sql,
  sessions: readonly BoundSession[],
  listed: ReadonlySet<string>,
  apartSeconds: number,
): Promise<BoundSession[]> {
  const bound = sessions.filter(({ instanceId }) => instanceId !== null)
  const missing = bound.map(({ instanceId }) => !listed.has(instanceId ?? ''))
  return sql<BoundSession[]>`
    with suspect as (
      select s.id, s.instance_id, m.is_missing, s.instance_missing_since as since,
        s.instance_missing_since > now() - make_interval(secs => ${missingSecondsMax}) as is_recent
      from relay_sessions s
      join unnest(${bound.map(({ id }) => id)}::uuid[], ${bound.map(({ instanceId }) => instanceId)}::text[],
        ${missing.map(String)}::text[]::bool[]) as m (id, instance_id, is_missing)
        on m.id = s.id and m.instance_id = s.instance_id
      where s.state <> 'stopped' order by s.id for update of s
    ), checked as (
      select *, is_missing and coalesce(is_recent, false) and since <= now() - make_interval(secs => ${apartSeconds}) as is_gone
      from suspect
    ), stored as (
      -- A reported instance is observed from the start: when its signal is lost, the next two lists report it again.
      update relay_sessions s set instance_missing_since = case
        when not j.is_missing or j.is_gone then null when j.is_recent then j.since else now() end
      from checked j where s.id = j.id and (j.is_missing or j.since is not null)
    )
    select id, instance_id from checked where is_gone`
}
