/** Whether our own processes could act: time in which none of a role was there counts against no relay. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../platform/log.ts'
import type { Database, Sql } from './connection.ts'

/** `api`: health reports could be taken. `worker`: workflows could act and instances be created. */
export type PresenceRole = 'api' | 'worker'

/** No process of a role is taken to be there when none has confirmed it for this long. */
const breakSecondsMax: Readonly<Record<PresenceRole, number>> = { api: 10, worker: 15 }

/**
 * The break after which a role counts as absent, in seconds. A small part of the time limit that it protects, so that an
 * absence never adds up to it unnoticed.
 */
export const presenceSeconds = (role: PresenceRole, limitSeconds: number): number =>
  Math.min(breakSecondsMax[role], limitSeconds / 3)

/** Confirms that a process of the role is there. After a break the presence begins again. */
export const confirmPresence = async (sql: Sql, role: PresenceRole, limitSeconds: number): Promise<void> => {
  await sql`
    update presence set seen_at = now(),
      since = case when seen_at < now() - make_interval(secs => ${presenceSeconds(role, limitSeconds)})
        then now() else since end
    where role = ${role}`
}

interface Options {
  readonly sql: Database
  readonly log: Logger
  readonly role: PresenceRole
  /** The time limit that the presence protects. */
  readonly limitSeconds: number
  /** Whether this process can do its work at this moment. */
  readonly isAble: () => boolean | Promise<boolean>
}

/** Confirms the presence of this process several times within the break that would end it, until it is stopped. */
export function keepPresence({ sql, log, role, limitSeconds, isAble }: Options): { stop(): Promise<void> } {
  const everyMillis = presenceSeconds(role, limitSeconds) * 250
  const stopping = new AbortController()
  const loop = (async () => {
    while (!stopping.signal.aborted) {
      try {
        if (await isAble()) await confirmPresence(sql, role, limitSeconds)
      } catch (error) {
        log.warn({ err: error, role }, 'the presence of this process could not be confirmed')
      }
      await sleep(everyMillis, undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  })()
  return {
    stop: async () => {
      stopping.abort()
      await loop
    },
  }
}
