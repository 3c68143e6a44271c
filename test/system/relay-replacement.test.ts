/**
 * Relays that fail during a stream, with a whole `npm start`: how long the player gets nothing new, and what the sender
 * and the player have to change, which is nothing. `npm run soak -- replacement` kills fifty relays.
 */
import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, vi } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import { temporaryFolder } from '../support/folders.ts'
import { createRandom } from '../support/random.ts'
import { eventually, relayProcesses } from '../support/relays.ts'
import { SrtlaSender } from '../support/srtla-sender.ts'
import { endAllAfterwards, Stack } from '../support/stack.ts'
import { signInToDemo } from './demo-account.ts'
import { playNumbered, publishNumbered } from './numbered-stream.ts'
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
}

type Fault = (pid: number) => void
const kill: Fault = (pid) => process.kill(pid, 'SIGKILL')
const freezeForGood: Fault = (pid) => process.kill(pid, 'SIGSTOP')

/** @param isBonded whether the encoder sends over SRTLA. */
async function givenStream(warm: number, { isBonded = false } = {}) {
  const dataDir = await temporaryFolder()
  endAllAfterwards(dataDir)
  const variables = {
    SVC_REGIONS: JSON.stringify([{ region: 'local', display_name: 'Local', provider: 'local', capacity: 20, warm }]),
    SVC_RATE_LIMITS: 'relay_start=1000,relay_active=10000,relay_stop=1000,relay_history=1000',
  }
  const stack = await new Stack(dataDir, { variables }).ready()
  onTestFinished(async () => void (await stack.end('SIGINT')))
  const user = await signInToDemo(stack, dataDir)
  const isActive = (session: SessionView | null) => session?.state === 'active'
  await user.start()
  let session = await user.untilSession(isActive, pollMillis)
  const { connect } = session
  const caller = (url: string | undefined) => () => `${url}&mode=caller&latency=200`
  const sender = isBonded ? await sendBonded(connect?.srtla_url ?? '') : undefined
  publishNumbered(caller(sender?.url ?? connect?.srt_url))
  const player = playNumbered(caller(connect?.player_url))
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
      const pid = relayProcesses(dataDir).find(({ instanceId }) => instanceId === lost.instance_id)?.pid ?? 0
      const failedAt = Date.now()
      fault(pid)
      const block = await player.firstSentAfter(failedAt, secondsMax)
      session = await user.untilSession(
        (now) => now?.state === 'active' && now.instance_id !== lost.instance_id,
        pollMillis,
      )
      expect(session.session_id).toBe(lost.session_id)
      await eventually(
        () => processesOfGroup(pid),
        (processes) => processes.length === 0,
      )
      expect(session.connect).toMatchObject({ srt_url: connect?.srt_url, player_url: connect?.player_url })
      const { transitions, replacements } = await user.history(lost.session_id)
      const since = (at: string | undefined) => (Date.parse(at ?? '') - failedAt) / 1000
      const replacement = replacements.at(-1)
      return {
        noticed: since(transitions.findLast(({ to }) => to === 'grace')?.at),
        reported: since(replacement?.at) + (replacement?.away_seconds ?? Number.NaN),
        active: since(transitions.at(-1)?.at),
        firstBlock: (block.receivedAt - failedAt) / 1000,
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

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? Number.NaN

function show(title: string, all: readonly Measured[]): void {
  for (const phase of ['noticed', 'reported', 'active', 'firstBlock'] as const) {
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

testInRealTime('a bonded encoder registers again at the relay that replaces a killed one', async () => {
  const stream = await givenStream(1, { isBonded: true })
  expect(stream.groupsRegistered()).toBe(1)
  const measured = await stream.fail(kill, 60)
  show('bonded', [measured])
  expect(stream.groupsRegistered()).toBeGreaterThan(1)
  expect(measured.firstBlock).toBeLessThanOrEqual(12)
})
