/** A client of the live events, as the feeds see it. */

/** Either one session, or all sessions of a user. */
export type WatchedScope = { readonly sessionId: string } | { readonly userId: string }

export interface Watcher {
  readonly scope: WatchedScope
  /** Whether it gets stream events, too. */
  readonly hasEvents: boolean
  send(message: string): void
  /** The one session that it watches is stopped, and its last state was sent. */
  end(): void
}
