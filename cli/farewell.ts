/** Ending the live sessions in good order before the stack stops, so that no relay is left for the next start to puzzle over. */
import { setTimeout as sleep } from 'node:timers/promises'
import { basicAuth } from './http.ts'

/** Beyond that the relays' processes are ended without a word to anybody. */
const farewellMillisMax = 8000

interface Page {
  sessions: Array<{ session_id: string }>
  next_cursor: string | null
}

/**
 * Disconnects every live session as the operator and waits until their relays are gone, at most 8 s in all.
 * @returns how many sessions there were. Rejects when the API doesn't answer.
 */
export async function disconnectSessions(
  api: string,
  operatorPassword: string,
  relaysAreGone: () => Promise<boolean>,
): Promise<number> {
  const headers = { authorization: basicAuth(operatorPassword), 'content-type': 'application/json' }
  const signal = AbortSignal.timeout(farewellMillisMax)
  const ids: string[] = []
  for (const state of ['provisioning', 'active', 'grace']) {
    let cursor: string | null = ''
    while (cursor !== null) {
      const query = `state=${state}${cursor === '' ? '' : `&cursor=${cursor}`}`
      const response = await fetch(`${api}/api/v1/admin/sessions?${query}`, { headers, signal })
      if (!response.ok) throw new Error(`the list of sessions was answered with ${response.status}`)
      const page = (await response.json()) as Page
      ids.push(...page.sessions.map((session) => session.session_id))
      cursor = page.next_cursor
    }
  }
  const body = JSON.stringify({ reason: 'the service was stopped' })
  await Promise.all(
    ids.map((id) => fetch(`${api}/api/v1/admin/sessions/${id}/disconnect`, { method: 'POST', headers, body, signal })),
  )
  while (!signal.aborted && !(await relaysAreGone())) await sleep(100)
  return ids.length
}
