/** Billing events as a table. */
import { Instant } from '../time-text.tsx'
import { EventLink, UserLink } from './identifier.tsx'
import type { BillingEvent } from './operator-replies.ts'
import { type Column, ScrollingTable } from './scrolling-table.tsx'
import { EventStatus } from './state-badges.tsx'

const columns: readonly Column<BillingEvent>[] = [
  { heading: 'Event', cell: ({ id }) => <EventLink id={id} /> },
  { heading: 'Status', cell: ({ status }) => <EventStatus status={status} /> },
  { heading: 'Provider', cell: ({ provider }) => provider },
  { heading: 'Type', cell: ({ type }) => type },
  { heading: 'Action', cell: ({ action }) => action ?? '–' },
  { heading: 'Account', cell: (event) => <UserLink of={event} /> },
  { heading: 'Received', cell: (event) => <Instant at={event.received_at} /> },
  { heading: 'Error', class: 'sentence', cell: ({ error }) => error ?? '–' },
]

interface EventTableProps {
  readonly events: readonly BillingEvent[]
  readonly label: string
  readonly empty: string
}

export const EventTable = ({ events, label, empty }: EventTableProps) => (
  <ScrollingTable
    label={label}
    columns={columns}
    empty={empty}
    rows={events}
    keyOf={({ id }) => id}
    dataOf={({ id, status }) => ({ 'data-event': id, 'data-status': status })}
  />
)
