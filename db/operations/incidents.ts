/** Incidents of the service, and when it measured its parts. */
import {
  type Incident,
  type IncidentKind,
  type IncidentPart,
  type IncidentSubject,
  incidentDays,
} from '../../domain/operations/incidents.ts'
import { first, hasRow, type Sql } from '../connection.ts'

export interface IncidentRow extends IncidentSubject {
  readonly id: string
  readonly beganAt: Date
  readonly endedAt: Date | null
  /** What an operator says about it. */
  readonly note: string | null
  readonly notedAt: Date | null
}

const columns = (sql: Sql) => sql`id, region, part, kind, began_at, ended_at, note, noted_at`

/** More are not shown. */
const listedMax = 500

/** The incidents of the last {@link incidentDays} days, newest first. Without suspicions. */
export const listIncidents = async (sql: Sql): Promise<IncidentRow[]> =>
  sql<IncidentRow[]>`
    select ${columns(sql)} from incidents
    where confirmed_at is not null and (ended_at is null or ended_at > now() - make_interval(days => ${incidentDays}))
    order by began_at desc, id limit ${listedMax}`

/** Since when the service measures its parts. */
export const readMeasuredSince = async (sql: Sql): Promise<Date> => {
  const row = await first(sql<{ beganAt: Date }[]>`select began_at from incident_watch`)
  if (!row) throw new Error('incident_watch has no row')
  return row.beganAt
}

interface Watch {
  readonly now: number
  /** The last measurement; null before the first. */
  readonly measuredAt: number | null
}

/** Lets one measurement at a time go on, until its transaction ends. */
export async function lockWatch(tx: Sql): Promise<Watch> {
  await tx`select from incident_watch for update`
  const row = await first(
    tx<{ now: Date; measuredAt: Date | null }[]>`select now() as now, measured_at from incident_watch`,
  )
  if (!row) throw new Error('incident_watch has no row')
  return { now: row.now.getTime(), measuredAt: row.measuredAt?.getTime() ?? null }
}

export const recordMeasurement = async (tx: Sql, now: number): Promise<void> => {
  await tx`update incident_watch set measured_at = ${new Date(now)}`
}

export interface WatchedIncident extends IncidentSubject, Incident {
  readonly id: string
}

export const subjectKey = ({ region, part, kind }: IncidentSubject): string => JSON.stringify([region, part, kind])

/** The measured suspicions and incidents that have not ended. Operators end those that they added. */
export async function listOpenIncidents(tx: Sql): Promise<WatchedIncident[]> {
  const rows = await tx<
    (IncidentSubject & { id: string; beganAt: Date; confirmedAt: Date | null; fineSince: Date | null })[]
  >`select id, region, part, kind, began_at, confirmed_at, fine_since from incidents
    where ended_at is null and kind <> 'reported'`
  return rows.map(({ beganAt, confirmedAt, fineSince, ...row }) => ({
    ...row,
    beganAt: beganAt.getTime(),
    confirmedAt: confirmedAt?.getTime() ?? null,
    fineSince: fineSince?.getTime() ?? null,
    endedAt: null,
  }))
}

/** When the last incident of each subject ended, by {@link subjectKey}. */
export async function listLastEnds(tx: Sql): Promise<ReadonlyMap<string, number>> {
  const rows = await tx<(IncidentSubject & { endedAt: Date })[]>`
    select region, part, kind, max(ended_at) as ended_at from incidents
    where ended_at is not null and kind <> 'reported' group by region, part, kind`
  return new Map(rows.map((row) => [subjectKey(row), row.endedAt.getTime()]))
}

const toDate = (millis: number | null): Date | null => (millis === null ? null : new Date(millis))

export const insertIncident = async (tx: Sql, subject: IncidentSubject, incident: Incident): Promise<void> => {
  await tx`
    insert into incidents (region, part, kind, began_at, confirmed_at, fine_since, ended_at)
    values (${subject.region}, ${subject.part}, ${subject.kind}, ${new Date(incident.beganAt)},
      ${toDate(incident.confirmedAt)}, ${toDate(incident.fineSince)}, ${toDate(incident.endedAt)})`
}

export const updateIncident = async (tx: Sql, id: string, incident: Incident): Promise<void> => {
  await tx`
    update incidents set began_at = ${new Date(incident.beganAt)}, confirmed_at = ${toDate(incident.confirmedAt)},
      fine_since = ${toDate(incident.fineSince)}, ended_at = ${toDate(incident.endedAt)}
    where id = ${id}`
}

/** Of a suspicion that was none. */
export const deleteSuspicion = async (tx: Sql, id: string): Promise<void> => {
  await tx`delete from incidents where id = ${id} and confirmed_at is null`
}

export interface ReportedIncident {
  readonly region: string | null
  readonly part: IncidentPart
  readonly note: string
  /** Now when undefined or later. */
  readonly beganAt?: string | undefined
}

/** @returns undefined when the operators' incident of this part and region is open. */
export const insertReportedIncident = async (
  tx: Sql,
  { region, part, note, beganAt }: ReportedIncident,
): Promise<IncidentRow | undefined> =>
  first(tx<IncidentRow[]>`
    insert into incidents (region, part, kind, began_at, confirmed_at, note, noted_at)
    values (${region}, ${part}, ${'reported' satisfies IncidentKind}, least(${beganAt ?? null}::timestamptz, now()),
      now(), ${note}, now())
    on conflict (coalesce(region, ''), part, kind) where ended_at is null do nothing
    returning ${columns(tx)}`)

/** @returns undefined for an id that is none of an incident. */
export const setIncidentNote = async (tx: Sql, id: string, note: string): Promise<IncidentRow | undefined> =>
  first(tx<IncidentRow[]>`
    update incidents set note = ${note}, noted_at = now() where id = ${id} and confirmed_at is not null
    returning ${columns(tx)}`)

/** @returns undefined unless it is an operators' incident that was open. */
export const endReportedIncident = async (tx: Sql, id: string): Promise<IncidentRow | undefined> =>
  first(tx<IncidentRow[]>`
    update incidents set ended_at = greatest(began_at, now()) where id = ${id} and kind = 'reported' and ended_at is null
    returning ${columns(tx)}`)

export const hasIncident = async (sql: Sql, id: string): Promise<boolean> =>
  hasRow(sql`select from incidents where id = ${id} and confirmed_at is not null`)
