/**
 * The script in OBS while the network of the encoder is bad, as a seed says: scenes follow the stream without flapping.
 * `npm run soak -- obs-script` takes half an hour.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, vi } from 'vitest'
import { openDatagramPath } from '../support/datagram-path.ts'
import type { PathConditions } from '../support/emulated-path.ts'
import { eventually } from '../support/eventually.ts'
import { startPictureStream } from '../support/picture-stream.ts'
import { createRandom, type Random } from '../support/random.ts'
import { type ScriptService, startScriptService } from './obs-script-service.ts'
import { testInRealTime } from './real-time.ts'

const seconds = Number(process.env.OBS_SCRIPT_SECONDS ?? 60)
const seed = Number(process.env.OBS_SCRIPT_SEED ?? 20_261)

vi.setConfig({ testTimeout: (seconds + 180) * 1_000 })

let service: ScriptService
beforeAll(async () => {
  service = await startScriptService()
}, 180_000)

/** Kinds of disturbances, with how often each comes. */
const weights = { dead: 3, narrow: 3, lossy: 3, flickering: 2, slow: 1 }
type Kind = keyof typeof weights

const home: PathConditions = { delayMillis: 20, jitterMillis: 5 }

const conditionsOf = (kind: Kind, random: Random): PathConditions =>
  ({
    dead: {},
    narrow: { ...home, kbps: random.between(150, 1_200), queueMillis: 300 },
    lossy: { ...home, lossPercent: random.between(5, 60) },
    flickering: home,
    slow: { delayMillis: random.between(100, 400), jitterMillis: 80, lossPercent: 2 },
  })[kind]

/** Begins to record the switches of OBS. */
function recordSwitches() {
  const switches: { readonly at: number; readonly scene: string }[] = []
  service.obs.socket.on('CurrentProgramSceneChanged', ({ sceneName }) =>
    switches.push({ at: Date.now(), scene: sceneName }),
  )
  return switches
}

testInRealTime('scenes follow a stream over a bad network, without flapping', async () => {
  const random = createRandom(seed)
  await service.press('add_source')
  await service.signIn()
  const url = new URL((await service.active()).connect?.srt_url ?? '')
  const path = await openDatagramPath(Number(url.port), random.next)
  path.change(home)
  const stream = startPictureStream(url.href.replace(url.host, `127.0.0.1:${path.port}`), { kbps: 2_500 })
  await eventually(service.obs.scene, (scene) => scene === 'LIVE', 40)
  await sleep(3_000)
  const switches = recordSwitches()
  const disturbances: string[] = []
  for (const until = Date.now() + seconds * 1_000; Date.now() < until; ) {
    // The first one is noticed for certain.
    const isFirst = disturbances.length === 0
    const kind = isFirst ? 'dead' : random.weighted(weights)
    const lastsMillis = random.between(isFirst ? 5_000 : 500, 15_000)
    disturbances.push(`${kind} ${(lastsMillis / 1_000).toFixed(1)} s`)
    const before = switches.length
    const endsAt = Date.now() + lastsMillis
    path.change(conditionsOf(kind, random), kind === 'dead')
    if (kind !== 'flickering') await sleep(lastsMillis)
    else
      for (let isDead = true; Date.now() < endsAt; isDead = !isDead) {
        path.change(home, isDead)
        await sleep(random.between(300, 2_500))
      }
    path.change(home)
    await sleep(random.between(4_000, 15_000))
    const scenes = switches.slice(before).map(({ scene }) => scene)
    process.stdout.write(`[obs] ${disturbances.at(-1)}: ${scenes.join(', ') || 'no switch'}\n`)
  }
  await eventually(service.obs.scene, (scene) => scene === 'LIVE', 60)
  await stream.stop()
  const gaps = switches.slice(1).map(({ at }, index) => (at - (switches[index]?.at ?? 0)) / 1_000)
  const shortest = Math.min(...gaps)
  process.stdout.write(
    `[obs] seed ${seed}: ${disturbances.length} disturbances, ${switches.length} switches, the shortest time between two ${shortest.toFixed(1)} s\n`,
  )
  expect(switches.length).toBeGreaterThan(0)
  // The clocks of both programs differ by the time that OBS takes for a switch.
  expect(shortest).toBeGreaterThan(1.9)
  expect(switches.length).toBeLessThanOrEqual(disturbances.length * 2)
})
