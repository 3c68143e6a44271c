/**
 * Scene switchers of every kind follow the streams of a real relay in a real OBS: live, below a bitrate, and gone. The
 * switcher is an imitation of the usual one.
 */
import { beforeAll, expect, vi } from 'vitest'
import { eventually } from '../support/eventually.ts'
import type { PictureStream } from '../support/picture-stream.ts'
import { type SwitcherTypeName, startSceneSwitcher, switcherTypes } from '../support/scene-switcher.ts'
import { type ObsService, startObsService } from './obs-service.ts'
import { testInRealTime } from './real-time.ts'

const lowKbps = 800
const [goodKbps, weakKbps] = [1_500, 500]

vi.setConfig({ testTimeout: 240_000 })

let service: ObsService
beforeAll(async () => {
  service = await startObsService()
}, 180_000)

/** What a user types into the switcher: the path form, whose publisher is the play key. */
async function addressOf(): Promise<{ readonly statsUrl: string; readonly publisher: string }> {
  const { connect } = await service.active()
  const publisher = /streamid=play\/live\/([\w-]+)/.exec(connect?.player_url ?? '')?.[1] ?? ''
  return { publisher, statsUrl: `${connect?.stats_url}/${publisher}` }
}

/** Does something to the stream. Resolves with the seconds until OBS has the scene on air. */
async function secondsUntil(scene: string, act: () => unknown): Promise<number> {
  const from = Date.now()
  await act()
  await eventually(service.obs.scene, (present) => present === scene, 40)
  return (Date.now() - from) / 1000
}

async function follow(type: SwitcherTypeName): Promise<void> {
  const { call } = service.obs
  await call('SetCurrentProgramScene', { sceneName: 'LIVE' })
  const switchTo = (sceneName: string) => call('SetCurrentProgramScene', { sceneName })
  const switcher = startSceneSwitcher({ type, ...(await addressOf()), lowKbps, switchTo })
  let stream: PictureStream | undefined
  try {
    const seconds = {
      withoutStream: await secondsUntil('BRB', () => {}),
      started: await secondsUntil('LIVE', async () => {
        stream = await service.publish({ kbps: goodKbps })
      }),
      weak: await secondsUntil('LOW', () => stream?.setKbps(weakKbps)),
      recovered: await secondsUntil('LIVE', () => stream?.setKbps(goodKbps)),
      vanished: await secondsUntil('BRB', () => stream?.kill()),
      back: await secondsUntil('LIVE', () => stream?.start()),
      stopped: await secondsUntil('BRB', () => stream?.stop()),
    }
    const shown = Object.entries(seconds).map(([event, value]) => `${event} ${value.toFixed(1)} s`)
    process.stdout.write(`[obs] ${type} switched: ${shown.join(', ')}\n`)
    // Of five verdicts, a second apart; a publisher that vanishes is gone for the relay after SRT's idle time.
    expect(seconds.started).toBeLessThan(8)
    expect(seconds.weak).toBeLessThan(12)
    expect(seconds.recovered).toBeLessThan(12)
    expect(seconds.vanished).toBeLessThan(16)
    expect(seconds.back).toBeLessThan(8)
    expect(seconds.stopped).toBeLessThan(12)
  } finally {
    await switcher.end()
    await stream?.stop()
  }
}

for (const type of Object.keys(switcherTypes) as SwitcherTypeName[])
  testInRealTime(`a switcher of the type ${type} shows a stream, its low bitrate and its end in OBS`, () =>
    follow(type),
  )
