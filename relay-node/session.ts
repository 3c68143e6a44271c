/**
 * The session that a relay runs for. A relay without one is unbound: it refuses streams, and asks the control plane for
 * one.
 */
export interface RelaySession {
  readonly sessionId: string
  /** Eight letters and digits. Only streams with this token are admitted. */
  readonly streamToken: string
}

export const isStreamToken = (text: string): boolean => /^[A-Za-z0-9]{8}$/.test(text)
