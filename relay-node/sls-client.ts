/**
 * The HTTP API of an SLS server, as far as it has one. OpenIRL's srt-live-server admits registered stream ids only;
 * irl-srt-server has no register, and disconnects streams on request. Each answers 404 to the requests of the other.
 */
import type { SlsServer } from '../domain/relay/engines.ts'

/** Below the time that a caller waits for its connection. */
const requestMillisMax = 2_000

export interface SlsClient {
  /** Resolves also where the ids are registered, or the server has no register. */
  register(ids: { readonly publisher: string; readonly player: string }): Promise<void>
  unregister(player: string): Promise<void>
  /** Resolves also where the stream does not exist. */
  disconnect(publisher: string): Promise<void>
}

export function createSlsClient({ apiUrl, apiKey }: Pick<SlsServer, 'apiUrl' | 'apiKey'>): SlsClient {
  const request = async (method: string, path: string, authorization: string, body?: object) => {
    const response = await fetch(`${apiUrl}${path}`, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // A redirect would send the key to another host.
      redirect: 'error',
      signal: AbortSignal.timeout(requestMillisMax),
    })
    await response.body?.cancel()
    return response.status
  }
  /** The path is not part of the message, since that of a request may have a query. */
  const expect = (action: string, status: number, ...others: number[]) => {
    if (status !== 200 && !others.includes(status)) throw new Error(`SLS answered ${status} to ${action}`)
  }
  const bearer = `Bearer ${apiKey}`

  return {
    async register({ publisher, player }) {
      const body = { publisher, player, description: 'relay' }
      expect('the registration of stream ids', await request('POST', '/api/stream-ids', bearer, body), 404, 409)
    },
    async unregister(player) {
      const path = `/api/stream-ids/${encodeURIComponent(player)}`
      expect('the removal of stream ids', await request('DELETE', path, bearer), 404)
    },
    async disconnect(publisher) {
      const path = `/disconnect?stream=${encodeURIComponent(publisher)}`
      // irl-srt-server compares the whole header with its keys.
      expect('a disconnect', await request('POST', path, apiKey), 404)
    },
  }
}
