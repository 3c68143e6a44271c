/** The sign-in of a plugin that waits for approval. */
import type { ProviderName } from './providers.tsx'

const prefix = '/login?attempt='
const attemptId = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

export const isAttemptId = (text: string): boolean => attemptId.test(text)

/** The page that shows a login attempt: the question while it is pending, and the outcome afterwards. */
export const approvalPath = (attempt: string): string => prefix + attempt

export const isApprovalPath = (path: string): boolean => path.startsWith(prefix)

export interface Attempt {
  readonly login_attempt_id: string
  readonly status: 'pending' | 'approved' | 'denied' | 'consumed' | 'expired'
  readonly user_code: string
  readonly client_name: string
  readonly ip: string
  readonly created_at: string
  readonly expires_at: string
}

/** The account that the plugin would be signed in to. */
export interface Account {
  readonly id: string
  readonly email: string | null
  readonly linked_accounts: readonly { readonly provider: ProviderName; readonly linked: boolean }[]
}
