/** The services that identity uses: a part of those of route handlers. */
import type { Database } from '../../db/connection.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { OAuthProvider, OAuthProviderName } from '../../providers/oauth/provider.ts'
import type { Deliveries } from '../deliveries.ts'
import type { RateLimits } from '../http/rate-limits.ts'
import type { AccessTokens } from './access-tokens.ts'
import type { RecordAuditAttempt } from './audit-attempts.ts'
import type { Mailer } from './mailer.ts'
import type { Passwords } from './passwords.ts'

export interface Services {
  readonly config: Config
  readonly sql: Database
  readonly log: Logger
  readonly rateLimits: RateLimits
  readonly accessTokens: AccessTokens
  /**
   * For actions that unauthenticated callers can repeat without limit: counts them in a limited number of audit
   * entries.
   */
  readonly recordAuditAttempt: RecordAuditAttempt
  readonly passwords: Passwords
  readonly mailer: Mailer
  /** The configured providers. */
  readonly oauthProviders: ReadonlyMap<OAuthProviderName, OAuthProvider>
  /** Encrypts tokens for storage: those of OAuth providers, streams and relay sessions. */
  readonly sealing: Sealing
  readonly deliveries: Deliveries
}
