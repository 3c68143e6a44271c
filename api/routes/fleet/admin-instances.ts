/** Instances at the providers as operators see them, including those that no live session owns. */
import { z } from 'zod'
import { type InstanceRow, listInstances as listInstanceRows } from '../../../db/fleet/instance-list.ts'
import { pageOf, present } from '../../http/present.ts'
import { ok } from '../../http/replies.ts'
import { id, storableText, timestamp } from '../../http/schemas.ts'
import { route } from '../route.ts'
import { maskedEmail } from '../schemas.ts'

const InstanceView = z
  .object({
    instance_id: z.string(),
    session_id: id.nullable(),
    user_id: id.nullable().describe('The account of the session.'),
    masked_email: maskedEmail,
    region: z.string(),
    created_at: timestamp,
    gone_at: timestamp.nullable(),
    /** Since when the orphan sweep has seen it without a live session. */
    unowned_since: timestamp.nullable(),
    /** Whether a live session owns it now. */
    owned: z.boolean(),
    provider: z.string().nullable(),
    provider_id: z.string().nullable().describe("The provider's own id."),
    zone: z.int(),
    image: z.string().nullable().describe('What it runs.'),
    warm: z.boolean().describe('Whether it was created without a session.'),
    retired_at: timestamp.nullable().describe('Since when it is to be destroyed.'),
    last_report_at: timestamp.nullable().describe('The last report that it sent without a session.'),
    host: z.string().nullable(),
  })
  .meta({ id: 'Instance' })

const presentInstance = (row: InstanceRow) => present(InstanceView, { ...row, warm: row.isWarm })

const pageSize = 100

export const listInstances = route.operator({
  id: 'listInstances',
  summary: 'List instances',
  description: 'Instances at the providers, newest first, 100 a page, including those that no live session owns.',
  query: z.object({
    instance_id: storableText(200).optional(),
    region: storableText(32).optional(),
    gone: z.enum(['true', 'false']).optional().describe('Whether they exist no more at the provider. Both without it.'),
    orphans: z.literal('true').optional().describe('Only existing instances that were observed without an owner.'),
    cursor: storableText(200).optional(),
  }),
  answers: { 200: z.object({ instances: z.array(InstanceView), next_cursor: z.string().nullable() }) },
  refuses: [],
  handle: async ({ query }, { sql }) => {
    const isGone = query.gone === undefined ? undefined : query.gone === 'true'
    const { instance_id: instanceId, region, orphans, cursor: after } = query
    const filter = { instanceId, region, isGone, isOrphan: orphans === 'true', after }
    const rows = await listInstanceRows(sql, filter, pageSize + 1)
    const cursorOf = (row: InstanceRow) => row.instanceId
    const { items: instances, next_cursor } = pageOf(rows, { size: pageSize, presentRow: presentInstance, cursorOf })
    return ok({ instances, next_cursor })
  },
})
