/**
 * A newcomer's first stream, as docs/relays.md describes it: `npm start`, and the commands that it prints, with real
 * programs.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectSuccess } from '../../client/api-error.ts'
import { bearer, createApiClient } from '../../client/client.ts'
import { nodeArguments } from '../../platform/launcher.ts'
import { eventually } from '../relay-node/running.ts'
import { makeFolder, removeFolder, temporaryFolder } from '../support/folders.ts'
import { endAll, Stack } from '../support/stack.ts'
import { signIn, visitor } from './browser.ts'

interface Secrets {
  readonly demo: { readonly email: string; readonly password: string }
}

const run = promisify(execFile)
let dataDir: string
let stack: Stack

beforeAll(async () => {
  dataDir = await makeFolder()
  stack = await new Stack(dataDir).ready()
})

afterAll(async () => {
  await endAll(dataDir)
  await removeFolder(dataDir)
})

test('the pasted lines start a relay, publish a test pattern to it and play it, and the relays page shows the stream', async () => {
  const { page } = await visitor()
  const { demo } = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8')) as Secrets
  await page.goto(`${stack.site}/login`)
  await signIn(page, demo)
  await page.waitForURL(`${stack.site}/relays`)

  const report = join(await temporaryFolder(), 'ffplay.log')
  const line = (pattern: RegExp) => stack.output.split('\n').find((text) => pattern.test(text)) ?? ''
  const [signInLine = '', start = '', show = '', stop = ''] = stack.commandLines
  const untilShown = (text: string) => `for i in $(seq 40); do ${show} | grep -q '${text}' && break; sleep 0.5; done`
  const startAndPublish = [signInLine, start, untilShown('"state":"active"'), line(/^ffmpeg /), 'sleep 1']
  const play = `FFREPORT=file=${report}:level=32 ${line(/^ffplay /)} &`
  // The page shows the stream while the script waits.
  const showAndStop = [untilShown('"publishing":true'), show, 'sleep 6', stop, 'kill $!; wait']
  const pasted = run('bash', ['-c', [...startAndPublish, play, ...showAndStop].join('\n')], {
    // ffplay without a screen.
    env: { PATH: '/usr/bin:/bin', SDL_VIDEODRIVER: 'dummy', SDL_AUDIODRIVER: 'dummy' },
  })

  const [{ stdout }] = await Promise.all([pasted, page.locator('[data-signal="phone"] [data-bitrate]').waitFor()])
  expect(await readFile(report, 'utf8')).toMatch(/Stream #0:0.*Video: mpeg2video.*1280x720/)
  const [, kbps] = /"ingest":\{"publishing":true,"bitrate_kbps":(\d+),"links":1/.exec(stdout) ?? []
  expect(Number(kbps)).toBeGreaterThan(500)
})

/** The history has the time with video, to the second, and an average of at most the peak. */
async function expectMeasured(output: string): Promise<void> {
  const { demo } = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8')) as Secrets
  const api = createApiClient({ baseUrl: stack.api })
  const { cp_access_jwt: token } = expectSuccess(await api.POST('/api/v1/auth/login', { body: demo }), 'The sign-in')
  const user = createApiClient({ baseUrl: stack.api, headers: bearer(token) })
  const readDemo = async () => {
    const reply = await user.GET('/api/v1/relay/sessions', { params: { query: { connection_id: 'demo', limit: 1 } } })
    return expectSuccess(reply, 'The history').sessions[0]
  }
  const [, shown = ''] = /test pattern ended {2}\(took (\d+) ms/.exec(output) ?? []
  const streamedSeconds = Number(shown) / 1000
  // The relay states its totals once more when it ends, which is after the reply to the stop.
  const session = await eventually(readDemo, (latest) => (latest?.seconds_publishing ?? 0) > streamedSeconds - 3)
  expect(session?.seconds_publishing).toBeLessThanOrEqual(streamedSeconds)
  expect(session?.average_bitrate_kbps).toBeGreaterThan(500)
  expect(session?.average_bitrate_kbps).toBeLessThanOrEqual(session?.peak_bitrate_kbps ?? 0)
}

test('the demo publishes a test pattern, plays it and ends its programs', async () => {
  const { stdout } = await run(process.execPath, [...nodeArguments('cli/demo.ts'), '--seconds', '3'], {
    env: { PATH: '/usr/bin:/bin', SVC_DATA_DIR: dataDir },
  })
  expect(stdout).toMatch(/the first frame was played \d+\.\d s after the start of the publisher/)
  expect(stdout).toMatch(/the relay receives [1-9]\d+ kbit\/s, the player has received .* decoded [1-9]\d* frames/)
  expect(stdout).toMatch(/GET \/relay\/active shows a stream of [1-9]\d+ kbit\/s, links: 1/)
  expect(stdout).toMatch(/relay stopped: stopped \(stop_requested\)/)
  await expectMeasured(stdout)
  const { stdout: processes } = await run('ps', ['-eo', 'args'])
  const [, token] = /streamid=publish\/live\/(\w+)/.exec(stdout) ?? []
  expect(processes).not.toContain(`live/${token}`)
})

test('a demo that is interrupted while it streams ends its programs and stops the relay', async () => {
  const demo = run(process.execPath, [...nodeArguments('cli/demo.ts'), '--seconds', '60'], {
    env: { PATH: '/usr/bin:/bin', SVC_DATA_DIR: dataDir },
  })
  demo.child.stdout?.on('data', (text: string) => {
    if (text.includes('the first frame was played')) demo.child.kill('SIGINT')
  })
  const failure = await demo.then(
    () => undefined,
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
  expect(failure?.stderr).toContain('The stream was interrupted')
  expect(failure?.stdout).toContain('relay stopped: stopped')
})
