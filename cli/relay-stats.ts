/** The statistics that a relay itself serves, without authentication. */

const requestMillisMax = 15_000

/** Rejects when there is no answer, or its body is not JSON. */
export async function readRelayStats<Stats>(url: string): Promise<Stats> {
  const response = await fetch(url, { signal: AbortSignal.timeout(requestMillisMax) })
  return (await response.json()) as Stats
}
