/** A stream does not depend on the control plane: all of it is killed and started again while video passes. */
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { endProcess } from '../../platform/processes.ts'
import { relayProgram } from '../../providers/relay/local-relays.ts'
import { temporaryFolder } from '../support/folders.ts'
import { endAllAfterwards, processesOf, Stack } from '../support/stack.ts'
import { testInRealTime } from './real-time.ts'
import { expectWholeStream, StreamSink, StreamSource } from './srt-stream.ts'

interface Session {
  readonly session_id: string
  readonly state: string
  readonly instance_id: string
  readonly connect: { readonly srt_url: string; readonly player_url: string } | null
  readonly ingest: { readonly publishing: boolean; readonly bitrate_kbps: number } | null
}

/** Signs in to the demo account of a stack. */
async function signIn(stack: Stack, dataDir: string) {
  const { demo } = JSON.parse(await readFile(`${dataDir}/secrets.json`, 'utf8')) as { demo: object }
  const call = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${stack.api}/api/v1${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return response.json() as Promise<unknown>
  }
  const { cp_access_jwt } = (await call('POST', '/auth/login', demo)) as { cp_access_jwt: string }
  const bearer = { authorization: `Bearer ${cp_access_jwt}` }
  return {
    start: () => call('POST', '/relay/start', {}, { ...bearer, 'idempotency-key': crypto.randomUUID() }),
    /** Polls below the rate limit until the session is as expected. */
    untilSession: async (isExpected: (session: Session) => boolean): Promise<Session> => {
      for (let polls = 0; polls < 30; polls += 1) {
        const { session } = (await call('GET', '/relay/active', undefined, bearer)) as { session: Session | null }
        if (session && isExpected(session)) return session
        await sleep(1_200)
      }
      throw new Error('the session did not become as expected')
    },
  }
}

const withLatency = (url: string) => `${url}&mode=caller&latency=1000`

testInRealTime(
  'api, worker, site, Temporal and Postgres are killed and started again during a stream, and no byte is lost',
  async () => {
    const dataDir = await temporaryFolder()
    endAllAfterwards(dataDir)
    const variables = { SVC_RELAY_HEALTH_INTERVAL_SECONDS: '2' }
    const stack = await new Stack(dataDir, { variables }).ready()
    const user = await signIn(stack, dataDir)
    await user.start()
    const before = await user.untilSession(({ state }) => state === 'active')
    const player = new StreamSink(withLatency(before.connect?.player_url ?? ''))
    const source = new StreamSource(withLatency(before.connect?.srt_url ?? ''), 3_000)
    await player.untilReceived(300_000)
    await user.untilSession(({ ingest }) => (ingest?.bitrate_kbps ?? 0) > 1_000)

    const isRelay = (command: string) => command.includes(relayProgram) || command.includes('srt-live-transmit')
    const controlPlane = (await processesOf(dataDir)).filter(({ command }) => !isRelay(command))
    expect(controlPlane.length).toBeGreaterThan(5)
    await Promise.all(controlPlane.map((process) => endProcess(process, [['SIGKILL', 5_000]])))
    await sleep(5_000)
    const restarted = await new Stack(dataDir, { variables }).ready()

    const again = await signIn(restarted, dataDir)
    const after = await again.untilSession(({ ingest }) => ingest?.publishing === true)
    expect(after).toMatchObject({ session_id: before.session_id, instance_id: before.instance_id, state: 'active' })
    await expectWholeStream(source, player)
    expect(player.receivedBytes).toBeGreaterThan(3_000_000)
    source.stop()
    expect(await restarted.end('SIGINT')).toBe(0)
  },
)
