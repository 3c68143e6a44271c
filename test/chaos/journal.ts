/** What the driver did and saw from outside. Times are milliseconds since 1970 by the clock of this machine. */
import type { BillingEventBody } from '../support/billing.ts'
import type { FaultKind, FaultTarget } from './plan.ts'

export interface StartRecord {
  readonly userId: string
  readonly connectionId: string
  readonly key: string
  readonly answeredAt: number
  readonly status: number
  readonly sessionId: string
}

/** A request to end a session that was answered with 200. */
export interface StopRecord {
  readonly sessionId: string
  readonly by: 'user' | 'operator'
  readonly sentAt: number
  readonly answeredAt: number
}

/** What replies stated about a session. A state was true at some moment between the request and its reply. */
export interface Sighting {
  /** When the last request was sent that found it in provisioning. */
  provisioningSentAt: number | null
  /** When the first reply came that had it in active or grace. */
  runningSeenAt: number | null
  /** When the last request was sent that found it live. */
  liveSentAt: number | null
  /** When the first reply came that had it stopped. */
  stoppedSeenAt: number | null
}

/** A health report of a simulated relay that was answered with 200. */
export interface ReportRecord {
  readonly sessionId: string
  readonly instanceId: string
  readonly sentAt: number
  readonly answeredAt: number
}

/** A billing event, which its provider delivers until it gets 200. */
export interface DeliveryRecord {
  /** The `webhook-id`. */
  readonly id: string
  readonly userId: string
  readonly body: BillingEventBody
  firstSentAt: number
  /** The replies with 200, the first one first. */
  readonly acceptedAt: number[]
}

/** An operator's change of an account that was answered with 200. */
export interface AccountRecord {
  readonly type: 'grant' | 'relays_disabled' | 'relays_enabled' | 'disabled'
  readonly userId: string
  readonly sentAt: number
  readonly answeredAt: number
  /** When a grant ends. */
  readonly until: number | null
}

/** A request with the access token of a sign-in that had ended before the request was sent. */
export interface RevokedUse {
  readonly userId: string
  /** How the sign-in ended. */
  readonly ended: string
  readonly endedAt: number
  readonly sentAt: number
  readonly status: number
}

export interface FaultRecord {
  readonly kind: FaultKind
  readonly target: FaultTarget
  readonly from: number
  /** When the target was started, resumed or connected again. */
  readonly healedAt: number
  /** When the target served again. */
  readonly until: number
}

/** What was done to one relay, and until when; for ever by default. Loss is that of its machine, by its provider. */
export interface RelayFault {
  readonly type: 'kill' | 'lose' | 'freeze' | 'silence' | 'cut'
  readonly sessionId: string | null
  readonly instanceId: string
  readonly at: number
  readonly until?: number
}

/** A fault of the relay that has a stream, and how long its player got nothing that was sent after the fault. */
export interface StreamGap {
  readonly kind: FaultKind
  /** Whether another relay has taken over. */
  readonly isReplaced: boolean
  readonly seconds: number
}

export class Journal {
  readonly beganAt = Date.now()
  readonly starts: StartRecord[] = []
  readonly stops: StopRecord[] = []
  readonly sightings = new Map<string, Sighting>()
  readonly reports: ReportRecord[] = []
  readonly deliveries = new Map<string, DeliveryRecord>()
  readonly accountChanges: AccountRecord[] = []
  readonly revokedUses: RevokedUse[] = []
  readonly faults: FaultRecord[] = []
  readonly relayFaults: RelayFault[] = []
  readonly streamGaps: StreamGap[] = []
  /** Processes that ended by themselves. */
  readonly crashes: string[] = []
  /** Replies that no client has to expect, and when they came. */
  readonly unexpected = new Map<string, number>()
  /** Accepted requests by kind. */
  readonly accepted: Record<string, number> = {}
  /** Refused and failed requests by kind and reason. */
  readonly refused: Record<string, number> = {}

  accept(kind: string): void {
    this.accepted[kind] = (this.accepted[kind] ?? 0) + 1
  }

  refuse(kind: string, reason: string): void {
    const key = `${kind}: ${reason}`
    this.refused[key] = (this.refused[key] ?? 0) + 1
  }

  see(sessionId: string, state: string, sentAt: number): void {
    const seenAt = Date.now()
    const sighting = this.sightings.get(sessionId) ?? {
      provisioningSentAt: null,
      runningSeenAt: null,
      liveSentAt: null,
      stoppedSeenAt: null,
    }
    this.sightings.set(sessionId, sighting)
    if (state === 'stopped') {
      sighting.stoppedSeenAt ??= seenAt
      return
    }
    sighting.liveSentAt = Math.max(sentAt, sighting.liveSentAt ?? 0)
    if (state === 'provisioning') sighting.provisioningSentAt = Math.max(sentAt, sighting.provisioningSentAt ?? 0)
    else sighting.runningSeenAt ??= seenAt
  }
}
