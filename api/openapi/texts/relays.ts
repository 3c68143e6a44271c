/** Relays, their live events, regions, and the reports of relay agents. */
import { activeSession, provisioningSession, stoppedSession, stoppingSession } from '../example-objects.ts'
import type { OperationTexts } from '../operation-text.ts'

export const relayTexts: OperationTexts = {
  'POST /relay/start': {
    id: 'startRelay',
    description:
      'Starts a relay for a connection, or returns its live session: one that was stopped a moment ago continues.\n\nSend a new `Idempotency-Key` for each start, and the same one to repeat a start whose reply was lost: within an hour it returns the session as it is now and starts nothing. A refused start does not use the key up.\n\nRefused when the plan does not include relays (`relay_access_denied`), the included time is used up (`usage_exhausted`), all relays of the plan are in use (`relay_limit_reached`), or the region is full (`capacity_exhausted`).',
    requests: {
      default: { summary: 'The default connection and region', value: {} },
      auto: { summary: 'Wherever there is room', value: { connection_id: 'phone', region: 'auto' } },
      region: { summary: 'In a region of the manifest', value: { connection_id: 'default', region: 'eu-central' } },
    },
    replies: {
      200: { live: { summary: 'The connection has a live session', value: { session: activeSession } } },
      201: { started: { summary: 'A new session', value: { session: provisioningSession } } },
    },
    replyHeaders: { 200: ['Idempotent-Replayed'] },
  },
  'GET /relay/active': {
    id: 'listLiveRelays',
    description:
      'All live sessions, oldest first, and the one of the connection that is asked for, or else the oldest. `session` is null when there is none. Clients that want each change at once use the WebSocket.',
    replies: {
      200: {
        one: { summary: 'One live relay', value: { session: activeSession, sessions: [activeSession] } },
        none: { summary: 'No live relay', value: { session: null, sessions: [] } },
      },
    },
  },
  'POST /relay/stop': {
    id: 'stopRelay',
    description:
      'Stops the relay of a session or of a connection. It ends after a short grace, in which a start continues it, or at once with `immediate`. Safe to repeat: a stopped session is returned as it is.',
    requests: {
      connection: { summary: 'By connection', value: { connection_id: 'default' } },
      immediate: {
        summary: 'A session, at once',
        value: { session_id: '8f14e45f-ceea-4f67-9d3b-2a6c1e7b5d04', immediate: true },
      },
    },
    replies: {
      200: {
        grace: { summary: 'Ends after its grace', value: { session: stoppingSession } },
        stopped: { summary: 'Has ended', value: { session: stoppedSession } },
      },
    },
  },
  'GET /relay/sessions': {
    id: 'listRelaySessions',
    description:
      'Ended sessions, 50 a page; the one that ended last comes first. `cause` says why a session left its normal run. They contain no secrets.',
  },
  'GET /relay/sessions/{id}': {
    id: 'getRelaySession',
    description:
      'One session in any state, with its transitions and the bitrate of the last ten minutes, of an ended session of those before its end.',
  },
  'GET /relay/bitrates': {
    id: 'listRecentBitrates',
    description: 'The highest bitrate of each 10 seconds of the last ten minutes, oldest first, for each live session.',
  },
  'GET /relay/pair': {
    id: 'getPairedAddresses',
    description:
      'Gives an encoder, such as a phone, the addresses to publish to without the account. 503 until the relay has an address: repeat after `Retry-After`. 404 for a wrong token and for an ended session alike.',
  },
  'GET /relay/ws': {
    id: 'watchRelays',
    description:
      'A WebSocket with the subprotocol `svc.relay.v1`. Each message is `{"type":"session","session":…}` with the dock view of a session: one when the client connects, one at each change.\n\nThe holder of a `relay_ws_token` offers it as a second subprotocol and watches that session, until the socket closes with 1000 after its end. With an access token the client watches all sessions of the account. Closing codes: 1001 connect again, 1008 clients must not send, 4401 signed out.',
  },
  'GET /relay/manifest': {
    id: 'listRegions',
    description: 'The regions to choose from, whether each takes a relay now, and the image that relays run there.',
  },
  'GET /capacity/status': {
    id: 'getCapacity',
    description: 'Public. Whether relays can be started, overall and by region. It is computed once a second at most.',
    replies: {
      200: {
        limited: {
          summary: 'One region is nearly full',
          value: {
            status: 'available',
            regions: [
              { region: 'eu-central', display_name: 'Frankfurt', status: 'available' },
              { region: 'us-east', display_name: 'Virginia', status: 'limited' },
            ],
            as_of: '2026-08-01T18:30:00.000Z',
          },
        },
      },
    },
  },
  'POST /relay/health': {
    id: 'reportHealth',
    description:
      'A relay reports every `report_in_seconds`. Statistics that are not valid are ignored: the report still proves that the relay runs. When `desired` is `stop`, the relay ends.\n\nA relay without a session sends `session_id: null`; its report waits up to `wait_seconds` for an assignment. 409 `instance_mismatch` and `invalid_transition` mean that the session belongs to another instance or has ended. Safe to repeat.',
    requests: {
      streaming: {
        summary: 'A relay that receives a stream',
        value: {
          session_id: '8f14e45f-ceea-4f67-9d3b-2a6c1e7b5d04',
          instance_id: 'i-0f2d8c4b6a1e3957d',
          observed_at: '2026-08-01T18:30:00.000Z',
          stats: {
            publishing: true,
            bitrate_kbps: 5200,
            rtt_ms: 42,
            loss_pct: 0.2,
            links: 3,
            players: 1,
            bytes_total: 4_680_000_000,
            publishing_ms_total: 7_200_000,
            peak_bitrate_kbps: 6400,
            started_at_ms: 1_785_607_200_000,
            engine: 'srt-live-transmit',
          },
        },
      },
      unbound: {
        summary: 'A relay without a session',
        value: { session_id: null, instance_id: 'i-0f2d8c4b6a1e3957d', wait_seconds: 10 },
      },
    },
    replies: {
      200: {
        run: { summary: 'Keep running', value: { state: 'active', desired: 'run', report_in_seconds: 5 } },
        assigned: {
          summary: 'A session for a relay without one',
          value: {
            state: 'provisioning',
            desired: 'run',
            report_in_seconds: 0.2,
            assignment: {
              session_id: '8f14e45f-ceea-4f67-9d3b-2a6c1e7b5d04',
              stream_token: 'q7Yx2mKd9RfT4wZb',
            },
          },
        },
      },
    },
  },
}
