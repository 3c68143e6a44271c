/** Live events of relay sessions over WebSocket. */
import { route } from '../route.ts'

export const watch = route.relayWatcher({
  id: 'watchRelays',
  summary: 'Watch relay sessions over a WebSocket',
  description:
    'A WebSocket with the subprotocol `svc.relay.v1`. Each message is `{"type":"session","session":…}` with the dock view of a session: one when the client connects, one at each change.\n\nThe holder of a `relay_ws_token` offers it as a second subprotocol and watches that session, until the socket closes with 1000 after its end. With an access token the client watches all sessions of the account. Closing codes: 1001 connect again, 1008 clients must not send, 4401 signed out.',
  requestHeaders: {
    'Sec-WebSocket-Protocol': {
      description: '`svc.relay.v1`, and the `relay_ws_token` unless an access token is sent.',
      example: 'svc.relay.v1, ws_example_8jLm2nBv',
    },
  },
  answers: { 101: null },
  refuses: ['invalid_request', 'rate_limited'],
  handle: ({ caller, incoming, requestId }, { relaySockets }) => {
    relaySockets.open(incoming, caller, { 'X-Request-Id': requestId })
    return { status: 101 }
  },
})
