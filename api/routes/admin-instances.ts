/** Instances at the providers as operators see them, including those that no live session owns. */
import { z } from 'zod'
import { type InstanceRow, listInstances as listInstanceRows } from '../../db/instances.ts'
import { ok, route } from '../http/route.ts'
import { id, storableText, timestamp } from '../http/schemas.ts'

export const InstanceView = z.object({
  instance_id: z.string(),
  session_id: id.nullable(),
  region: z.string(),
  created_at: timestamp,
  gone_at: timestamp.nullable(),
  /** Since when the orphan sweep has seen it without a live session. */
  unowned_since: timestamp.nullable(),
  /** Whether a live session owns it now. */
  owned: z.boolean(),
})

const presentInstance = (row: InstanceRow): z.infer<typeof InstanceView> => ({
  instance_id: row.instanceId,
  session_id: row.sessionId,
  region: row.region,
  created_at: row.createdAt.toISOString(),
  gone_at: row.goneAt?.toISOString() ?? null,
  unowned_since: row.unownedSince?.toISOString() ?? null,
  owned: row.owned,
})

const pageSize = 100

export const listInstances = route({
  method: 'GET',
  path: '/admin/instances',
  summary: 'Instances at the providers, newest first',
  caller: 'operator',
  query: z.object({
    region: storableText(32).optional(),
    gone: z.enum(['true', 'false']).optional(),
    cursor: storableText(200).optional(),
  }),
  answers: { 200: z.object({ instances: z.array(InstanceView), next_cursor: z.string().nullable() }) },
  refuses: [],
  handle: async ({ query }, { sql }) => {
    const isGone = query.gone === undefined ? undefined : query.gone === 'true'
    const rows = await listInstanceRows(sql, { region: query.region, isGone, after: query.cursor }, pageSize + 1)
    const page = rows.slice(0, pageSize)
    return ok({
      instances: page.map(presentInstance),
      next_cursor: rows.length > pageSize ? (page.at(-1)?.instanceId ?? null) : null,
    })
  },
})
