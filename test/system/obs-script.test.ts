/** The script that the site offers, inside a real OBS. The tests follow each other in one OBS and one service. */
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { beforeAll, expect, test, vi } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { type PictureWatch, watchPicture } from '../support/obs-picture.ts'
import { type PictureStream, startPictureStream } from '../support/picture-stream.ts'
import { type ScriptService, sourceName, startScriptService } from './obs-script-service.ts'
import { testInRealTime } from './real-time.ts'

vi.setConfig({ testTimeout: 240_000 })

let service: ScriptService
let stream: PictureStream
let watch: PictureWatch

beforeAll(async () => {
  service = await startScriptService()
}, 180_000)

const print = (text: string) => process.stdout.write(`[obs] script: ${text}\n`)
const secondsSince = (at: number) => (Date.now() - at) / 1000

/** Resolves with the seconds from a moment until OBS has the scene on air. */
async function secondsUntil(scene: string, from = Date.now()): Promise<number> {
  await eventually(service.obs.scene, (present) => present === scene, 40)
  return secondsSince(from)
}

/** The stream runs, and its scene is on air. */
async function untilLive(): Promise<void> {
  stream.setKbps(goodKbps)
  stream.start()
  await secondsUntil('LIVE')
  // No switch follows another one sooner.
  await sleep(2_500)
}

const [goodKbps, weakKbps] = [4_000, 400]

/** The tokens that the script has stored until now. */
const refreshTokens = new Set<string>()

/** What the script has stored last, and where. */
async function readStored(): Promise<{ readonly path: string; readonly refreshToken: string }> {
  const folder = join(service.obs.home, '.config/relay-control')
  const [name = ''] = (await readdir(folder)).filter((each) => each.endsWith('.token'))
  const path = join(folder, name)
  const { refresh_token } = JSON.parse(await readFile(path, 'utf8')) as { refresh_token: string }
  return { path, refreshToken: refresh_token }
}

test('the picture is there within 10 s after the user signs in', async () => {
  const from = Date.now()
  await service.press('add_source')
  await service.signIn()
  stream = startPictureStream((await service.active()).connect?.srt_url ?? '', { kbps: goodKbps })
  watch = watchPicture(service.obs, sourceName)
  const seconds = await watch.untilFresh(from, 30)
  print(`sign-in to picture ${seconds.toFixed(1)} s, to the scene ${(await secondsUntil('LIVE', from)).toFixed(1)} s`)
  expect(seconds).toBeLessThanOrEqual(10)
  const { inputSettings } = await service.obs.call('GetInputSettings', { inputName: sourceName })
  expect(inputSettings).toMatchObject({
    is_local_file: false,
    input: expect.stringMatching(/^srt:\/\/.+\?streamid=play\/live\//),
    reconnect_delay_sec: 2,
    buffering_mb: 1,
    hw_decode: false,
    ffmpeg_options: 'analyzeduration=500000 probesize=50000',
  })
})

for (const [what, awaySeconds] of [
  ['for a moment', 0],
  ['for a while', 8],
] as const)
  testInRealTime(`a publisher that is killed ${what} is replaced by “be right back”, and comes back`, async () => {
    await untilLive()
    const diedAt = Date.now()
    await stream.kill()
    const lost = await secondsUntil('BRB', diedAt)
    await sleep(awaySeconds * 1_000)
    const startedAt = Date.now()
    stream.start()
    await secondsUntil('LIVE')
    const [backAt, admittedAt] = [Date.now(), (await service.admissions()).at(-1) ?? 0]
    const pictureAt = startedAt + (await watch.untilMadeAfter(startedAt, 10)) * 1_000
    const [afterAdmission, afterPicture] = [(backAt - admittedAt) / 1_000, (backAt - pictureAt) / 1_000]
    print(
      `be right back ${lost.toFixed(1)} s after the loss, live ${afterAdmission.toFixed(1)} s after the publisher was admitted and ${afterPicture.toFixed(1)} s after the picture`,
    )
    expect(lost).toBeLessThanOrEqual(3)
    expect(afterPicture).toBeLessThanOrEqual(2)
    // A stream has recovered after two seconds of good data.
    expect(afterAdmission).toBeLessThanOrEqual(4)
  })

testInRealTime('a weak stream has a scene of its own', async () => {
  await untilLive()
  const weakAt = Date.now()
  stream.setKbps(weakKbps)
  const weak = await secondsUntil('LOW', weakAt)
  await sleep(2_500)
  const goodAt = Date.now()
  stream.setKbps(goodKbps)
  print(`weak after ${weak.toFixed(1)} s, live again after ${(await secondsUntil('LIVE', goodAt)).toFixed(1)} s`)
  expect(weak).toBeLessThanOrEqual(5)
})

testInRealTime('a scene of the streamer’s own stays on air, whatever the stream does', async () => {
  await untilLive()
  const own = { sceneName: 'INTERVIEW' }
  await service.obs.call('CreateScene', own)
  await service.obs.call('SetCurrentProgramScene', own)
  try {
    const lines = (await service.scriptLines()).length
    await stream.kill()
    await eventually(service.scriptLines, (all) => all.slice(lines).some((line) => line.includes('is lost')))
    await sleep(1_000)
    expect(await service.obs.scene()).toBe('INTERVIEW')
  } finally {
    await service.obs.call('SetCurrentProgramScene', { sceneName: 'BRB' })
    await service.obs.call('RemoveScene', own)
  }
})

testInRealTime('a relay that is replaced is played again, from the scene “be right back”', async () => {
  await untilLive()
  const killedAt = Date.now()
  await service.killRelay()
  const away = await secondsUntil('BRB', killedAt)
  const back = await secondsUntil('LIVE', killedAt)
  // Before, OBS still has pictures of the former relay.
  const picture = 3 + (await watch.untilFresh(killedAt + 3_000, 30))
  print(
    `relay killed: be right back after ${away.toFixed(1)} s, picture after ${picture.toFixed(1)} s, live after ${back.toFixed(1)} s`,
  )
  expect(away).toBeLessThanOrEqual(10)
})

testInRealTime('OBS ends without delay, stops the relay, and continues it with the sign-in that it keeps', async () => {
  const { session_id } = await service.active()
  refreshTokens.add((await readStored()).refreshToken)
  const from = Date.now()
  await service.obs.restart('SIGINT')
  print(`OBS has ended and is ready again after ${secondsSince(from).toFixed(1)} s`)
  const reasons = async () =>
    (await service.user.history(session_id)).transitions.slice(-2).map(({ to, reason }) => `${to} (${reason})`)
  await eventually(reasons, (latest) => latest.join() === 'grace (stop_requested),active (start_requested)')
  await eventually(service.scriptLines, (lines) => lines.some((line) => line.includes('The relay is ready.')))
  await untilLive()
})

testInRealTime('no token is in the scene collection, in the log of OBS or in any file but its own', async () => {
  const { home, collectionText, logText } = service.obs
  const { path, refreshToken } = await readStored()
  refreshTokens.add(refreshToken)
  expect(refreshTokens.size).toBe(2)
  const { stdout: modes } = await promisify(execFile)('stat', ['-c', '%a', dirname(path), path])
  expect(modes).toBe('700\n600\n')
  const [collection, log] = [await collectionText(), await logText()]
  expect(collection).toContain('streamid=play/live/')
  // Access tokens are JWTs.
  for (const text of [collection, log]) {
    for (const token of refreshTokens) expect(text).not.toContain(token)
    expect(text).not.toMatch(/\beyJ[\w-]{10,}\.[\w-]+\.[\w-]+/)
  }
  const files = (await readdir(home, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const having = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(file.parentPath, file.name), 'latin1')
      return [...refreshTokens].some((token) => text.includes(token)) ? [join(file.parentPath, file.name)] : []
    }),
  )
  expect(having.flat()).toEqual([path])
})
