/** Ends all live sessions before the stack stops, so that the next start finds no orphan. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expectSuccess } from '../client/api-error.ts'
import { type ApiClient, createApiClient, operatorCredentials } from '../client/client.ts'

/** After that the processes of the relays are killed. */
const drainMillisMax = 8000

/**
 * Disconnects every live session as the operator and waits until all relays have ended, for at most 8 s.
 * @returns the number of sessions. Rejects when the API does not answer.
 */
export async function drainSessions(
  api: string,
  operatorPassword: string,
  haveRelaysEnded: () => Promise<boolean>,
): Promise<number> {
  const operator = createApiClient({ baseUrl: api, headers: operatorCredentials(operatorPassword) })
  const signal = AbortSignal.timeout(drainMillisMax)
  const ids = await listLiveSessions(operator, signal)
  const body = { reason: 'the service was stopped' }
  await Promise.all(
    ids.map((id) =>
      operator.POST('/api/v1/admin/sessions/{id}/disconnect', { params: { path: { id } }, body, signal }),
    ),
  )
  while (!signal.aborted && !(await haveRelaysEnded())) await sleep(100)
  return ids.length
}

async function listLiveSessions(operator: ApiClient, signal: AbortSignal): Promise<string[]> {
  const ids: string[] = []
  for (const state of ['provisioning', 'active', 'grace'] as const) {
    let cursor: string | null | undefined
    do {
      const query = cursor ? { state, cursor } : { state }
      const listed = await operator.GET('/api/v1/admin/sessions', { params: { query }, signal })
      const page = expectSuccess(listed, 'The list of sessions')
      ids.push(...page.sessions.map((session) => session.session_id))
      cursor = page.next_cursor
    } while (cursor)
  }
  return ids
}
