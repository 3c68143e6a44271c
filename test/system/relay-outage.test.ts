/** A stream does not depend on the control plane: all of it is killed and started again while video passes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { endProcess } from '../../platform/processes.ts'
import { relayProgram } from '../../providers/relay/local-relays.ts'
import { temporaryFolder } from '../support/folders.ts'
import { endAllAfterwards, processesOf, Stack } from '../support/stack.ts'
import { signInToDemo } from './demo-account.ts'
import { testInRealTime } from './real-time.ts'
import { expectWholeStream, StreamSink, StreamSource } from './srt-stream.ts'

const withLatency = (url: string) => `${url}&mode=caller&latency=1000`

testInRealTime(
  'api, worker, site, Temporal and Postgres are killed and started again during a stream, and no byte is lost',
  async () => {
    const dataDir = await temporaryFolder()
    endAllAfterwards(dataDir)
    const variables = { SVC_RELAY_HEALTH_INTERVAL_SECONDS: '2' }
    const stack = await new Stack(dataDir, { variables }).ready()
    const user = await signInToDemo(stack, dataDir)
    await user.start()
    const before = await user.untilSession((session) => session?.state === 'active')
    const player = new StreamSink(withLatency(before.connect?.player_url ?? ''))
    const source = new StreamSource(withLatency(before.connect?.srt_url ?? ''), 3_000)
    await player.untilReceived(300_000)
    await user.untilSession((session) => (session?.ingest?.bitrate_kbps ?? 0) > 1_000)

    const isRelay = (command: string) => command.includes(relayProgram) || command.includes('srt-live-transmit')
    const controlPlane = (await processesOf(dataDir)).filter(({ command }) => !isRelay(command))
    expect(controlPlane.length).toBeGreaterThan(5)
    await Promise.all(controlPlane.map((process) => endProcess(process, [['SIGKILL', 5_000]])))
    await sleep(5_000)
    const restarted = await new Stack(dataDir, { variables }).ready()

    const again = await signInToDemo(restarted, dataDir)
    const after = await again.untilSession((session) => session?.ingest?.publishing === true)
    expect(after).toMatchObject({ session_id: before.session_id, instance_id: before.instance_id, state: 'active' })
    await expectWholeStream(source, player)
    expect(player.receivedBytes).toBeGreaterThan(3_000_000)
    source.stop()
    expect(await restarted.end('SIGINT')).toBe(0)
  },
)
