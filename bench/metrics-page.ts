/** Response time of `/metrics` on a database with many sessions. */

import { figures } from './figures.ts'
import { call } from './load.ts'
import { spreadOf } from './pairs.ts'
import { type Row, single } from './rows.ts'
import type { RunningProgram } from './stack.ts'

const pages = 40

export async function measureMetricsPage(api: RunningProgram): Promise<Row[]> {
  const latencies: number[] = []
  for (let read = -3; read < pages; read += 1) {
    const startedAt = performance.now()
    await call({ method: 'GET', url: `${api.url}/metrics`, headers: {} })
    if (read >= 0) latencies.push(performance.now() - startedAt)
  }
  const spread = spreadOf(latencies)
  return [single(figures.metrics_page, spread.median, spread)]
}
