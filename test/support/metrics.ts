/** Reads the metrics page. */
import type { Client } from './api.ts'

/** Reads the page once. Returns a function that finds a sample by its name with labels, as on the page. */
export async function readMetrics(api: Client): Promise<(series: string) => number | undefined> {
  const lines = (await (await fetch(`${api.url}/metrics`)).text()).split('\n')
  return (series) => {
    const line = lines.find((text) => text.startsWith(`${series} `))
    return line === undefined ? undefined : Number(line.slice(series.length))
  }
}
