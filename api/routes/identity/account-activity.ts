/** The activity of an account for its owner: audit entries, and the starts and ends of its relays. */
import { z } from 'zod'
import { type ActivityRow, listActivity, type RelayActivity } from '../../../db/identity/account-activity.ts'
import { activityGroups } from '../../../domain/identity/activity-groups.ts'
import { nameOfApp } from '../../../domain/identity/apps.ts'
import { ok } from '../../http/replies.ts'
import { route } from '../route.ts'
import { EntryView, presentToOwner } from './audit.ts'

const pageSize = 50

/** Time and key of the last entry on a page. At most 17 digits, so that the time fits into Postgres's range. */
const cursorPattern = /^(\d{1,17})_(audit-\d{19}|relay-(?:started|stopped)-[0-9a-f-]{36})$/
const Cursor = z.string().regex(cursorPattern, 'must be the next_cursor of a page')

const ActivityView = EntryView.extend({
  id: z.string(),
  action: z.string().describe('An action of the audit, or `relay_started` or `relay_stopped`.'),
})

export const list = route.user({
  id: 'listActivityWithRelays',
  summary: 'List the activity of the account with its relays',
  description:
    'The audit entries of the account together with the starts and ends of its relays, newest first, all or of one group.',
  query: z.object({ group: z.enum(activityGroups).optional(), cursor: Cursor.optional() }),
  answers: { 200: z.object({ entries: z.array(ActivityView), next_cursor: Cursor.nullable() }) },
  refuses: [],
  handle: async ({ caller, query }, { sql }) => {
    const filter = { userId: caller.userId, group: query.group, before: parseCursor(query.cursor) }
    const rows = await listActivity(sql, filter, pageSize + 1)
    const page = rows.slice(0, pageSize)
    const last = page.at(-1)
    return ok({
      entries: page.map(presentActivity),
      next_cursor: rows.length > pageSize && last ? `${last.micros}_${last.key}` : null,
    })
  },
})

function parseCursor(text: string | undefined): { micros: string; key: string } | undefined {
  const [, micros, key] = cursorPattern.exec(text ?? '') ?? []
  return micros !== undefined && key !== undefined ? { micros, key } : undefined
}

const presentActivity = (row: ActivityRow): z.infer<typeof ActivityView> =>
  row.kind === 'audit' ? { ...presentToOwner(row), id: row.key } : presentRelay(row)

function presentRelay(row: RelayActivity): z.infer<typeof ActivityView> {
  const { kind, reason, provisioningDetail } = row
  // Only its owner starts a session.
  const initiator = row.initiator ?? 'user'
  const end =
    kind === 'relay_stopped'
      ? {
          reason,
          provisioning_detail: provisioningDetail,
          initiator,
          cause_reason: row.graceReason ?? reason,
          cause_initiator: row.graceInitiator ?? initiator,
        }
      : {}
  return {
    id: row.key,
    at: row.at.toISOString(),
    actor: initiator === 'user' || initiator === 'operator' ? initiator : 'system',
    action: kind,
    ip: null,
    client: row.startedByApp === null ? null : nameOfApp(row.startedByApp),
    client_kind: row.startedByApp === null ? null : 'plugin',
    detail: { session_id: row.sessionId, connection_id: row.connectionId, region: row.region, ...end },
  }
}
