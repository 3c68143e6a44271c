/** How callers authenticate, for the OpenAPI document. */
import type { CallerKind } from '../admission/callers.ts'

/** The alternatives for each kind of caller. An empty object stands for no credentials. */
export const securityByCaller: Readonly<Record<CallerKind, readonly object[]>> = {
  none: [],
  user: [{ accessToken: [] }],
  maybe_user: [{}, { accessToken: [] }],
  operator: [{ operatorSession: [] }, { operator: [] }],
  relay: [{ relayAuth: [] }],
  relay_watcher: [{ relayWsToken: [] }, { accessToken: [] }],
}

export const securitySchemes = {
  accessToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'The `cp_access_jwt` of a token set. It lasts a few minutes; `POST /api/v1/auth/refresh` replaces it. Signing out, a password reset and disabling the account end it at once.',
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
} as const
