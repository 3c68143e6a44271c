/**
 * Sends watchers the stream events of the sessions that they watch, each one once and in order. A watcher that sees a
 * session for the first time gets its last event only, marked as the present state.
 */
import type { Database } from '../../db/connection.ts'
import { listStreamEventsAfter, type NumberedStreamEventRow } from '../../db/relay/stream-events.ts'
import { streamEventMessage } from '../views/stream-event.ts'
import type { Watcher } from './watcher.ts'

/** Of each session that was read its events, of which the last is always there if there is one. */
export type ReadStreamEvents = ReadonlyMap<string, readonly NumberedStreamEventRow[]>

export interface StreamEventFeed {
  add(watcher: Watcher): void
  remove(watcher: Watcher): void
  /**
   * Reads what these watchers have not got.
   * @param watched by session id. Sessions without a watcher of events are left out.
   */
  read(watched: ReadonlyMap<string, readonly Watcher[]>): Promise<ReadStreamEvents>
  /** Sends a watcher the events since its last one. To be called before the message of a session. */
  sendNew(watcher: Watcher, sessionId: string, read: ReadStreamEvents): void
  /** Sends a watcher the last event, unless it gets all of them already. To be called after that message. */
  sendCurrent(watcher: Watcher, sessionId: string, read: ReadStreamEvents): void
  /** The session has stopped, and its last event was sent. */
  forget(watcher: Watcher, sessionId: string): void
}

export function createStreamEventFeed(sql: Database): StreamEventFeed {
  /** Per watcher of events the number of the last event of each session that it has seen; 0 before the first one. */
  const sent = new Map<Watcher, Map<string, number>>()

  const sendAll = (watcher: Watcher, rows: readonly NumberedStreamEventRow[], isCurrent: boolean) => {
    for (const row of rows) {
      sent.get(watcher)?.set(row.sessionId, row.number)
      watcher.send(streamEventMessage(row, isCurrent))
    }
  }

  return {
    add: (watcher) => {
      if (watcher.hasEvents) sent.set(watcher, new Map())
    },
    remove: (watcher) => {
      sent.delete(watcher)
    },
    read: async (watched) => {
      const after = new Map<string, number | undefined>()
      for (const [sessionId, watchers] of watched) {
        const numbers = watchers.flatMap((watcher) => {
          const ofWatcher = sent.get(watcher)
          return ofWatcher ? [ofWatcher.get(sessionId)] : []
        })
        const known = numbers.filter((number) => number !== undefined)
        if (numbers.length > 0) after.set(sessionId, known.length > 0 ? Math.min(...known) : undefined)
      }
      const read = new Map([...after.keys()].map((sessionId): [string, NumberedStreamEventRow[]] => [sessionId, []]))
      if (after.size > 0) for (const row of await listStreamEventsAfter(sql, after)) read.get(row.sessionId)?.push(row)
      return read
    },
    sendNew: (watcher, sessionId, read) => {
      const last = sent.get(watcher)?.get(sessionId)
      if (last === undefined) return
      sendAll(watcher, read.get(sessionId)?.filter(({ number }) => number > last) ?? [], false)
    },
    sendCurrent: (watcher, sessionId, read) => {
      const ofWatcher = sent.get(watcher)
      if (!ofWatcher || ofWatcher.has(sessionId)) return
      const rows = read.get(sessionId)
      // The watcher came during the read, and is due again.
      if (rows === undefined) return
      ofWatcher.set(sessionId, 0)
      sendAll(watcher, rows.slice(-1), true)
    },
    forget: (watcher, sessionId) => {
      sent.get(watcher)?.delete(sessionId)
    },
  }
}
