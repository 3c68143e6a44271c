/** Live events of relay sessions over WebSocket. */
import { route } from '../../http/route.ts'

export const watch = route.relayWatcher({
  summary: 'Watch relay sessions over a WebSocket',
  requestHeaders: {
    'Sec-WebSocket-Protocol': '`svc.relay.v1`, and the `relay_ws_token` unless an access token is sent.',
  },
  answers: { 101: null },
  refuses: ['invalid_request', 'rate_limited'],
  handle: ({ caller, incoming, requestId }, { relaySockets }) => {
    relaySockets.open(incoming, caller, { 'X-Request-Id': requestId })
    return { status: 101 }
  },
})
