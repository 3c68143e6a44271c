/** Play keys at real relays of the service, with programs of the protocol's authors. */
import { beforeAll, expect, test } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import { eventually, type RelayUser, startService, type TestService } from '../support/relays.ts'
import { StreamSink, StreamSource } from './srt-stream.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ variables: { SVC_RATE_LIMITS: 'relay_history=1000', PATH: process.env.PATH ?? '' } })
})

/** Ends with its connection. */
const once = { isReconnecting: false }
const options = 'mode=caller&latency=200'
const withOptions = (url = '') => `${url}&${options}`
const playUrl = ({ connect }: SessionView, secret: string) =>
  withOptions(connect?.player_url.replace(/play\/live\/[^&]+/, `play/live/${secret}`))

const createKey = async ({ bearer }: RelayUser, name: string) =>
  (await service.api.post<{ id: string; key: string }>('/relay/play-keys', { name }, { bearer })).body
const tokenOf = ({ connect }: SessionView) => /publish\/live\/(\w+)/.exec(connect?.srt_url ?? '')?.[1] ?? ''

interface Stats {
  readonly publishers: Readonly<Record<string, { readonly bitrate: number }>>
}

async function statsOf({ connect }: SessionView, key: string): Promise<Stats | undefined> {
  const reply = await fetch(`${connect?.stats_url}/${key}`)
  return reply.ok ? ((await reply.json()) as Stats) : undefined
}

test('a key that is made during a stream plays and shows statistics, and its deletion ends both', async () => {
  const { user, session } = await service.activeRelay()
  const live = (await user.active()).session ?? session
  const source = new StreamSource(withOptions(live.connect?.srt_url), 2_000)
  const ofConnection = new StreamSink(withOptions(live.connect?.player_url))
  await ofConnection.untilReceived(200_000)

  const { id, key } = await createKey(user, 'Studio PC')
  const createdAt = performance.now()
  const shown = await eventually(
    () => statsOf(live, key),
    (stats) => stats !== undefined,
  )
  expect(performance.now() - createdAt).toBeLessThan(2_000)
  expect(shown?.publishers[key]?.bitrate).toBeGreaterThan(100)
  const player = new StreamSink(playUrl(live, key), once)
  await player.untilReceived(200_000)

  await service.api.delete(`/relay/play-keys/${id}`, { bearer: user.bearer })
  const deletedAt = performance.now()
  await player.ended
  expect(performance.now() - deletedAt).toBeLessThan(3_000)
  expect(await statsOf(live, key)).toBeUndefined()

  const received = ofConnection.receivedBytes
  await ofConnection.untilReceived(received + 200_000)
  source.stop()
})

test('the stream token stops playing, and goes on publishing, when players need a key', async () => {
  const { user, session } = await service.activeRelay()
  const live = (await user.active()).session ?? session
  const source = new StreamSource(withOptions(live.connect?.srt_url), 2_000)
  const withToken = new StreamSink(playUrl(live, tokenOf(live)), once)
  const withKey = new StreamSink(withOptions(live.connect?.player_url))
  await Promise.all([withToken.untilReceived(200_000), withKey.untilReceived(200_000)])

  await service.api.post('/relay/play-access', { play_with_keys_only: true }, { bearer: user.bearer })

  await withToken.ended
  await withKey.untilReceived(withKey.receivedBytes + 400_000)
  source.stop()
})
