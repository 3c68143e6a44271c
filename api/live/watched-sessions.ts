/**
 * Live sessions that are looked at: by the relays page, by a socket, or by an operator. Their relays report every two
 * seconds, to whichever process, as long as that lasts.
 */
import type { Database } from '../../db/connection.ts'
import { announceWatches, listenForWatches, type Watched } from '../../db/relay/watches.ts'
import { batch } from '../../platform/batch.ts'
import type { Logger } from '../../platform/log.ts'

/** Who looks says so again before half of this time is over. */
const watchSeconds = 12
export const watchAgainSeconds = watchSeconds / 2 - 1

export interface WatchedSessions {
  /** Never rejects: without it the figures are older. */
  watch(watched: Watched): Promise<void>
  isWatched(sessionId: string): boolean
  /** Called with each session whose watch begins. */
  onBegin(handle: (sessionId: string) => void): void
}

export function createWatchedSessions(sql: Database, log: Logger): WatchedSessions {
  /** By session, in milliseconds. */
  const until = new Map<string, number>()
  const handlers: ((sessionId: string) => void)[] = []
  const isWatched = (sessionId: string) => (until.get(sessionId) ?? 0) > performance.now()
  const record = (sessionIds: readonly string[]) => {
    const now = performance.now()
    for (const [id, end] of until) if (end <= now) until.delete(id)
    for (const id of sessionIds) {
      const isNew = !until.has(id)
      until.set(id, now + watchSeconds * 1000)
      if (isNew) for (const handle of handlers) handle(id)
    }
  }
  // Pages that ask at the same time share a statement.
  const announce = batch(async (all: Watched[]) => {
    await announceWatches(sql, {
      sessionIds: all.flatMap(({ sessionIds }) => sessionIds),
      userIds: all.flatMap(({ userIds }) => userIds),
    })
    return all.map(() => undefined)
  })
  listenForWatches(sql, record).catch((error: unknown) =>
    log.warn({ err: error }, 'relays of sessions that are looked at do not report more often, for now'),
  )
  return {
    isWatched,
    onBegin: (handle) => void handlers.push(handle),
    watch: async (watched) => {
      await announce(watched).catch((error: unknown) => log.debug({ err: error }, 'a watch could not be announced'))
    },
  }
}
