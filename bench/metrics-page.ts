/** Response time of `/metrics` on a database with many sessions. */
import { call } from './load.ts'
import type { RunningProgram } from './machine.ts'
import { absolute, type Row, shortened, spreadOf } from './pairs.ts'
import { stoppedSessions } from './rows.ts'

const pages = 40

export async function measureMetricsPage(api: RunningProgram): Promise<Row[]> {
  const latencies: number[] = []
  for (let read = -3; read < pages; read += 1) {
    const startedAt = performance.now()
    await call({ method: 'GET', url: `${api.url}/metrics`, headers: {} })
    if (read >= 0) latencies.push(performance.now() - startedAt)
  }
  const { min, median, max } = spreadOf(latencies)
  const row = absolute(`GET /metrics with ${stoppedSessions.toLocaleString('en')} session rows`, median, 'ms', 50)
  return [{ ...row, ours: `${row.ours} (${shortened(min)} to ${shortened(max)})` }]
}
