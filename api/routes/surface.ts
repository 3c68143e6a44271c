/** The words of `api/routes.ts`. */
import type { AppScope } from '../../domain/identity/apps.ts'
import type { RateLimitName } from '../../platform/config/values.ts'
import type { AdmissionTerms } from '../admission/admission.ts'
import type { CallerKind } from '../admission/callers.ts'
import type { Declaration, Route } from './route.ts'

interface Caller<Kind extends CallerKind> extends Pick<AdmissionTerms, 'isSignInCheckedByHandler' | 'scope'> {
  readonly caller: Kind
}

export const none: Caller<'none'> = { caller: 'none' }
export const user: Caller<'user'> = { caller: 'user' }
export const maybeUser: Caller<'maybe_user'> = { caller: 'maybe_user' }
export const operator: Caller<'operator'> = { caller: 'operator' }
export const relay: Caller<'relay'> = { caller: 'relay' }
/** A user, an app with the scope, or the holder of a session's token. */
export const relayWatcher = (scope: AppScope): Caller<'relay_watcher'> => ({ caller: 'relay_watcher', scope })
/** Apps with the scope alone. */
export const app = (scope: AppScope): Caller<'app'> => ({ caller: 'app', scope })
/** A user, or an app with the scope. Routes that do not name a scope refuse apps. */
export const userOrApp = (scope: AppScope): Caller<'user_or_app'> => ({ caller: 'user_or_app', scope })
/**
 * A user whose access token is valid and whom the handler's transaction refuses when signed out, or an app with the
 * scope.
 */
export const userOrAppCheckedByHandler = (scope: AppScope): Caller<'user_or_app'> => ({
  ...userOrApp(scope),
  isSignInCheckedByHandler: true,
})

type Limit = Pick<AdmissionTerms, 'limit' | 'isCountedByHandler'>

export const uncounted: Limit = {}
/** The handler counts the request itself, because not every request counts. */
export const countedByHandler = (limit: RateLimitName): Limit => ({ limit, isCountedByHandler: true })

/** The names of the parameters of a path: `'id'` for `/relay/sessions/{id}`. */
type ParamNames<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamNames<Rest> : never

const withMethod =
  (method: Route['method']) =>
  <const Path extends string, Kind extends CallerKind>(
    path: Path,
    caller: Caller<Kind>,
    limit: RateLimitName | Limit,
    declaration: Declaration<NoInfer<Kind>, ParamNames<Path>>,
  ): Route => ({ method, path, ...caller, ...(typeof limit === 'string' ? { limit } : limit), ...declaration })

export const get = withMethod('GET')
export const post = withMethod('POST')
export const put = withMethod('PUT')
export const patch = withMethod('PATCH')
export const del = withMethod('DELETE')
