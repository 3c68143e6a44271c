/**
 * A machine in a cloud that is cut off from the service while it has a stream: for how long it and its replacement both
 * take streams. The machines are relays of the double of Hetzner Cloud, with the real program and the real engine.
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { beforeAll, expect, onTestFinished, vi } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import type { RelayPorts } from '../../domain/relay/ports.ts'
import { atEnd } from '../support/at-end.ts'
import { type HetznerServer, startHetznerServer } from '../support/hetzner-server.ts'
import { playNumbered, publishNumbered } from '../support/numbered-stream.ts'
import { RelayPaths } from '../support/relay-paths.ts'
import { eventually, startService, type TestService } from '../support/relays.ts'
import { bootRelay } from './booted-relay.ts'
import { testInRealTime } from './real-time.ts'

vi.setConfig({ testTimeout: 180_000 })

/** The default. */
const healthTimeoutSeconds = 20
const secondsMax = 60

interface Machine {
  readonly instanceId: string
  readonly relay: ChildProcess
  readonly stateFile: string
  readonly endedAt: Promise<number>
}

let cloud: HetznerServer
let service: TestService
let isDeletionBroken = false
/** The way of the machines to the API. The worker does not reach addresses that are not public. */
const paths = new RelayPaths()
atEnd(() => paths.close())
beforeAll(async () => {
  cloud = await startHetznerServer()
  atEnd(() => cloud.close())
  cloud.onStage = async (_, { method }) => (isDeletionBroken && method === 'DELETE' ? 'drop' : undefined)
  const hetzner = { location: 'fsn1', server_type: 'cx22', image: 'debian-13' }
  service = await startService({
    variables: {
      SVC_REGIONS: JSON.stringify([{ region: 'eu', display_name: 'Europe', provider: 'hetzner', hetzner }]),
      SVC_HETZNER_TOKEN: cloud.token,
      SVC_HETZNER_API_URL: cloud.apiUrl,
      SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '60',
      SVC_RELAY_HEALTH_INTERVAL_SECONDS: '10',
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: `${healthTimeoutSeconds}`,
      SVC_RELAY_GRACE_SECONDS: '120',
      SVC_RELAY_REPLACEMENT_SECONDS: '300',
    },
  })
}, 60_000)

/** Boots each server of the cloud, and ends its relay with it. */
function runMachines() {
  const machines = new Map<string, Promise<Machine>>()
  const boot = async (instanceId: string, userData: string): Promise<Machine> => {
    const port = await paths.openApi(Number(new URL(service.api.url).port))
    const more = { SVC_RELAY_API_URL: `http://127.0.0.1:${port}`, PATH: process.env.PATH ?? '' }
    const { relay, stateFile } = await bootRelay(userData, more)
    return { instanceId, relay, stateFile, endedAt: once(relay, 'exit').then(() => Date.now()) }
  }
  const look = setInterval(() => {
    const servers = cloud.project.servers()
    for (const { name, userData = '' } of servers) if (!machines.has(name)) machines.set(name, boot(name, userData))
    for (const [name, machine] of machines)
      if (!servers.some((server) => server.name === name)) void machine.then(({ relay }) => relay.kill('SIGKILL'))
  }, 50)
  onTestFinished(() => clearInterval(look))
  return async (instanceId: string | null | undefined): Promise<Machine> => {
    const machine = machines.get(instanceId ?? '')
    if (!machine) throw new Error(`${instanceId} is no server of the cloud`)
    return machine
  }
}

/** The addresses of the double stand for ports of this machine. */
async function urlsOf({ connect }: SessionView, { stateFile }: Machine) {
  const { publishPort, playPort } = JSON.parse(await readFile(stateFile, 'utf8')) as RelayPorts
  const withPort = (url: string | undefined, port: number) =>
    `${url?.replace(/\/\/[^?/]+/, `//127.0.0.1:${port}`)}&mode=caller&latency=200`
  return { publish: withPort(connect?.srt_url, publishPort), play: withPort(connect?.player_url, playPort) }
}

async function cutOff() {
  const machineOf = runMachines()
  const { user, session: first } = await service.activeRelay()
  const lost = await machineOf(first.instance_id)
  // The encoder and the player call the current address once their connection has ended.
  let urls = await urlsOf(first, lost)
  onTestFinished(publishNumbered(() => urls.publish))
  const player = playNumbered(() => urls.play)
  onTestFinished(player.end)
  await player.firstSentAfter(Date.now(), secondsMax)

  const cutAt = Date.now()
  paths.cut(lost.instanceId)
  const session = await eventually(
    async () => (await user.active()).session,
    (now) => now?.state === 'active' && now.instance_id !== first.instance_id,
    secondsMax,
  )
  if (!session) throw new Error('unreachable')
  expect(session.session_id).toBe(first.session_id)
  urls = await urlsOf(session, await machineOf(session.instance_id))
  const rows = await service.api.sql<{ boundAt: Date; restoredAt: Date }[]>`
    select bound_at, restored_at from relay_replacements where session_id = ${session.session_id}`
  expect(rows).toHaveLength(1)
  return { user, session, lost, player, cutAt, boundAt: rows[0]?.boundAt.getTime() ?? Number.NaN }
}

type CutOff = Awaited<ReturnType<typeof cutOff>>

/** Resolves with the seconds in which both relays took streams. */
async function measure(title: string, { user, session, lost, player, cutAt, boundAt }: CutOff): Promise<number> {
  const endedAt = await lost.endedAt
  const block = await player.firstSentAfter(endedAt, secondsMax)
  const seconds = (from: number, to: number) => ((to - from) / 1000).toFixed(1)
  const both = Math.max(0, endedAt - boundAt) / 1000
  process.stdout.write(
    `[cut off] ${title}: bound ${seconds(cutAt, boundAt)} s after the cut, both took streams for ${both.toFixed(1)} s, ` +
      `first block ${seconds(endedAt, block.receivedAt)} s after the end of the lost relay\n`,
  )
  isDeletionBroken = false
  expect((await user.stop({ session_id: session.session_id, immediate: true })).status).toBe(200)
  await eventually(
    () => cloud.project.servers(),
    (servers) => servers.length === 0,
    secondsMax,
  )
  return both
}

testInRealTime('a machine that stays cut off ends soon after its replacement reports', async () => {
  const both = await measure('the provider ends the machine', await cutOff())
  expect(both).toBeLessThanOrEqual(healthTimeoutSeconds)
})

testInRealTime('a machine that cannot be deleted ends with its first answered report, within the timeout', async () => {
  isDeletionBroken = true
  onTestFinished(() => {
    isDeletionBroken = false
  })
  const replaced = await cutOff()
  // It still serves its encoder.
  await replaced.player.firstSentAfter(replaced.boundAt, secondsMax)
  expect(replaced.lost.relay.exitCode).toBeNull()
  paths.restore(replaced.lost.instanceId)
  const both = await measure('the machine is reachable again', replaced)
  expect(both).toBeLessThanOrEqual(healthTimeoutSeconds)
})
