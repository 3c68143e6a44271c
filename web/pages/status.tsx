/** The public status page: whether the service replies, the capacity of each region, and the last incidents. */
import { feedPath } from '../../domain/operations/incident-feed.ts'
import { Icon } from '../icons.tsx'
import type { PageHandler } from '../page.ts'
import { DateTime } from '../time-text.tsx'
import { type Capacity, CapacityBadge, findCapacity } from './capacity.tsx'
import { findIncidents, hasOpenIncident, IncidentSections, type Incidents } from './status-incidents.tsx'

/** How often the page requests itself again. */
const refreshSeconds = 30

export const show: PageHandler = async (visit) => {
  const [capacity, incidents] = await Promise.all([findCapacity(visit), findIncidents(visit)])
  return {
    name: 'status',
    title: 'Status',
    preview: { description: 'Whether the service works right now, and where relays can be started.' },
    styles: ['status.css'],
    feed: { path: feedPath, title: 'Incidents' },
    retryAfterSeconds: refreshSeconds,
    page: <Status capacity={capacity} incidents={incidents} now={new Date()} />,
  }
}

type Level = 'operational' | 'limited' | 'full' | 'incident' | 'unavailable'

const levels = {
  operational: ['notice', 'circle-check', 'All systems work'],
  limited: ['warning', 'triangle-alert', 'Few relays are left'],
  full: ['warning', 'triangle-alert', 'No relays are left'],
  incident: ['warning', 'triangle-alert', 'Part of the service is disturbed'],
  unavailable: ['problem', 'cloud-off', 'The service is not responding'],
} as const satisfies Record<Level, readonly unknown[]>

const explanations: Readonly<Record<Level, string>> = {
  operational: 'You can sign in and start relays.',
  limited: 'You can sign in and use your relays. New relays may have to wait for room.',
  full: 'You can sign in and use your relays. New relays can’t be started until others end.',
  incident: 'What is disturbed, and since when, is listed below.',
  unavailable: 'You can’t sign in or start a relay right now. Relays that are running keep forwarding video.',
}

const levelOf = ({ capacity, incidents }: Pick<StatusProps, 'capacity' | 'incidents'>): Level => {
  if (!capacity) return 'unavailable'
  if (hasOpenIncident(incidents)) return 'incident'
  return capacity.status === 'available' ? 'operational' : capacity.status
}

interface StatusProps {
  readonly capacity: Capacity | undefined
  readonly incidents: Incidents | undefined
  readonly now: Date
}

function Status({ capacity, incidents, now }: StatusProps) {
  const level = levelOf({ capacity, incidents })
  const [className, icon, title] = levels[level]
  return (
    <>
      <div class="page-head">
        <h1>Status</h1>
        <p class="lead">
          Checked on <DateTime at={now.toISOString()} />. This page updates itself every {refreshSeconds} seconds.
        </p>
      </div>
      <section class={`${className} status-now`} aria-labelledby="now" data-status={level}>
        <Icon name={icon} />
        <div>
          <h2 id="now">{title}</h2>
          <p>{explanations[level]}</p>
        </div>
      </section>
      <section class="card" aria-labelledby="components">
        <h2 id="components">Service</h2>
        <ul class="entries">
          <li class="row apart">
            <span>Site</span>
            <span class="badge good">Responding</span>
          </li>
          <li class="row apart" data-api={capacity ? 'up' : 'down'}>
            <span>API</span>
            <span class={capacity ? 'badge good' : 'badge bad'}>{capacity ? 'Responding' : 'Not responding'}</span>
          </li>
        </ul>
      </section>
      <section class="card" aria-labelledby="regions">
        <h2 id="regions">Regions</h2>
        {capacity ? (
          <Regions regions={capacity.regions} />
        ) : (
          <p class="muted">Unknown while the API isn’t responding.</p>
        )}
      </section>
      <IncidentSections found={incidents} now={now} />
    </>
  )
}

const Regions = ({ regions }: Pick<Capacity, 'regions'>) => (
  <ul class="entries">
    {regions.map(({ region, display_name: name, status }) => (
      <li key={region} class="row apart" data-region={region}>
        <span>{name}</span>
        <CapacityBadge status={status} />
      </li>
    ))}
  </ul>
)
