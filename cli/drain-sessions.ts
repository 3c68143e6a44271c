/** Ends all live sessions before the stack stops, so that the next start finds no orphan. */
import { setTimeout as sleep } from 'node:timers/promises'
import { basicAuth } from './api-client.ts'

/** After that the processes of the relays are killed. */
const drainMillisMax = 8000

interface Page {
  sessions: Array<{ session_id: string }>
  next_cursor: string | null
}

/**
 * Disconnects every live session as the operator and waits until all relays have ended, for at most 8 s.
 * @returns the number of sessions. Rejects when the API does not answer.
 */
export async function drainSessions(
  api: string,
  operatorPassword: string,
  haveRelaysEnded: () => Promise<boolean>,
): Promise<number> {
  const headers = { authorization: basicAuth(operatorPassword), 'content-type': 'application/json' }
  const signal = AbortSignal.timeout(drainMillisMax)
  const ids: string[] = []
  for (const state of ['provisioning', 'active', 'grace']) {
    let cursor: string | null = ''
    while (cursor !== null) {
      const query = `state=${state}${cursor === '' ? '' : `&cursor=${cursor}`}`
      const response = await fetch(`${api}/api/v1/admin/sessions?${query}`, { headers, signal })
      if (!response.ok) throw new Error(`The list of sessions failed: ${response.status}`)
      const page = (await response.json()) as Page
      ids.push(...page.sessions.map((session) => session.session_id))
      cursor = page.next_cursor
    }
  }
  const body = JSON.stringify({ reason: 'the service was stopped' })
  await Promise.all(
    ids.map((id) => fetch(`${api}/api/v1/admin/sessions/${id}/disconnect`, { method: 'POST', headers, body, signal })),
  )
  while (!signal.aborted && !(await haveRelaysEnded())) await sleep(100)
  return ids.length
}
