import type { RelayPorts } from '../domain/relay/ports.ts'
import type { Admission } from './admission.ts'

/**
 * The session that a relay runs for. A relay without one is unbound: it refuses streams, and asks the control plane for
 * one.
 */
export interface RelaySession {
  readonly sessionId: string
  readonly admission: Admission
  /** The number of this instance in the session, which reports repeat. */
  readonly binding: number
}

/** A session for a relay that ran without one. */
export interface Assignment extends RelaySession {
  /** The ports to take if they are free; null for those that the relay has. */
  readonly ports: RelayPorts | null
}
