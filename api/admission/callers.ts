/** The kinds of callers, and what is known of an authenticated one. */
import type { RelayCaller } from '../../providers/relay/instance-secrets.ts'
import type { AppCaller } from '../apps/app-access-tokens.ts'
import type { TokenUser } from '../identity/access-tokens.ts'
import type { OperatorCaller } from '../identity/operator-credentials.ts'
import type { RelayWatcher } from '../live/relay-watcher.ts'

export interface Callers {
  none: undefined
  user: TokenUser
  /** A user or no one. An invalid access token is refused. */
  maybe_user: TokenUser | undefined
  /** An app with the scope of the route. */
  app: AppCaller
  /** A user, or an app with the scope of the route. */
  user_or_app: TokenUser | AppCaller
  operator: OperatorCaller
  relay: RelayCaller
  relay_watcher: RelayWatcher
}

export type CallerKind = keyof Callers
