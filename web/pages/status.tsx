/** The public status page: whether the service replies, and the capacity of each region. */
import { Icon } from '../icons.tsx'
import type { PageHandler } from '../page.ts'
import { DateTime } from '../time-text.tsx'
import { type Capacity, CapacityBadge, findCapacity } from './capacity.tsx'

/** How often the page requests itself again. */
const refreshSeconds = 30

export const show: PageHandler = async (visit) => {
  const capacity = await findCapacity(visit)
  return {
    name: 'status',
    title: 'Status',
    styles: ['status.css'],
    retryAfterSeconds: refreshSeconds,
    page: <Status capacity={capacity} checkedAt={new Date().toISOString()} />,
  }
}

type Level = 'operational' | 'limited' | 'full' | 'unavailable'

const levels = {
  operational: ['notice', 'circle-check', 'All systems work'],
  limited: ['warning', 'triangle-alert', 'Few relays are left'],
  full: ['warning', 'triangle-alert', 'No relays are left'],
  unavailable: ['problem', 'cloud-off', 'The service is not responding'],
} as const satisfies Record<Level, readonly unknown[]>

const explanations: Readonly<Record<Level, string>> = {
  operational: 'You can sign in and start relays.',
  limited: 'You can sign in and use your relays. New relays may have to wait for room.',
  full: 'You can sign in and use your relays. New relays can’t be started until others end.',
  unavailable: 'You can’t sign in or start a relay right now. Relays that are running keep forwarding video.',
}

const levelOf = (capacity: Capacity | undefined): Level => {
  if (!capacity) return 'unavailable'
  return capacity.status === 'available' ? 'operational' : capacity.status
}

interface StatusProps {
  readonly capacity: Capacity | undefined
  /** RFC 3339. */
  readonly checkedAt: string
}

function Status({ capacity, checkedAt }: StatusProps) {
  const level = levelOf(capacity)
  const [className, icon, title] = levels[level]
  return (
    <>
      <div class="page-head">
        <h1>Status</h1>
        <p class="lead">
          Checked on <DateTime at={checkedAt} />. This page updates itself every {refreshSeconds} seconds.
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
