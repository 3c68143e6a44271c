/**
 * Sends each watcher the relay sessions that it watches: their present state at first, and then every change. Postgres
 * sends session changes, and one query reads all sessions that changed since the previous one. As session changes can
 * be lost together with their connection, and figures of the stream change without one, everything watched is also read
 * periodically.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../db/connection.ts'
import { listenForSessionChanges } from '../../db/relay/session-changes.ts'
import { listWatchedSessions, type ShownSessionRow } from '../../db/relay/sessions.ts'
import { watchedReportSeconds } from '../../domain/relay/health.ts'
import type { Logger } from '../../platform/log.ts'
import { startPeriodicTask } from '../../platform/periodic-task.ts'
import { presentSession, type SessionLimits } from '../views/relay-session.ts'
import { createStreamEventFeed, type ReadStreamEvents } from './stream-event-feed.ts'
import { type WatchedSessions, watchAgainSeconds } from './watched-sessions.ts'
import type { Watcher } from './watcher.ts'

/** Changes within this time after a read share the next one. */
const coalescingMillis = 25
const retryMillis = 1000

export interface RelayFeed {
  add(watcher: Watcher): void
  remove(watcher: Watcher): void
  stop(): Promise<void>
}

interface Deps {
  readonly sql: Database
  readonly log: Logger
  readonly limits: SessionLimits
  readonly watched: Pick<WatchedSessions, 'watch'>
}

export function createRelayFeed({ sql, log, limits, watched }: Deps): RelayFeed {
  const bySession = new Map<string, Set<Watcher>>()
  const byUser = new Map<string, Set<Watcher>>()
  /** Per watcher the last message of each live session. Empty text stands for one that has to be sent again. */
  const messages = new Map<Watcher, Map<string, string>>()
  const dueSessions = new Set<string>()
  const dueUsers = new Set<string>()
  const streamEvents = createStreamEventFeed(sql)
  let reading: Promise<void> | undefined
  let isStopped = false

  const placeOf = ({ scope }: Watcher): [Map<string, Set<Watcher>>, string] =>
    'sessionId' in scope ? [bySession, scope.sessionId] : [byUser, scope.userId]

  const readDue = () => {
    if (dueSessions.size + dueUsers.size > 0 && !isStopped) reading ??= readUntilNoneDue()
  }

  const readUntilNoneDue = async () => {
    let hasFailed = false
    while (dueSessions.size + dueUsers.size > 0 && !isStopped) {
      const due = { sessionIds: [...dueSessions], userIds: [...dueUsers] }
      dueSessions.clear()
      dueUsers.clear()
      try {
        const rows = await listWatchedSessions(sql, due)
        // Read after the sessions: the last event of one that has stopped is sent before its last message.
        const events = await streamEvents.read(new Map(rows.map((row) => [row.id, watchersOf(row)])))
        sendChanges(due.sessionIds, rows, events)
        hasFailed = false
        await sleep(coalescingMillis)
      } catch (error) {
        if (!hasFailed) log.warn({ err: error }, 'relay sessions could not be read for their watchers; trying again')
        hasFailed = true
        for (const id of due.sessionIds) dueSessions.add(id)
        for (const id of due.userIds) dueUsers.add(id)
        await sleep(retryMillis)
      }
    }
    reading = undefined
  }

  const watchersOf = ({ id, userId }: ShownSessionRow): Watcher[] => [
    ...(bySession.get(id) ?? []),
    ...(byUser.get(userId) ?? []),
  ]

  const sendChanges = (sessionIds: readonly string[], rows: readonly ShownSessionRow[], events: ReadStreamEvents) => {
    for (const row of rows) {
      const watchers = watchersOf(row)
      if (watchers.length === 0) continue
      const message = JSON.stringify({ type: 'session', session: presentSession(row, limits) })
      for (const watcher of watchers) {
        streamEvents.sendNew(watcher, row.id, events)
        sendChange(watcher, row, message)
        if (row.state === 'stopped') streamEvents.forget(watcher, row.id)
        else streamEvents.sendCurrent(watcher, row.id, events)
      }
    }
    // The account was deleted together with its sessions.
    const found = new Set(rows.map(({ id }) => id))
    for (const id of sessionIds) if (!found.has(id)) for (const watcher of bySession.get(id) ?? []) watcher.end()
  }

  const sendChange = (watcher: Watcher, { id, state }: ShownSessionRow, message: string) => {
    const sent = messages.get(watcher)
    const isOnlyOne = 'sessionId' in watcher.scope
    if (!sent || sent.get(id) === message) return
    if (state !== 'stopped') {
      sent.set(id, message)
      watcher.send(message)
    } else if (sent.delete(id) || isOnlyOne) {
      watcher.send(message)
      if (isOnlyOne) watcher.end()
    }
  }

  const readEverything = (isRepeated: boolean) => {
    for (const id of bySession.keys()) dueSessions.add(id)
    for (const id of byUser.keys()) dueUsers.add(id)
    for (const sent of messages.values())
      for (const id of sent.keys()) {
        // Among the live sessions of a user one that has stopped is missing.
        dueSessions.add(id)
        if (isRepeated) sent.set(id, '')
      }
    readDue()
  }

  listenForSessionChanges(sql, {
    onChange: ({ userId, sessionId }) => {
      if (bySession.has(sessionId) || byUser.has(userId)) dueSessions.add(sessionId)
      readDue()
    },
    onListening: () => readEverything(true),
  }).catch((error: unknown) =>
    log.warn({ err: error }, 'changes of relay sessions are read periodically only, until Postgres can be reached'),
  )
  const periodic = startPeriodicTask({
    // After that figures of the stream are new.
    everySeconds: Math.min(watchedReportSeconds, limits.healthIntervalSeconds),
    log,
    failure: { message: 'watched relay sessions were not read' },
    run: async () => readEverything(false),
  })
  const watching = startPeriodicTask({
    everySeconds: watchAgainSeconds,
    log,
    failure: { message: 'watched relay sessions were not announced' },
    run: async () => {
      if (bySession.size + byUser.size > 0)
        await watched.watch({ sessionIds: [...bySession.keys()], userIds: [...byUser.keys()] })
    },
  })

  return {
    add: (watcher) => {
      const [watchers, id] = placeOf(watcher)
      watchers.set(id, (watchers.get(id) ?? new Set()).add(watcher))
      messages.set(watcher, new Map())
      streamEvents.add(watcher)
      const due = 'sessionId' in watcher.scope ? dueSessions : dueUsers
      due.add(id)
      readDue()
      void watched.watch(
        'sessionId' in watcher.scope ? { sessionIds: [id], userIds: [] } : { sessionIds: [], userIds: [id] },
      )
    },
    remove: (watcher) => {
      const [watchers, id] = placeOf(watcher)
      watchers.get(id)?.delete(watcher)
      if (watchers.get(id)?.size === 0) watchers.delete(id)
      messages.delete(watcher)
      streamEvents.remove(watcher)
    },
    stop: async () => {
      isStopped = true
      await Promise.all([periodic.stop(), watching.stop()])
      await reading
    },
  }
}
