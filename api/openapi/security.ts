/** How callers authenticate, for the OpenAPI document. */
import type { AppScope } from '../../domain/identity/apps.ts'
import type { Route } from '../routes/route.ts'

/** The alternatives for each kind of caller. An empty object stands for no credentials. */
const securityByCaller: Readonly<Record<Route['caller'], readonly object[]>> = {
  none: [],
  user: [{ accessToken: [] }],
  maybe_user: [{}, { accessToken: [] }],
  app: [],
  user_or_app: [{ accessToken: [] }],
  operator: [{ operatorSession: [] }, { operator: [] }],
  relay: [{ relayAuth: [] }],
  relay_watcher: [{ relayWsToken: [] }, { accessToken: [] }],
}

export const describeSecurity = ({ caller, scope }: Pick<Route, 'caller' | 'scope'>): readonly object[] => [
  ...securityByCaller[caller],
  ...(scope === undefined ? [] : [{ appToken: [scope] }]),
]

const scopeTexts: Readonly<Record<AppScope, string>> = {
  'ingests:read': 'List the connections of the account and play their streams.',
  'relay:read': 'See the relays of the account, without addresses and keys.',
  'relay:control': 'Start and stop relays of the account.',
}

export const describeSecuritySchemes = (apiUrl: string) => ({
  accessToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'The `cp_access_jwt` of a token set. It lasts a few minutes; `POST /api/v1/auth/refresh` replaces it. Signing out, a password reset and disabling the account end it at once.',
  },
  appToken: {
    type: 'oauth2',
    description:
      'The access token of a connected app. It lasts ten minutes, and ends at once when the user disconnects the app. Operations that name no scope refuse it.',
    flows: {
      authorizationCode: {
        authorizationUrl: `${apiUrl}/oauth/auth`,
        tokenUrl: `${apiUrl}/oauth/token`,
        refreshUrl: `${apiUrl}/oauth/token`,
        scopes: scopeTexts,
      },
    },
  },
  operator: {
    type: 'http',
    scheme: 'basic',
    description: 'The name `operator`, and the operator password of the service (`SVC_OPERATOR_PASSWORD`).',
  },
  operatorSession: {
    type: 'http',
    scheme: 'bearer',
    description:
      'The token of an operator session, which `POST /api/v1/admin/sign-in` returns in exchange for the operator password.',
  },
  relayAuth: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Relay-Auth',
    description: "The secret of the relay's instance, which the service has given to it at its creation.",
  },
  relayWsToken: {
    type: 'apiKey',
    in: 'header',
    name: 'Sec-WebSocket-Protocol',
    description:
      'The `relay_ws_token` of a live session, as a second subprotocol after `svc.relay.v1`: browsers cannot set other headers of a WebSocket.',
  },
})
