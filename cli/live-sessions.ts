/** The live sessions of all accounts: lists them, and ends them before the stack stops. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expectSuccess } from '../client/api-error.ts'
import { type ApiClient, createApiClient, operatorCredentials } from '../client/client.ts'
import type { Reply } from '../client/reply.ts'

export type Session = Reply<'get', '/admin/sessions'>['sessions'][number]

interface SessionFilter {
  readonly region?: string
  readonly user_id?: string
}

/** After that the processes of the relays are killed. */
const drainMillisMax = 8000

/**
 * Disconnects every live session as the operator, so that the next start finds no orphan, and waits until all relays
 * have ended, for at most 8 s.
 * @returns the number of sessions. Rejects when the API does not answer.
 */
export async function drainSessions(
  api: string,
  operatorPassword: string,
  haveRelaysEnded: () => Promise<boolean>,
): Promise<number> {
  const operator = createApiClient({ baseUrl: api, headers: operatorCredentials(operatorPassword) })
  const signal = AbortSignal.timeout(drainMillisMax)
  const sessions = await listLiveSessions(operator, { signal, action: 'The list of sessions' })
  const body = { reason: 'the service was stopped' }
  await Promise.all(
    sessions.map(({ session_id: id }) =>
      operator.POST('/api/v1/admin/sessions/{id}/disconnect', { params: { path: { id } }, body, signal }),
    ),
  )
  while (!signal.aborted && !(await haveRelaysEnded())) await sleep(100)
  return sessions.length
}

/** All live sessions that match a filter. @param action the start of the error when a request fails. */
export async function listLiveSessions(
  operator: ApiClient,
  { filter = {}, signal = null, action }: { filter?: SessionFilter; signal?: AbortSignal | null; action?: string },
): Promise<Session[]> {
  const sessions: Session[] = []
  for (const state of ['provisioning', 'active', 'grace'] as const) {
    let cursor: string | null | undefined
    do {
      const query = { ...filter, state, ...(cursor ? { cursor } : {}) }
      const page = expectSuccess(await operator.GET('/api/v1/admin/sessions', { params: { query }, signal }), action)
      sessions.push(...page.sessions)
      cursor = page.next_cursor
    } while (cursor)
  }
  return sessions
}
