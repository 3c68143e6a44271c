/** Relay sessions as a table. */

import { formatBitrate } from '../stream-text.ts'
import { TimeAgo } from '../time-text.tsx'
import { IdentifierLink, InstanceLink, UserLink } from './identifier.tsx'
import type { OperatorSession } from './operator-replies.ts'
import { ScrollingTable } from './scrolling-table.tsx'
import { SessionState } from './state-badges.tsx'

const headings = ['Session', 'State', 'Reason', 'Relay', 'Region', 'Video', 'Account', 'Instance', 'Started', 'Ended']

interface SessionTableProps {
  readonly sessions: readonly OperatorSession[]
  readonly label: string
  readonly empty: string
}

export const SessionTable = ({ sessions, label, empty }: SessionTableProps) => (
  <ScrollingTable label={label} headings={headings} empty={empty}>
    {sessions.map((session) => (
      <SessionRow key={session.session_id} session={session} />
    ))}
  </ScrollingTable>
)

const SessionRow = ({ session }: { readonly session: OperatorSession }) => (
  <tr data-session={session.session_id} data-state={session.state}>
    <th scope="row">
      <IdentifierLink href={`/operator/sessions/${session.session_id}`} value={session.session_id} />
    </th>
    <td>
      <SessionState state={session.state} />
    </td>
    <td>{session.reason}</td>
    <td>{session.connection_id}</td>
    <td>{session.region}</td>
    <td>{videoText(session)}</td>
    <td>
      <UserLink id={session.user_id} />
    </td>
    <td>
      <InstanceLink id={session.instance_id} />
    </td>
    <td>
      <TimeAgo at={session.created_at} />
    </td>
    <td>{session.stopped_at === null ? '–' : <TimeAgo at={session.stopped_at} />}</td>
  </tr>
)

function videoText({ ingest }: OperatorSession): string {
  if (!ingest) return '–'
  return ingest.publishing ? `${formatBitrate(ingest.bitrate_kbps)}, ${ingest.links} links` : 'none'
}
