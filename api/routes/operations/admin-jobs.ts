/** Background jobs for operators: the last run of each, its result, and the worker that holds the lease. */
import { z } from 'zod'
import { type JobRow, listJobs as listJobRows } from '../../../db/operations/jobs.ts'
import { pageOf, present } from '../../http/present.ts'
import { ok } from '../../http/replies.ts'
import { id, storableText, timestamp } from '../../http/schemas.ts'
import { route } from '../route.ts'

const JobView = z
  .object({
    name: z.string(),
    runs: z.int(),
    failures: z.int(),
    due_at: timestamp,
    last_started_at: timestamp.nullable(),
    last_success_at: timestamp.nullable(),
    /** Null if the last run succeeded. */
    last_error: z.string().nullable(),
    last_duration_seconds: z.number().nullable(),
    leased_by: id.nullable(),
    leased_until: timestamp.nullable(),
  })
  .meta({ id: 'Job' })

const pageSize = 100

export const listJobs = route.operator({
  id: 'listJobs',
  summary: 'List background jobs',
  description: 'Background jobs by name, with their last result and the worker that holds the lease.',
  query: z.object({ cursor: storableText(100).optional() }),
  answers: { 200: z.object({ jobs: z.array(JobView), next_cursor: z.string().nullable() }) },
  refuses: [],
  handle: async ({ query }, { sql }) => {
    const rows = await listJobRows(sql, { after: query.cursor, limit: pageSize + 1 })
    const presentRow = (row: JobRow) => present(JobView, row)
    const { items: jobs, next_cursor } = pageOf(rows, { size: pageSize, presentRow, cursorOf: ({ name }) => name })
    return ok({ jobs, next_cursor })
  },
})
