/** Admission of requests: authenticates the caller, counts the request in its rate limit window, and reads what the route needs. */
import {
  type Admission,
  type AdmissionRequest,
  admitUsers,
  admitUsersWithRelays,
} from '../../db/transactions/admit-users.ts'
import { batch } from '../../platform/batch.ts'
import { admitUsersWithSummary } from '../identity/account-summaries.ts'
import type { Services } from '../services.ts'
import { type Authenticate, verifyAccessToken } from './authentication.ts'
import { clientNetwork } from './ip-networks.ts'
import { type RateLimitHeaders, rateLimitKey } from './rate-limits.ts'
import { invalidToken } from './refusals.ts'
import type { CallerKind, Callers, Credentials, ReadName, Reads, Route } from './route.ts'

export interface Admitted {
  readonly caller: Callers[CallerKind]
  /** Of the route's rate limit; undefined without one. */
  readonly headers: RateLimitHeaders | undefined
  readonly read: Reads[ReadName] | undefined
}

/** Refuses with the codes of `Authenticate`. */
export type Admit = (route: AdmittedRoute, credentials: Credentials) => Promise<Admitted>

type AdmittedRoute = Pick<Route, 'caller' | 'limit' | 'isCountedByHandler' | 'isSignInCheckedByHandler' | 'reads'>

type Deps = Pick<Services, 'config' | 'sql' | 'accessTokens' | 'rateLimits'>

export function createAdmit(deps: Deps, authenticate: Authenticate): Admit {
  const { config, sql, accessTokens, rateLimits } = deps
  /** Concurrent requests share a statement. */
  const admissions: {
    [Name in ReadName | 'nothing']: (request: AdmissionRequest) => Promise<AnyAdmission | undefined>
  } = {
    nothing: batch((requests: AdmissionRequest[]) => admitUsers(sql, requests)),
    live_relays: batch((requests: AdmissionRequest[]) => admitUsersWithRelays(sql, requests)),
    account_summary: batch((requests: AdmissionRequest[]) => admitUsersWithSummary(sql, config, requests)),
  }

  const admitUser: Admit = async ({ reads, ...route }, { header }) => {
    const user = await verifyAccessToken(accessTokens, header)
    if (route.isSignInCheckedByHandler) return { caller: user, read: undefined, headers: undefined }
    const { userId, authSessionId } = user
    const limit = countedLimit(route)
    const key = limit && rateLimitKey(limit, userId)
    const admission = await admissions[reads ?? 'nothing']({ userId, authSessionId, rateLimitKey: key })
    if (!admission) throw invalidToken()
    const { window, read } = admission
    return { caller: user, read, headers: limit && window ? rateLimits.check(limit, window) : undefined }
  }

  return async (route, credentials) => {
    if (route.caller === 'user') return admitUser(route, credentials)
    const caller = await authenticate(route.caller, credentials)
    const limit = countedLimit(route)
    const headers = limit
      ? await rateLimits.count(limit, limitSubject(route.caller, caller, credentials.ip))
      : undefined
    return { caller, headers, read: undefined }
  }
}

type AnyAdmission = Admission<Reads[ReadName] | undefined>

const countedLimit = ({ limit, isCountedByHandler }: Pick<Route, 'limit' | 'isCountedByHandler'>) =>
  isCountedByHandler ? undefined : limit

/** The caller's user id or network, whichever the limits of the route count by. */
const limitSubject = (kind: CallerKind, caller: unknown, ip: string): string =>
  kind === 'relay_watcher' ? (caller as { userId: string }).userId : clientNetwork(ip)
