/** Workflows that were ended because their tasks failed again and again. */
import { firstValue, type Sql } from '../connection.ts'

interface EndedRun {
  readonly workflowId: string
  readonly workflowType: string
  readonly runId: string
}

/** Records that a run is ended. @returns whether it is the first one of its workflow within a day. Safe to repeat. */
export const recordEndedRun = async (sql: Sql, { workflowId, workflowType, runId }: EndedRun): Promise<boolean> =>
  (await firstValue(sql<{ isFirst: boolean }[]>`
    insert into ended_workflows as e (workflow_id, workflow_type, first_run_id, last_run_id)
    values (${workflowId}, ${workflowType}, ${runId}, ${runId})
    on conflict (workflow_id) do update set last_run_id = excluded.last_run_id,
      -- The job that deletes old rows may be late.
      first_run_id = case when e.last_ended_at < now() - interval '1 day' then excluded.first_run_id else e.first_run_id end,
      last_ended_at = case when e.last_run_id = excluded.last_run_id then e.last_ended_at else now() end
    returning first_run_id = last_run_id as is_first`)) ?? true

/** Ended workflows of the last day by type: those that were ended once, and those that were ended again. */
export const countEndedWorkflows = async (
  sql: Sql,
): Promise<{ workflowType: string; once: number; repeatedly: number }[]> =>
  sql<{ workflowType: string; once: number; repeatedly: number }[]>`
    select workflow_type, (count(*) filter (where first_run_id = last_run_id))::int as once,
      (count(*) filter (where first_run_id <> last_run_id))::int as repeatedly
    from ended_workflows group by workflow_type order by workflow_type`
