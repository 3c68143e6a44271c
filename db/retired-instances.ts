/** Instances that were given up, for queries of several folders. */
import type { Fragment, Sql } from './connection.ts'

/** Whether an instance was given up: reports of it count no more. */
export const isRetired = (sql: Sql, instanceId: Fragment) => sql`
  exists (select from instances given_up where given_up.instance_id = ${instanceId} and given_up.retired_at is not null)`
