/** Billing events as a table. */
import { TimeAgo } from '../time-text.tsx'
import { EventLink, UserLink } from './identifier.tsx'
import type { BillingEvent } from './operator-replies.ts'
import { ScrollingTable } from './scrolling-table.tsx'
import { EventStatus } from './state-badges.tsx'

const headings = ['Event', 'Status', 'Provider', 'Type', 'Action', 'Account', 'Received', 'Error']

interface EventTableProps {
  readonly events: readonly BillingEvent[]
  readonly label: string
  readonly empty: string
}

export const EventTable = ({ events, label, empty }: EventTableProps) => (
  <ScrollingTable label={label} headings={headings} empty={empty}>
    {events.map((event) => (
      <tr key={event.id} data-event={event.id} data-status={event.status}>
        <th scope="row">
          <EventLink id={event.id} />
        </th>
        <td>
          <EventStatus status={event.status} />
        </td>
        <td>{event.provider}</td>
        <td>{event.type}</td>
        <td>{event.action ?? '–'}</td>
        <td>
          <UserLink id={event.user_id} />
        </td>
        <td>
          <TimeAgo at={event.received_at} />
        </td>
        <td class="sentence">{event.error ?? '–'}</td>
      </tr>
    ))}
  </ScrollingTable>
)
