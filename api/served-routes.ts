/** The routes of `routes.ts` as the HTTP server serves them: with the services, and with the admission of callers. */
import type { Admit } from './admission/admission.ts'
import type { ServedRoute } from './http/served-route.ts'
import type { Route } from './routes/route.ts'
import type { Services } from './services.ts'

export function serveRoutes(routes: readonly Route[], services: Services, admit: Admit): ServedRoute[] {
  // Without an operator password the operator routes do not exist: 404 for every method.
  const hasOperators = services.config.operatorPassword !== undefined
  return routes
    .filter(({ caller }) => hasOperators || caller !== 'operator')
    .map((route) => ({
      ...route,
      // Browsers store the operator password and send it by themselves.
      hasAmbientCredentials: route.caller === 'operator',
      admit: (credentials) => admit(route, credentials),
      handle: (request) => route.handle(request as Parameters<Route['handle']>[0], services),
    }))
}
