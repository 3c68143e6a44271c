/** Notices the path events of this process, and keeps them until the control plane has accepted a report with them. */
import {
  type CallerRole,
  judgeLinks,
  type PathEvent,
  refusalGapMillis,
  reportedPathEventsMax,
  unjudgedLinks,
} from '../domain/relay/path-events.ts'
import type { RelayRefusal } from '../domain/relay/refusals.ts'
import type { Role } from './stream-access.ts'

/** Older ones are given up, as in an outage that lasts for hours. */
const keptMax = 100

/** An event as reports state it. */
export type ReportedPathEvent = PathEvent & { readonly seq: number; readonly age_ms: number }

interface KeptPathEvent {
  readonly seq: number
  readonly at: number
  readonly event: PathEvent
}

/** The refused callers of a reason and a role. */
interface RefusedCallers {
  readonly reason: RelayRefusal
  readonly role: CallerRole
  /** Those that no event states yet. */
  count: number
  /** The last event that states some of them. */
  lastSeq: number
  lastAt: number
}

export interface PathSample {
  /** The number of network paths of the publisher; 0 without one. */
  readonly links: number
  /** Those that play: one object for each connection. */
  readonly players: readonly object[]
}

const callerRoleOf: Readonly<Record<Role, CallerRole>> = { publish: 'publisher', play: 'player' }

/** Times are in milliseconds of a clock that never goes back. */
export class PathEvents {
  #links = unjudgedLinks
  #players: ReadonlySet<object> = new Set()
  readonly #refused = new Map<string, RefusedCallers>()
  #kept: KeptPathEvent[] = []
  #lastSeq = 0
  /** The last event that a report stated, which must not change any more. */
  #listedSeq = 0

  /** To be called four times a second. */
  sample({ links, players }: PathSample, now: number): void {
    const { judged, change } = judgeLinks(this.#links, links, now)
    this.#links = judged
    if (change) this.#add({ kind: 'links_changed', from: change.from, to: change.to }, change.at)
    this.#compare(new Set(players), now)
    this.#stateRefused(now, refusalGapMillis)
  }

  /** A caller was refused. Its event follows with the next sample. */
  refuse(reason: RelayRefusal, role: Role): void {
    const key = `${reason} ${role}`
    const refused = this.#refused.get(key)
    if (refused) refused.count += 1
    else
      this.#refused.set(key, {
        reason,
        role: callerRoleOf[role],
        count: 1,
        lastSeq: 0,
        lastAt: Number.NEGATIVE_INFINITY,
      })
  }

  /** The relay ends: the callers that it has refused since the last event of them are stated at once. */
  end(now: number): void {
    this.#stateRefused(now, 0)
  }

  /** The oldest events that were not accepted yet, at most as many as a report may have. */
  list(now: number): ReportedPathEvent[] {
    const listed = this.#kept.slice(0, reportedPathEventsMax)
    this.#listedSeq = Math.max(this.#listedSeq, listed.at(-1)?.seq ?? 0)
    return listed.map(({ seq, at, event }) => ({ seq, age_ms: Math.max(0, Math.round(now - at)), ...event }))
  }

  /** A report with the events up to this one was accepted. */
  accept(seq: number): void {
    this.#kept = this.#kept.filter((kept) => kept.seq > seq)
  }

  #compare(players: ReadonlySet<object>, now: number): void {
    let count = this.#players.size
    for (const player of this.#players)
      if (!players.has(player)) this.#add({ kind: 'player_left', players: --count }, now)
    for (const player of players)
      if (!this.#players.has(player)) this.#add({ kind: 'player_joined', players: ++count }, now)
    this.#players = players
  }

  /**
   * A flood of callers makes one event per reason and role in ten seconds. Without reports it makes no further one: the
   * callers are added to the last one that no report has stated.
   */
  #stateRefused(now: number, gapMillis: number): void {
    for (const refused of this.#refused.values()) {
      if (refused.count === 0) continue
      const isAdded = refused.lastSeq > this.#listedSeq && this.#addToKept(refused)
      if (!isAdded && now - refused.lastAt < gapMillis) continue
      if (!isAdded) {
        const { reason, role, count } = refused
        refused.lastSeq = this.#add({ kind: 'caller_refused', reason, role, count }, now)
        refused.lastAt = now
      }
      refused.count = 0
    }
  }

  /** @returns false when the event was given up meanwhile. */
  #addToKept({ lastSeq, count }: RefusedCallers): boolean {
    const index = this.#kept.findIndex(({ seq }) => seq === lastSeq)
    const kept = this.#kept[index]
    if (kept?.event.kind !== 'caller_refused') return false
    this.#kept[index] = { ...kept, event: { ...kept.event, count: kept.event.count + count } }
    return true
  }

  #add(event: PathEvent, at: number): number {
    this.#lastSeq += 1
    this.#kept = [...this.#kept, { seq: this.#lastSeq, at, event }].slice(-keptMax)
    return this.#lastSeq
  }
}
