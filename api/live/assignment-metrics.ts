/** Metrics of the reports that wait in this process. */
import { Gauge, type Registry } from 'prom-client'
import type { Assignments } from './assignments.ts'

export function registerAssignmentMetrics(registry: Registry, assignments: Assignments): void {
  new Gauge({
    name: 'svc_relay_reports_waiting',
    help: 'Reports of relays without a session that wait for an assignment.',
    registers: [registry],
    collect() {
      this.set(assignments.countWaiting())
    },
  })
}
