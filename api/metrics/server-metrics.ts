/** Metrics of Postgres, of the processes of the service, and of the certificates of its public addresses. */
import { Gauge, type Registry } from 'prom-client'
import type { Sql } from '../../db/connection.ts'
import { listCertificateChecks } from '../../db/operations/certificate-checks.ts'
import { readServerFigures } from '../../db/operations/server-figures.ts'
import { countAliveWorkers, greatestSkews } from '../../db/operations/workers.ts'

/** Reads the figures. @returns a function that adds them to a registry. */
export async function readServerGauges(sql: Sql): Promise<(registry: Registry) => void> {
  const startedAt = performance.now()
  const { connections, connectionsMax, absences, probeFailingSeconds } = await readServerFigures(sql)
  const roundTripSeconds = (performance.now() - startedAt) / 1000
  const [workers, skews, certificates] = await Promise.all([
    countAliveWorkers(sql),
    greatestSkews(sql),
    listCertificateChecks(sql),
  ])
  return (registry) => {
    const gauge = (name: string, help: string, labelNames: string[] = []) =>
      new Gauge({ name, help, labelNames, registers: [registry] })
    gauge('svc_postgres_round_trip_seconds', 'Time of a query of the metrics page.').set(roundTripSeconds)
    gauge('svc_postgres_connections', 'Connections of all clients of the Postgres server.').set(connections)
    gauge('svc_postgres_connections_max', 'Maximum number of connections of ordinary users.').set(connectionsMax)

    gauge('svc_workers_alive', 'Worker processes with a recent heartbeat.').set(workers)
    const absence = gauge(
      'svc_process_absent_seconds',
      'Time since a process of the role last confirmed that it can work.',
      ['role'],
    )
    for (const { role, seconds } of absences) absence.set({ role }, seconds)
    gauge(
      'svc_api_probe_failing_seconds',
      'Time since workers cannot reach the API through its public address, as relays do.',
    ).set(probeFailingSeconds)
    const skew = gauge(
      'svc_clock_skew_seconds',
      'Largest clock difference between a live worker and Postgres or Temporal.',
      ['clock'],
    )
    for (const clock of ['postgres', 'temporal'] as const) if (skews[clock] !== null) skew.set({ clock }, skews[clock])

    const expiry = gauge('svc_certificate_expiry_timestamp_seconds', 'End of the certificate of a public address.', [
      'endpoint',
    ])
    const valid = gauge('svc_certificate_ok', '1 if clients accept the certificate of a public address, else 0.', [
      'endpoint',
    ])
    for (const { endpoint, expiresAt, error } of certificates) {
      if (expiresAt) expiry.set({ endpoint }, expiresAt.getTime() / 1000)
      valid.set({ endpoint }, error === null ? 1 : 0)
    }
  }
}
