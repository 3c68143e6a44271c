import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../api/relay-session-view.ts'
import { outcome, streamTokenOf } from '../support/api.ts'
import { type RelayUser, startService, type TestService } from '../support/relays.ts'

/** Nobody carries anything out here: sessions stay as they were accepted. */
let still: TestService
beforeAll(async () => {
  still = await startService({ worker: false })
})

const startAt = (user: RelayUser, path: string, body: object = {}, headers = { 'Idempotency-Key': randomUUID() }) =>
  still.api.post<{ session: SessionView }>(path, body, { bearer: user.bearer, headers })
/** Moves that an actor would make, where none is. */
const becomeActive = (sessionId: string) => still.api.sql`
  update relay_sessions set state = 'active', reason = 'relay_ready', version = version + 1, active_at = now(),
    instance_id = 'i-1', relay_host = '198.51.100.7', srtla_port = 5000, publish_port = 4001, play_port = 4000, stats_port = 5080
  where id = ${sessionId}`

describe('the dock’s view of a session', () => {
  const hidden = ['relay_host', 'pair_token', 'relay_ws_token', 'connect', 'instance_id']

  test('lacks what lets one reach or join the relay, wherever a session is answered', async () => {
    const user = await still.user()
    const key = { 'Idempotency-Key': randomUUID() }
    const started = await startAt(user, '/relay/start?view=dock', {}, key)
    const { session_id, ...rest } = started.body.session
    for (const name of hidden) expect(rest).not.toHaveProperty(name)
    await becomeActive(session_id)
    const asking = { bearer: user.bearer }
    const active = (await still.api.get<Awaited<ReturnType<RelayUser['active']>>>('/relay/active?view=dock', asking))
      .body
    const summary = (await still.api.get<{ active_relay: SessionView }>('/auth/session?view=dock', asking)).body
    const again = (await startAt(user, '/relay/start?view=dock')).body
    const replay = (await startAt(user, '/relay/start?view=dock', {}, key)).body
    const stopped = (await still.api.post<{ session: SessionView }>('/relay/stop?view=dock', { session_id }, asking))
      .body
    for (const session of [
      active.session,
      active.sessions[0],
      summary.active_relay,
      again.session,
      replay.session,
      stopped.session,
    ]) {
      expect(session).toMatchObject({ session_id, relay_host_masked: '198.51.x.x' })
      for (const name of hidden) expect(session).not.toHaveProperty(name)
      expect(JSON.stringify(session)).not.toMatch(/198\.51\.100\.7/)
    }
  })

  test('is not what the owner’s plugin gets: that has all it needs to stream', async () => {
    const user = await still.user()
    await becomeActive((await user.start()).body.session.session_id)
    const streamToken = await streamTokenOf(still.api, user.userId)
    expect((await user.active()).session).toMatchObject({
      state: 'active',
      instance_id: 'i-1',
      relay_host: '198.51.100.7',
      relay_host_masked: '198.51.x.x',
      pair_token: expect.any(String),
      relay_ws_token: expect.any(String),
      connect: {
        srtla_url: `srtla://198.51.100.7:5000?streamid=publish/live/${streamToken}`,
        srt_url: `srt://198.51.100.7:4001?streamid=publish/live/${streamToken}`,
        player_url: `srt://198.51.100.7:4000?streamid=play/live/${streamToken}`,
        stats_url: 'http://198.51.100.7:5080/stats',
      },
    })
  })

  test.each(['owner', 'DOCK', '', 'dock&view=dock'])('can’t be asked for as %j', async (view) => {
    const user = await still.user()
    expect(outcome(await still.api.get(`/relay/active?view=${view}`, { bearer: user.bearer }))).toEqual([
      400,
      'invalid_request',
    ])
  })
})
