/**
 * Admission of requests: authenticates the caller, counts the request in its rate limit window, and reads what the
 * route needs.
 */

import { getStoredStreamToken } from '../../db/identity/users.ts'
import { type LiveRelays, listLiveSessions } from '../../db/relay/sessions.ts'
import {
  type Admission,
  type AdmissionRequest,
  admitUsers,
  admitUsersWithRelays,
} from '../../db/transactions/admit-users.ts'
import type { AppScope } from '../../domain/identity/apps.ts'
import { batch } from '../../platform/batch.ts'
import type { RateLimitName } from '../../platform/config/values.ts'
import { type AppCaller, isApp } from '../apps/app-access-tokens.ts'
import { clientNetwork } from '../http/ip-networks.ts'
import { rateLimitKey } from '../http/rate-limits.ts'
import { insufficientScope, invalidToken } from '../http/refusals.ts'
import type { Credentials } from '../http/requests.ts'
import type { Admitted } from '../http/served-route.ts'
import { type AccountSummary, admitUsersWithSummary } from '../identity/account-summaries.ts'
import type { Services } from '../services.ts'
import { type Authenticate, createAdmitApp, verifyAccessToken } from './authentication.ts'
import type { CallerKind } from './callers.ts'

/** What a route can have read together with the admission of its caller. */
export interface Reads {
  live_relays: LiveRelays
  account_summary: AccountSummary
}

export type ReadName = keyof Reads

/** What the admission of a route's requests depends on. */
export interface AdmissionTerms {
  readonly caller: CallerKind
  /** What an app needs, where `caller` includes apps. */
  readonly scope?: AppScope
  /** Counted per account where `caller` has one, otherwise per client network. */
  readonly limit?: RateLimitName
  /** Set if the handler counts the request itself, because not every request counts. */
  readonly isCountedByHandler?: true
  /**
   * For the caller `user`: set if the handler's transaction checks that the user is still signed in, so that no
   * statement before it needs to. Other refusals are checked too: who is signed out gets `unauthorized` instead.
   */
  readonly isSignInCheckedByHandler?: true
  readonly reads?: ReadName | undefined
}

/** Refuses with the codes of `Authenticate`. */
export type Admit = (terms: AdmissionTerms, credentials: Credentials) => Promise<Admitted>

type Deps = Pick<Services, 'config' | 'sql' | 'accessTokens' | 'appAccessTokens' | 'rateLimits'>

export function createAdmit(deps: Deps, authenticate: Authenticate): Admit {
  const { config, sql, rateLimits } = deps
  const admitApp = createAdmitApp(deps)
  /** Concurrent requests share a statement. */
  const admissions: {
    [Name in ReadName | 'nothing']: (request: AdmissionRequest) => Promise<AnyAdmission | undefined>
  } = {
    nothing: batch((requests: AdmissionRequest[]) => admitUsers(sql, requests)),
    live_relays: batch((requests: AdmissionRequest[]) => admitUsersWithRelays(sql, requests)),
    account_summary: batch((requests: AdmissionRequest[]) => admitUsersWithSummary(sql, config, requests)),
  }

  const admitAppFor = async (terms: AdmissionTerms, app: AppCaller): Promise<Admitted> => {
    await admitApp(app, terms.caller === 'user' ? undefined : terms.scope)
    const limit = countedLimit(terms)
    const headers = limit ? await rateLimits.count(limit, app.userId) : undefined
    return { caller: app, headers, read: await readForApp(terms.reads, app) }
  }

  const readForApp = async (
    name: ReadName | undefined,
    { userId }: AppCaller,
  ): Promise<Reads[ReadName] | undefined> => {
    if (name === undefined) return undefined
    if (name !== 'live_relays') throw insufficientScope()
    const [streamToken, sessions] = await Promise.all([
      getStoredStreamToken(sql, userId),
      listLiveSessions(sql, userId),
    ])
    return { streamToken, sessions }
  }

  const admitUser: Admit = async (terms, credentials) => {
    const user = await verifyAccessToken(deps, credentials.header)
    if (isApp(user)) return admitAppFor(terms, user)
    if (terms.isSignInCheckedByHandler) {
      const confirm = () => admitUser({ caller: terms.caller }, credentials)
      return { caller: user, read: undefined, headers: undefined, confirm }
    }
    const { userId, authSessionId } = user
    const limit = countedLimit(terms)
    const key = limit && rateLimitKey(limit, userId)
    const admission = await admissions[terms.reads ?? 'nothing']({ userId, authSessionId, rateLimitKey: key })
    if (!admission) throw invalidToken()
    const { window, read } = admission
    return { caller: user, read, headers: limit && window ? rateLimits.check(limit, window) : undefined }
  }

  return async (terms, credentials) => {
    if (terms.caller === 'user' || terms.caller === 'user_or_app') return admitUser(terms, credentials)
    const caller = await authenticate(terms.caller, credentials, terms.scope)
    const limit = countedLimit(terms)
    const headers = limit
      ? await rateLimits.count(limit, limitSubject(terms.caller, caller, credentials.ip))
      : undefined
    return { caller, headers, read: undefined }
  }
}

type AnyAdmission = Admission<Reads[ReadName] | undefined>

const countedLimit = ({ limit, isCountedByHandler }: AdmissionTerms) => (isCountedByHandler ? undefined : limit)

/** The caller's user id or network, whichever the limits of the route count by. */
const limitSubject = (kind: CallerKind, caller: unknown, ip: string): string =>
  kind === 'relay_watcher' || kind === 'app' ? (caller as { userId: string }).userId : clientNetwork(ip)
