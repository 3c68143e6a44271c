/** A plugin's login, as the pages know it. */
import type { ProviderName } from './providers.tsx'

const prefix = '/login?attempt='
const attemptId = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

export const isAttemptId = (text: string): boolean => attemptId.test(text)

/** The page that asks about a login attempt, and says afterwards what became of it. */
export const approvalPath = (attempt: string): string => prefix + attempt

/** Whether a path is that of such a page. */
export const isAboutPlugin = (path: string): boolean => path.startsWith(prefix)

export interface Attempt {
  readonly login_attempt_id: string
  readonly status: 'pending' | 'approved' | 'denied' | 'consumed' | 'expired'
  readonly user_code: string
  readonly client_name: string
  readonly ip: string
  readonly created_at: string
  readonly expires_at: string
}

/** Who would be signed in. */
export interface Account {
  readonly id: string
  readonly email: string | null
  readonly linked_accounts: readonly { readonly provider: ProviderName; readonly linked: boolean }[]
}
