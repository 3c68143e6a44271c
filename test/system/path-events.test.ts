/** Path events of a real stream: a player that joins and leaves, and a caller with a wrong stream id. */
import { expect, test } from 'vitest'
import { listPathEvents } from '../../db/relay/path-events.ts'
import { eventually, startService } from '../support/relays.ts'
import { StreamSink, StreamSource } from './srt-stream.ts'

const once = { isReconnecting: false }

test('a player that joins and leaves, and a refused caller, are in the events of the session', async () => {
  const service = await startService({ variables: { PATH: process.env.PATH ?? '' } })
  const { user, session } = await service.activeRelay()
  const live = (await user.active()).session ?? session
  const withOptions = (url = '') => `${url}&mode=caller&latency=200`
  const source = new StreamSource(withOptions(live.connect?.srt_url), 2_000)
  const [first, second] = [0, 1].map(() => new StreamSink(withOptions(live.connect?.player_url), once))
  await Promise.all([first?.untilReceived(200_000), second?.untilReceived(200_000)])
  const stranger = live.connect?.srt_url.replace(/publish\/live\/\w+/, 'publish/live/Wr0ngKey')
  const refused = new StreamSource(withOptions(stranger), 500, once)
  await refused.ended
  const events = () => listPathEvents(service.api.sql, session.session_id)
  await eventually(events, (list) => list.some(({ kind }) => kind === 'caller_refused'))
  second?.end()
  const list = await eventually(events, (all) => all.some(({ kind }) => kind === 'player_left'))
  expect(list).toMatchObject([
    { kind: 'player_joined', players: 1 },
    { kind: 'player_joined', players: 2 },
    { kind: 'caller_refused', reason: 'unauthorized', role: 'publisher', count: 1 },
    { kind: 'player_left', players: 1 },
  ])
  source.stop()
})
