/** Who may watch relay sessions through `GET /relay/ws`. */
import type { AppCaller } from '../apps/app-access-tokens.ts'
import type { TokenUser } from '../identity/access-tokens.ts'

/** The holder of a session's `relay_ws_token`. */
export interface SessionTokenHolder {
  /** The owner of the session. */
  readonly userId: string
  readonly sessionId: string
}

/** A user or an app watches all sessions of the account, while the access token and its sign-in or grant are valid. */
export type RelayWatcher = SessionTokenHolder | TokenUser | AppCaller
