/** The latest relays, billing events and audit entries of an account. */
import { Instant } from '../time-text.tsx'
import { EventTable } from './event-table.tsx'
import type { AuditPage, BillingEvent, SessionPage } from './operator-replies.ts'
import { type Column, ScrollingTable } from './scrolling-table.tsx'
import { SessionTable } from './session-table.tsx'

/** Of each list; the rest is on the list's own page. */
const shownMax = 8

interface RelaysProps {
  readonly userId: string
  readonly sessions: SessionPage
}

/** All live relays, and the latest of the others. */
export const Relays = ({ userId, sessions: { sessions, next_cursor: next } }: RelaysProps) => {
  const shown = sessions.filter(({ state }, index) => state !== 'stopped' || index < shownMax)
  return (
    <>
      <ListHead
        title="Relays"
        href={`/operator/sessions?user_id=${userId}`}
        isMore={next !== null || shown.length < sessions.length}
      />
      <SessionTable sessions={shown} label="Relays of the account" empty="It has not started a relay." />
    </>
  )
}

interface RecentEventsProps {
  readonly userId: string
  readonly events: readonly BillingEvent[]
}

export const RecentEvents = ({ userId, events }: RecentEventsProps) => (
  <>
    <ListHead title="Billing events" href={`/operator/billing?user_id=${userId}`} isMore={events.length > shownMax} />
    <EventTable events={events.slice(0, shownMax)} label="Billing events of the account" empty="No billing events." />
  </>
)

interface RecentAuditProps {
  readonly userId: string
  readonly entries: AuditPage['entries']
}

export const RecentAudit = ({ userId, entries }: RecentAuditProps) => (
  <>
    <ListHead title="Audit" href={`/operator/audit?user_id=${userId}`} isMore={entries.length > shownMax} />
    <ScrollingTable
      label="Audit entries of the account"
      columns={auditColumns}
      empty="No entries."
      rows={entries.slice(0, shownMax)}
      keyOf={({ id }) => id}
      dataOf={({ action }) => ({ 'data-action': action })}
    />
  </>
)

const auditColumns: readonly Column<AuditPage['entries'][number]>[] = [
  { heading: 'Time', cell: ({ at }) => <Instant at={at} /> },
  { heading: 'Initiator', cell: ({ actor }) => actor },
  { heading: 'Action', cell: ({ action }) => action },
  { heading: 'Client', cell: ({ client }) => client ?? '–' },
  { heading: 'Address', cell: ({ ip }) => ip ?? '–' },
  {
    heading: 'Reason',
    class: 'sentence',
    cell: ({ detail }) => (typeof detail.reason === 'string' ? detail.reason : '–'),
  },
]

interface ListHeadProps {
  readonly title: string
  readonly href: string
  readonly isMore: boolean
}

const ListHead = ({ title, href, isMore }: ListHeadProps) => (
  <div class="row apart">
    <h2>{title}</h2>
    {isMore ? (
      <a class="link" href={href}>
        {`All: ${title.toLowerCase()}`}
      </a>
    ) : null}
  </div>
)
