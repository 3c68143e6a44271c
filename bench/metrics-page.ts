/** Response time of `/metrics` on a database with many sessions. */

import { stoppedSessions } from './data.ts'
import { call } from './load.ts'
import { formatNumber, type Row, spreadOf, withLimit } from './pairs.ts'
import type { RunningProgram } from './stack.ts'

const pages = 40

export async function measureMetricsPage(api: RunningProgram): Promise<Row[]> {
  const latencies: number[] = []
  for (let read = -3; read < pages; read += 1) {
    const startedAt = performance.now()
    await call({ method: 'GET', url: `${api.url}/metrics`, headers: {} })
    if (read >= 0) latencies.push(performance.now() - startedAt)
  }
  const { min, median, max } = spreadOf(latencies)
  const row = withLimit(`GET /metrics with ${stoppedSessions.toLocaleString('en')} session rows`, median, 'ms', 50)
  return [{ ...row, ours: `${row.ours} (${formatNumber(min)} to ${formatNumber(max)})` }]
}
