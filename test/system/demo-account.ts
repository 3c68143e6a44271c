/** The demo account of a stack, over its API. */
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SessionView } from '../../api/views/relay-session.ts'
import type { Stack } from '../support/stack.ts'

/** The parts that a test of a stack reads. */
export interface DemoHistory {
  readonly transitions: readonly {
    readonly from: string
    readonly to: string
    readonly reason: string
    readonly at: string
  }[]
  readonly replacements: readonly { readonly at: string; readonly away_seconds: number; readonly cause: string }[]
}

export async function signInToDemo(stack: Stack, dataDir: string) {
  const { demo } = JSON.parse(await readFile(`${dataDir}/secrets.json`, 'utf8')) as { demo: object }
  const call = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${stack.api}/api/v1${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return response.json() as Promise<unknown>
  }
  const { cp_access_jwt } = (await call('POST', '/auth/login', demo)) as { cp_access_jwt: string }
  const bearer = { authorization: `Bearer ${cp_access_jwt}` }
  return {
    start: () => call('POST', '/relay/start', {}, { ...bearer, 'idempotency-key': crypto.randomUUID() }),
    stop: () => call('POST', '/relay/stop', { connection_id: 'default', immediate: true }, bearer),
    history: async (id: string) => (await call('GET', `/relay/sessions/${id}`, undefined, bearer)) as DemoHistory,
    /**
     * Resolves with the session, which may be none, once it is as expected. Polls below the rate limit, unless the test
     * has raised that.
     */
    async untilSession(isExpected: (session: SessionView | null) => boolean, pollMillis = 1_200): Promise<SessionView> {
      for (const until = Date.now() + 60_000; Date.now() < until; await sleep(pollMillis)) {
        const { session } = (await call('GET', '/relay/active', undefined, bearer)) as { session: SessionView | null }
        if (isExpected(session)) return session as SessionView
      }
      throw new Error('the session did not become as expected')
    },
  }
}
