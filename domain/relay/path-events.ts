/**
 * What happens on the signal path of a session beside its stream: the number of links changes, players come and go, and
 * callers are refused. A relay notices these path events and reports them. Pure, with the time as an argument.
 */
import type { Millis } from '../millis.ts'
import type { RelayRefusal } from './refusals.ts'

export const pathEventKinds = ['links_changed', 'player_joined', 'player_left', 'caller_refused'] as const
export type PathEventKind = (typeof pathEventKinds)[number]

/** What a refused caller wanted to be, by the port that it called. */
export const callerRoles = ['publisher', 'player'] as const
export type CallerRole = (typeof callerRoles)[number]

/** Never which link, nor an address. */
export type PathEvent =
  | { readonly kind: 'links_changed'; readonly from: number; readonly to: number }
  /** @property players that play after it. */
  | { readonly kind: 'player_joined' | 'player_left'; readonly players: number }
  /** @property count of the callers since the last event of this reason and role. */
  | {
      readonly kind: 'caller_refused'
      readonly reason: RelayRefusal
      readonly role: CallerRole
      readonly count: number
    }

/** The most path events of a report. */
export const reportedPathEventsMax = 20
/** The oldest events of links and players of a session that has more are deleted. */
export const storedPathChangesMax = 1_000
/** Once a session has as many events of refused callers, later ones are added to the latest one of their kind. */
export const storedPathRefusalsMax = 1_000

/** No event of a reason and a role follows another one sooner. */
export const refusalGapMillis = 10_000
/** The number of links has changed when it has stayed another one for this long, so that a flapping link is none. */
export const linksSettledMillis = 2_000

/** What a relay keeps from one count of the links to the next. */
export interface JudgedLinks {
  /** The number that the last event states, or the first settled one; undefined before. */
  readonly settled: number | undefined
  /** The last number that was counted, and since when; undefined without a publisher. */
  readonly counted: { readonly links: number; readonly since: Millis } | undefined
}

export const unjudgedLinks: JudgedLinks = { settled: undefined, counted: undefined }

export interface LinksChange {
  readonly from: number
  readonly to: number
  /** When the number became the present one. */
  readonly at: Millis
}

/**
 * Judges the next count. A publisher that returns with another number of links has changed it.
 * @param links of the publisher; 0 without one, which changes nothing: the end of a stream is a stream event.
 */
export function judgeLinks(
  before: JudgedLinks,
  links: number,
  at: Millis,
): { readonly judged: JudgedLinks; readonly change: LinksChange | undefined } {
  if (links === 0) return { judged: { ...before, counted: undefined }, change: undefined }
  const counted = before.counted?.links === links ? before.counted : { links, since: at }
  const { settled } = before
  if (links === settled || at - counted.since < linksSettledMillis)
    return { judged: { settled, counted }, change: undefined }
  return {
    judged: { settled: links, counted },
    change: settled === undefined ? undefined : { from: settled, to: links, at: counted.since },
  }
}
