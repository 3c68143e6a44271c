/** What handlers may ask. Put together once, in `server.ts`. */
import type { Database } from '../db/connection.ts'
import type { Config } from '../platform/config.ts'
import type { Logger } from '../platform/log.ts'
import type { AccessTokens } from './access-tokens.ts'
import type { Passwords } from './passwords.ts'
import type { RateLimits } from './rate-limits.ts'

export interface Services {
  readonly config: Config
  readonly sql: Database
  readonly log: Logger
  readonly rateLimits: RateLimits
  readonly accessTokens: AccessTokens
  readonly passwords: Passwords
}
