/** What operators say about incidents, and those that they report themselves. */
import { recordAuditEntry } from '../audit.ts'
import type { Database, Sql } from '../connection.ts'
import {
  endReportedIncident,
  type IncidentRow,
  insertReportedIncident,
  type ReportedIncident,
  setIncidentNote,
} from '../operations/incidents.ts'
import type { OperatorAct } from './change-region.ts'

type IncidentChange = (tx: Sql) => Promise<IncidentRow | undefined>

/** Makes and audits a change in one transaction. @returns undefined when nothing was changed. */
const recordIncidentChange = (
  sql: Database,
  action: string,
  { ip, reason }: OperatorAct,
  change: IncidentChange,
): Promise<IncidentRow | undefined> =>
  sql.begin(async (tx): Promise<IncidentRow | undefined> => {
    const incident = await change(tx)
    if (!incident) return undefined
    const { id, region, part, note } = incident
    const detail = { incident_id: id, region, part, note, ...(reason === undefined ? {} : { reason }) }
    await recordAuditEntry(tx, { initiator: 'operator', action, ip, detail })
    return incident
  }) as Promise<IncidentRow | undefined>

/** @returns undefined when one of this part and region is open. */
export const addIncident = (sql: Database, incident: ReportedIncident, act: OperatorAct) =>
  recordIncidentChange(sql, 'incident_added', act, (tx) => insertReportedIncident(tx, incident))

/** Replaces the note. @returns undefined for an id that is none of an incident. */
export const noteIncident = (sql: Database, id: string, note: string, act: OperatorAct) =>
  recordIncidentChange(sql, 'incident_noted', act, (tx) => setIncidentNote(tx, id, note))

/** @returns undefined unless it is one that an operator added and that was open. */
export const endIncident = (sql: Database, id: string, act: OperatorAct) =>
  recordIncidentChange(sql, 'incident_ended', act, (tx) => endReportedIncident(tx, id))
