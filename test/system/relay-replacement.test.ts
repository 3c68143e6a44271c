/**
 * Relays that fail during a stream, with a whole `npm start`: how long the player gets nothing new, and what the sender
 * and the player have to change, which is nothing. `npm run soak -- replacement` kills fifty relays.
 */
import { execFileSync } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, vi } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import { findProcess } from '../../platform/processes.ts'
import { relayFolderOf } from '../../providers/relay/local-relays.ts'
import { temporaryFolder } from '../support/folders.ts'
import { playNumbered, publishNumbered } from '../support/numbered-stream.ts'
import { findFreePort } from '../support/ports.ts'
import { createRandom } from '../support/random.ts'
import { RelayPaths } from '../support/relay-paths.ts'
import { eventually, relayProcesses } from '../support/relays.ts'
import { SrtlaSender } from '../support/srtla-sender.ts'
import { endAllAfterwards, Stack } from '../support/stack.ts'
import { signInToDemo } from './demo-account.ts'
import { testInRealTime } from './real-time.ts'

const kills = Number(process.env.RELAY_REPLACEMENT_KILLS ?? '5')
const seed = Number(process.env.RELAY_REPLACEMENT_SEED ?? '7')
/** A session is stopped when it loses a fourth relay within an hour. */
const killsPerSession = 3
const pollMillis = 100

vi.setConfig({ testTimeout: 120_000 + kills * 25_000 })

interface Measured {
  /** All in seconds from the fault. */
  readonly noticed: number
  readonly reported: number
  readonly active: number
  readonly firstBlock: number
  /** From the moment in which the replacement has its ports to the end of the lost relay: above 0 while both serve. */
  readonly both: number
}

type Fault = (relay: { readonly pid: number; readonly instanceId: string }) => void
const kill: Fault = ({ pid }) => process.kill(pid, 'SIGKILL')
const freezeForGood: Fault = ({ pid }) => process.kill(pid, 'SIGSTOP')

interface StreamOptions {
  /** Whether the encoder sends over SRTLA. */
  readonly isBonded?: boolean
  /** The way between the service and its relays, which listen at another address. The stream does not use it. */
  readonly paths?: RelayPaths
}

/** The address of relays behind {@link RelayPaths}. */
const relayHost = '127.0.0.2'

/** @returns the variables of a service whose relays reach it through a proxy, and the other way round. */
async function behind(paths: RelayPaths, dataDir: string): Promise<{ PORT: string; SVC_API_URL: string }> {
  onTestFinished(() => paths.close())
  paths.passStatistics(relayFolderOf(dataDir), relayHost)
  const port = await findFreePort()
  return { PORT: `${port}`, SVC_API_URL: `http://127.0.0.1:${await paths.openApi(port)}` }
}

async function givenStream(warm: number, { isBonded = false, paths }: StreamOptions = {}) {
  const dataDir = await temporaryFolder()
  endAllAfterwards(dataDir)
  const region = { region: 'local', display_name: 'Local', provider: 'local', capacity: 20, warm }
  const hosts = paths ? { host: relayHost, public_host: '127.0.0.1' } : {}
  const variables = {
    SVC_REGIONS: JSON.stringify([{ ...region, ...hosts }]),
    SVC_RATE_LIMITS: 'relay_start=1000,relay_active=10000,relay_stop=1000,relay_history=1000',
    ...(paths ? await behind(paths, dataDir) : {}),
  }
  const stack = await new Stack(dataDir, { variables }).ready()
  onTestFinished(async () => void (await stack.end('SIGINT')))
  const user = await signInToDemo(stack, dataDir)
  const isActive = (session: SessionView | null) => session?.state === 'active'
  await user.start()
  let session = await user.untilSession(isActive, pollMillis)
  const { connect } = session
  const host = paths ? relayHost : '127.0.0.1'
  const caller = (url: string | undefined) => () => `${url?.replace('127.0.0.1', host)}&mode=caller&latency=200`
  const sender = isBonded ? await sendBonded(connect?.srtla_url ?? '') : undefined
  onTestFinished(publishNumbered(caller(sender?.url ?? connect?.srt_url)))
  const player = playNumbered(caller(connect?.player_url))
  onTestFinished(player.end)
  await player.firstSentAfter(Date.now(), 30)
  return {
    groupsRegistered: () => sender?.sender.groupsRegistered,
    async startAgain(): Promise<void> {
      await user.stop()
      await user.untilSession((live) => live === null, pollMillis)
      await user.start()
      session = await user.untilSession(isActive, pollMillis)
      expect(session.connect).toMatchObject({ srt_url: connect?.srt_url, player_url: connect?.player_url })
      await player.firstSentAfter(Date.now(), 30)
    },
    async fail(fault: Fault, secondsMax: number): Promise<Measured> {
      const lost = await user.untilSession(isActive, pollMillis)
      const relay = relayProcesses(dataDir).find(({ instanceId }) => instanceId === lost.instance_id)
      if (!relay) throw new Error(`${lost.instance_id} has no process`)
      const failedAt = Date.now()
      fault(relay)
      const ended = untilEnded(relay.pid)
      const block = await player.firstSentAfter(failedAt, secondsMax)
      session = await user.untilSession(
        (now) => now?.state === 'active' && now.instance_id !== lost.instance_id,
        pollMillis,
      )
      expect(session.session_id).toBe(lost.session_id)
      await eventually(
        () => processesOfGroup(relay.pid),
        (processes) => processes.length === 0,
      )
      expect(session.connect).toMatchObject({ srt_url: connect?.srt_url, player_url: connect?.player_url })
      // Written when the replacement has the ports.
      const stateFile = join(relayFolderOf(dataDir), `${session.instance_id}.json`)
      const { mtimeMs: servesFrom } = await stat(stateFile)
      // Also over a relay that has served on meanwhile.
      await player.firstSentAfter(Date.now(), secondsMax)
      const { transitions, replacements } = await user.history(lost.session_id)
      const since = (at: string | undefined) => (Date.parse(at ?? '') - failedAt) / 1000
      const replacement = replacements.at(-1)
      return {
        noticed: since(transitions.findLast(({ to }) => to === 'grace')?.at),
        reported: since(replacement?.at) + (replacement?.away_seconds ?? Number.NaN),
        active: since(transitions.at(-1)?.at),
        firstBlock: Math.max((block.receivedAt - failedAt) / 1000, player.longestSilenceMillis(failedAt) / 1000),
        both: ((await ended) - servesFrom) / 1000,
      }
    },
  }
}

/** An SRTLA sender that never looks its address up again. */
async function sendBonded(srtlaUrl: string) {
  const { hostname: host, port, search } = new URL(srtlaUrl)
  const sender = await SrtlaSender.start({ host, srtlaPort: Number(port), links: [{}, {}] })
  onTestFinished(() => sender.close())
  return { sender, url: `srt://127.0.0.1:${sender.port}${search}` }
}

/** The relay and its engine are one process group. */
const processesOfGroup = (group: number): string[] =>
  execFileSync('ps', ['-eo', 'pgid=,stat=,args='], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.trim().startsWith(`${group} `) && !/^\s*\d+ Z/.test(line))

/** Resolves with the moment in which a process has ended. */
async function untilEnded(pid: number): Promise<number> {
  while (await findProcess(pid)) await sleep(20)
  return Date.now()
}

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? Number.NaN

function show(title: string, all: readonly Measured[]): void {
  for (const phase of ['noticed', 'reported', 'active', 'firstBlock', 'both'] as const) {
    const values = all.map((measured) => measured[phase])
    const figures = [0.5, 0.95, 1].map((share) => percentile(values, share).toFixed(1))
    process.stdout.write(
      `[replacement] ${title}, ${all.length} faults: ${phase} p50 / p95 / max ${figures.join(' / ')} s\n`,
    )
  }
}

for (const { warm, p95, max } of [
  { warm: 1, p95: 8, max: 12 },
  { warm: 0, p95: 10, max: 15 },
])
  testInRealTime(
    `a stream goes on at the same addresses after its relay is killed, with ${warm} warm instances`,
    async () => {
      const random = createRandom(seed)
      const stream = await givenStream(warm)
      const measured: Measured[] = []
      for (let n = 0; n < kills; n += 1) {
        if (n > 0 && n % killsPerSession === 0) await stream.startAgain()
        await sleep(random.between(1_000, 3_000))
        measured.push(await stream.fail(kill, 60))
      }
      show(`warm ${warm}`, measured)
      const firstBlocks = measured.map(({ firstBlock }) => firstBlock)
      expect(percentile(firstBlocks, 0.95)).toBeLessThanOrEqual(p95)
      expect(Math.max(...firstBlocks)).toBeLessThanOrEqual(max)
    },
  )

testInRealTime('a stream goes on at the same addresses after its relay is frozen', async () => {
  const stream = await givenStream(1)
  const measured = await stream.fail(freezeForGood, 60)
  show('frozen', [measured])
  expect(measured.firstBlock).toBeLessThanOrEqual(35)
})

testInRealTime('a stream goes on at the same addresses after its relay is cut off in both directions', async () => {
  const paths = new RelayPaths()
  const stream = await givenStream(0, { paths })
  const measured = await stream.fail(({ instanceId }) => paths.cut(instanceId), 60)
  show('cut off', [measured])
  expect(measured.active).toBeLessThanOrEqual(30)
  expect(measured.firstBlock).toBeLessThanOrEqual(15)
  // The lost relay has ended before the other one has its ports.
  expect(measured.both).toBeLessThanOrEqual(0)
})

testInRealTime('a bonded encoder registers again at the relay that replaces a killed one', async () => {
  const stream = await givenStream(1, { isBonded: true })
  expect(stream.groupsRegistered()).toBe(1)
  const measured = await stream.fail(kill, 60)
  show('bonded', [measured])
  expect(stream.groupsRegistered()).toBeGreaterThan(1)
  expect(measured.firstBlock).toBeLessThanOrEqual(12)
})
