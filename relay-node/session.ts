import type { RelayPorts } from '../domain/relay/ports.ts'

/**
 * The session that a relay runs for. A relay without one is unbound: it refuses streams, and asks the control plane for
 * one.
 */
export interface RelaySession {
  readonly sessionId: string
  /** Eight letters and digits. Only streams with this token are admitted. */
  readonly streamToken: string
  /** The number of this instance in the session, which reports repeat. */
  readonly binding: number
}

/** A session for a relay that ran without one. */
export interface Assignment extends RelaySession {
  /** The ports to take if they are free; null for those that the relay has. */
  readonly ports: RelayPorts | null
}

export const isStreamToken = (text: string): boolean => /^[A-Za-z0-9]{8}$/.test(text)
