/** A relay session in its states, for the examples of the API reference. */

const streamToken = 'q7Yx2mKd9RfT4wZb'
const publish = `streamid=publish/live/${streamToken}`

const newSession = {
  session_id: '8f14e45f-ceea-4f67-9d3b-2a6c1e7b5d04',
  connection_id: 'default',
  state: 'provisioning',
  reason: 'start_requested',
  detail: null,
  region: 'eu-central',
  relay_host_masked: null as string | null,
  created_at: '2026-08-01T18:00:00.000Z',
  active_at: null as string | null,
  grace_ends_at: null as string | null,
  stopped_at: null as string | null,
}

const live = {
  ends_at: '2026-08-02T18:00:00.000Z',
  idle_ends_at: '2026-08-02T10:00:00.000Z',
  ending_soon: false,
  ingest: null,
}
const tokens = { pair_token: 'pair_example_3sKd7fGh', relay_ws_token: 'ws_example_8jLm2nBv' }

export const provisioningSession = {
  ...newSession,
  ...live,
  instance_id: null,
  relay_host: null,
  ...tokens,
  connect: null,
}

const activeDockSession = {
  ...newSession,
  ...live,
  state: 'active',
  reason: 'relay_ready',
  relay_host_masked: '198.51.x.x',
  active_at: '2026-08-01T18:00:21.000Z',
  ingest: { publishing: true, bitrate_kbps: 5200, links: 3, repeat_pct: 0.4, since: '2026-08-01T18:01:10.000Z' },
}

const instance = {
  instance_id: 'i-0f2d8c4b6a1e3957d',
  relay_host: '198.51.100.17',
  ...tokens,
  connect: {
    srtla_url: `srtla://198.51.100.17:5000?${publish}`,
    srt_url: `srt://198.51.100.17:5001?${publish}`,
    player_url: `srt://198.51.100.17:5002?streamid=play/live/${streamToken}`,
    stats_url: 'http://198.51.100.17:5003/stats',
    links_url: 'http://198.51.100.17:5003/links?ticket=1795339560.b3hhbXBsZQ',
    srtla_url_v6: `srtla://[2001:db8:7::17]:5000?${publish}`,
    srt_url_v6: `srt://[2001:db8:7::17]:5001?${publish}`,
  },
}

export const activeSession = { ...activeDockSession, ...instance }

export const stoppingSession = {
  ...activeSession,
  state: 'grace',
  reason: 'stop_requested',
  grace_ends_at: '2026-08-01T20:00:30.000Z',
}

export const stoppedSession = {
  ...newSession,
  state: 'stopped',
  reason: 'stop_requested',
  relay_host_masked: '198.51.x.x',
  active_at: '2026-08-01T18:00:21.000Z',
  stopped_at: '2026-08-01T20:00:30.000Z',
  instance_id: instance.instance_id,
}
