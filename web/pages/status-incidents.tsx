/** The incidents of the last days on the status page: a strip for each region, and all of them as text. */
import { isApiFailure } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import { type IncidentDay, listIncidentDays } from '../../domain/operations/incident-days.ts'
import { feedPath } from '../../domain/operations/incident-feed.ts'
import { incidentDays } from '../../domain/operations/incidents.ts'
import { DayStrip, DayStripLegend } from '../charts/day-strip.tsx'
import type { Visit } from '../page.ts'
import { DateTime, Day, formatDuration } from '../time-text.tsx'

export type Incidents = Reply<'get', '/incidents'>
type Incident = Incidents['incidents'][number]

/** Undefined while the API is unavailable, which must not take a public page with it. */
export async function findIncidents({ anonymousApi }: Pick<Visit, 'anonymousApi'>): Promise<Incidents | undefined> {
  try {
    return (await anonymousApi.GET('/api/v1/incidents')).data
  } catch (error) {
    if (isApiFailure(error)) return undefined
    throw error
  }
}

export const hasOpenIncident = (found: Incidents | undefined): boolean =>
  found?.incidents.some(({ ended_at }) => ended_at === null) ?? false

/** More would make the page long on a phone. */
const listedMax = 50

const daysMillis = incidentDays * 86_400_000

interface IncidentSectionsProps {
  readonly found: Incidents | undefined
  readonly now: Date
}

export const IncidentSections = ({ found, now }: IncidentSectionsProps) => (
  <>
    <section class="card" aria-labelledby="days">
      <h2 id="days">Last {incidentDays} days</h2>
      {found ? <Strips found={found} now={now} /> : <Unknown />}
    </section>
    <section class="card" aria-labelledby="incidents">
      <div class="row apart">
        <h2 id="incidents">Incidents</h2>
        <a class="link" href={feedPath} type="application/atom+xml">
          Feed (Atom)
        </a>
      </div>
      {found ? <IncidentList found={found} now={now} /> : <Unknown />}
    </section>
  </>
)

const Unknown = () => <p class="muted">Unknown while the API isn’t responding.</p>

function Strips({ found: { incidents, regions, measured_since }, now }: { found: Incidents; now: Date }) {
  const removed = incidents.flatMap(({ region, region_name }) =>
    region !== null && !regions.some((known) => known.region === region)
      ? [[region, region_name ?? region] as const]
      : [],
  )
  const subjects: readonly (readonly [region: string | null, name: string])[] = [
    [null, 'Service'],
    ...regions.map(({ region, display_name }) => [region, display_name] as const),
    ...new Map(removed),
  ]
  const daysOf = (region: string | null) =>
    listIncidentDays(
      incidents
        .filter((incident) => incident.region === region)
        .map(({ began_at, ended_at }) => ({
          beganAt: Date.parse(began_at),
          endedAt: ended_at === null ? null : Date.parse(ended_at),
        })),
      { now: now.getTime(), measuredSince: Date.parse(measured_since) },
    )
  return (
    <>
      {subjects.map(([region, name]) => (
        <Strip key={region ?? ''} region={region} name={name} days={daysOf(region)} />
      ))}
      <p class="row apart muted strip-ends">
        <span>{incidentDays - 1} days ago</span>
        <span>Today (UTC)</span>
      </p>
      <DayStripLegend />
    </>
  )
}

interface StripProps {
  /** Null for the whole service. */
  readonly region: string | null
  readonly name: string
  readonly days: readonly IncidentDay[]
}

function Strip({ region, name, days }: StripProps) {
  const count = days.filter(({ level }) => level === 'incident').length
  const summary = count === 0 ? 'No incidents' : `Incidents on ${count} day${count === 1 ? '' : 's'}`
  const label = `${name}, last ${days.length} days: ${summary.toLowerCase()}${count === 0 ? '' : ', listed below'}`
  return (
    <div class="strip" data-strip={region ?? 'service'} data-incident-days={count}>
      <p class="row apart">
        <span>{name}</span>
        <span class="muted">{summary}</span>
      </p>
      <DayStrip days={days} label={label} />
    </div>
  )
}

function IncidentList({ found: { incidents, measured_since }, now }: { found: Incidents; now: Date }) {
  const isMeasuredThroughout = Date.parse(measured_since) <= now.getTime() - daysMillis
  return (
    <>
      {incidents.length === 0 ? (
        <p data-incidents="none">
          {isMeasuredThroughout ? (
            `No incidents in the last ${incidentDays} days.`
          ) : (
            <>
              No incidents since the service began measuring on <Day at={measured_since} />.
            </>
          )}
        </p>
      ) : (
        <ol class="entries incidents">
          {incidents.slice(0, listedMax).map((incident) => (
            <IncidentEntry key={incident.id} incident={incident} />
          ))}
        </ol>
      )}
      {incidents.length > listedMax ? <p class="muted">Older ones are in the feed.</p> : null}
    </>
  )
}

function IncidentEntry({ incident }: { readonly incident: Incident }) {
  const { id, region_name, kind, title, explanation, note, began_at, ended_at } = incident
  return (
    <li id={`incident-${id}`} data-incident={kind}>
      <div class="row apart">
        <h3>{region_name === null ? title : `${region_name}: ${title}`}</h3>
        <span class={ended_at === null ? 'badge bad' : 'badge'}>{ended_at === null ? 'Ongoing' : 'Over'}</span>
      </div>
      <p class="muted">
        {ended_at === null ? (
          <>
            Since <DateTime at={began_at} />
          </>
        ) : (
          <>
            <DateTime at={began_at} /> to <DateTime at={ended_at} /> (
            {formatDuration((Date.parse(ended_at) - Date.parse(began_at)) / 1000)})
          </>
        )}
      </p>
      {explanation === '' ? null : <p>{explanation}</p>}
      {note === null ? null : (
        <p class="incident-note">
          <strong>Note:</strong> {note}
        </p>
      )}
    </li>
  )
}
