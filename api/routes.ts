/** The whole surface on one page. Everything under `/api/v1` stands here and nowhere else. */
import * as accounts from './accounts.ts'
import * as authSessions from './auth-sessions.ts'
import * as loginAttempts from './login-attempts.ts'
import type { Route } from './route.ts'

export const routes: readonly Route[] = [
  accounts.signup,
  accounts.login,
  authSessions.refresh,
  authSessions.logout,
  authSessions.list,
  authSessions.revoke,
  loginAttempts.start,
  loginAttempts.poll,
  loginAttempts.read,
  loginAttempts.approve,
  loginAttempts.deny,
]
