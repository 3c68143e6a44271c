/** Relay sessions as a table. */

import { formatBitrate, formatLinks } from '../stream-text.ts'
import { TimeAgo } from '../time-text.tsx'
import { InstanceLink, SessionLink, UserLink } from './identifier.tsx'
import type { OperatorSession } from './operator-replies.ts'
import { type Column, ScrollingTable } from './scrolling-table.tsx'
import { SessionState } from './state-badges.tsx'

const columns: readonly Column<OperatorSession>[] = [
  { heading: 'Session', cell: (session) => <SessionLink id={session.session_id} /> },
  { heading: 'State', cell: ({ state }) => <SessionState state={state} /> },
  { heading: 'Reason', cell: ({ reason }) => reason },
  { heading: 'Relay', cell: (session) => session.connection_id },
  { heading: 'Region', cell: ({ region }) => region },
  { heading: 'Video', cell: (session) => videoText(session) },
  { heading: 'Account', cell: (session) => <UserLink of={session} /> },
  { heading: 'Instance', cell: (session) => <InstanceLink id={session.instance_id} /> },
  { heading: 'Started', cell: (session) => <TimeAgo at={session.created_at} /> },
  { heading: 'Ended', cell: (session) => (session.stopped_at === null ? '–' : <TimeAgo at={session.stopped_at} />) },
]

interface SessionTableProps {
  readonly sessions: readonly OperatorSession[]
  readonly label: string
  readonly empty: string
}

export const SessionTable = ({ sessions, label, empty }: SessionTableProps) => (
  <ScrollingTable
    label={label}
    columns={columns}
    empty={empty}
    rows={sessions}
    keyOf={(session) => session.session_id}
    dataOf={(session) => ({ 'data-session': session.session_id, 'data-state': session.state })}
  />
)

function videoText({ ingest }: OperatorSession): string {
  if (!ingest) return '–'
  if (!ingest.publishing) return 'none'
  const bitrate = formatBitrate(ingest.bitrate_kbps)
  return ingest.links === 0 ? bitrate : `${bitrate}, ${formatLinks(ingest.links)}`
}
