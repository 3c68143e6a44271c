/** Live events of relay sessions over WebSocket. */
import { z } from 'zod'
import { route } from '../route.ts'

export const watch = route.relayWatcher({
  id: 'watchRelays',
  summary: 'Watch relay sessions over a WebSocket',
  description:
    'A WebSocket with the subprotocol `svc.relay.v1`. Each message is `{"type":"session","session":…}` with the dock view of a session: one when the client connects, one at each change.\n\nThe holder of a `relay_ws_token` offers it as a second subprotocol and watches that session, until the socket closes with 1000 after its end. With an access token the client watches all sessions of the account. Closing codes: 1001 connect again, 1008 clients must not send, 4401 signed out.\n\nWith `?events=1` the client also gets what the stream of a session does, at once: `{"type":"stream_event","session_id","kind","at","bitrate_kbps"}`, as in `stream_events` of the session. After the first message of a session comes its last event with `"is_current":true`, if it has one, so that a client that connects again knows the present state.',
  query: z.object({
    events: z.literal('1').optional().describe('Whether the client wants stream events, too.'),
  }),
  requestHeaders: {
    'Sec-WebSocket-Protocol': {
      description: '`svc.relay.v1`, and the `relay_ws_token` unless an access token is sent.',
      example: 'svc.relay.v1, ws_example_8jLm2nBv',
    },
  },
  answers: { 101: null },
  refuses: ['invalid_request', 'rate_limited'],
  handle: ({ caller, query, incoming, requestId }, { relaySockets }) => {
    const hasEvents = query.events !== undefined
    relaySockets.open(incoming, { caller, hasEvents, responseHeaders: { 'X-Request-Id': requestId } })
    return { status: 101 }
  },
})
