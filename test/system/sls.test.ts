/** A relay beside an SLS server, whose listeners are those of real SRT programs. */
import { expect, test } from 'vitest'
import { endOf, givenControlPlane, startRelay, statsOf, streamToken } from '../relay-node/running.ts'
import { givenSls, slsKey } from '../support/sls-server.ts'
import { expectWholeStream, findFreeUdpPort, StreamSink, StreamSource } from './srt-stream.ts'

async function givenRelay() {
  const [plane, sls] = [await givenControlPlane(), await givenSls('OpenIRL')]
  const [publishPort, playPort] = [await findFreeUdpPort(), await findFreeUdpPort()]
  const relay = startRelay({
    apiUrl: plane.url,
    variables: {
      SVC_RELAY_ENGINE: 'sls',
      SVC_RELAY_SLS_API_URL: sls.apiUrl,
      SVC_RELAY_SLS_API_KEY: slsKey,
      SVC_RELAY_SLS_PUBLISH_PORT: String(publishPort),
      SVC_RELAY_SLS_PLAY_PORT: String(playPort),
    },
  })
  const state = await relay.up()
  const listenAt = (port: number) => `srt://127.0.0.1:${port}?mode=listener&latency=500`
  const callAt = (port: number, streamId: string) => `srt://127.0.0.1:${port}?streamid=${streamId}&latency=500`
  return { relay, sls, state, publishPort, playPort, listenAt, callAt }
}

test('a stream goes through the gate to the publish listener of SLS, and ends with the relay', async () => {
  const { relay, sls, state, publishPort, listenAt, callAt } = await givenRelay()
  const listener = new StreamSink(listenAt(publishPort))
  const source = new StreamSource(callAt(state.publishPort, `#!::r=${streamToken},m=publish`), 2_000, {
    isReconnecting: false,
  })
  await listener.untilReceived(500_000)
  await expectWholeStream(source, listener)
  expect(await statsOf(state)).toMatchObject({ engine: 'sls', groups: [{ conn_count: 1 }] })
  expect([...sls.registered]).toEqual([[`play/live/${relay.instanceId}`, `publish/live/${relay.instanceId}`]])
  relay.child.kill('SIGTERM')
  await Promise.all([source.ended, endOf(relay.child)])
  expect(sls.registered.size).toBe(0)
})

test('a player receives what the play listener of SLS sends, and a wrong token reaches no listener', async () => {
  const { state, playPort, listenAt, callAt } = await givenRelay()
  const source = new StreamSource(listenAt(playPort), 2_000)
  const refused = new StreamSink(callAt(state.playPort, 'play/live/Zz99Zz99'), { isReconnecting: false })
  await refused.ended
  expect(refused.receivedBytes).toBe(0)
  const player = new StreamSink(callAt(state.playPort, `play/live/${streamToken}`))
  await player.untilReceived(500_000)
  await expectWholeStream(source, player)
})
