/**
 * `npm start`, which the tests share: after starts that were killed, stopped and out of disk space on the same folder,
 * one that is used and killed, and one that takes over from it. They run in this order.
 */

import { execFile } from 'node:child_process'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeArguments } from '../../platform/launcher.ts'
import { makeFolder, removeFolder, temporaryFolder } from '../support/folders.ts'
import { findFreePort } from '../support/ports.ts'
import { untilWell } from '../support/programs.ts'
import { eventually } from '../support/relays.ts'
import { Browser } from '../support/site-browser.ts'
import { commandsOf, endAll, paste, processesOf, type SessionReply, Stack, untilRelayState } from '../support/stack.ts'
import { runSvc } from '../support/svc.ts'

const run = promisify(execFile)

let dataDir: string
let variables: Record<string, string>
let stack: Stack

beforeAll(async () => {
  dataDir = await makeFolder()
  const ports = await Promise.all(Array.from({ length: 5 }, findFreePort))
  const names = [
    'SVC_EMBEDDED_PG_PORT',
    'SVC_EMBEDDED_TEMPORAL_PORT',
    'SVC_EMBEDDED_TEMPORAL_UI_PORT',
    'PORT',
    'SVC_SITE_PORT',
  ]
  variables = Object.fromEntries(names.map((name, index) => [name, String(ports[index])]))
})

afterAll(async () => {
  await endAll(dataDir)
  await removeFolder(dataDir)
})

/** Kills a start as soon as it has started the program, before that is ready. */
async function killAt(program: string): Promise<void> {
  const killed = new Stack(dataDir, { variables })
  await eventually(async () => (await commandsOf(dataDir)).some((command) => command.includes(program)), Boolean)
  await killed.end('SIGKILL')
}

describe('on the same folder and ports', () => {
  test('a start that is killed during the creation of the database hinders no later one', () => killAt('bin/initdb -D'))

  // Space for 1 KiB per file, for the first files of initdb, and for all but the write-ahead log.
  test.each([2, 100, 20_000])(
    'a start on a full disk explains the problem: %i blocks per file',
    async (fileBlocksMax) => {
      const full = new Stack(dataDir, { variables, fileBlocksMax })
      expect(await full.ended()).toBe(1)
      expect(full.output).toMatch(
        /There is not enough disk space .* Free some space there, or set SVC_DATA_DIR to another folder/,
      )
      expect(await commandsOf(dataDir)).toEqual([])
    },
  )

  test('starts that are killed at any later step hinder no later one', async () => {
    for (const program of ['bin/postgres -D', ' start-dev ', '/activities/worker/worker.ts', '/web/server.ts'])
      await killAt(program)
  })

  test('a stop during a start leaves no process and no lock', async () => {
    const stopped = new Stack(dataDir, { variables })
    await stopped.waitFor('Starting Temporal')
    expect(await stopped.end('SIGINT')).toBe(0)
    expect(await commandsOf(dataDir)).toEqual([])
    expect((await readdir(dataDir)).filter((name) => name.includes('.lock.'))).toEqual([])
  })

  test('the next start succeeds', async () => {
    stack = await new Stack(dataDir, { variables }).ready()
    expect(stack.api).toBe(`http://localhost:${variables.PORT}`)
  })
})

describe('while it runs', () => {
  test('the demo account can sign in at the site, which holds no secret', async () => {
    const { demo } = JSON.parse(await readFile(`${dataDir}/secrets.json`, 'utf8')) as { demo: Record<string, string> }
    const browser = new Browser(stack.site)
    const login = await browser.open('/login')
    expect([login.path, login.status]).toEqual(['/login', 200])
    const page = await browser.submit(login, '/login', { email: demo.email ?? '', password: demo.password ?? '' })
    expect([page.path, page.status]).toEqual(['/relays', 200])
    const site = (await processesOf(dataDir)).find(({ command }) => command.endsWith('/web/server.ts'))
    const environment = await readFile(`/proc/${site?.pid}/environ`, 'utf8')
    expect(environment).toContain('SVC_API_URL=http://127.0.0.1:')
    expect(environment).not.toMatch(/SECRET|KEY|PASSWORD|DATABASE|TEMPORAL/)
  })

  test('the mailbox that it names shows the mail of the demo account', async () => {
    const { demo } = JSON.parse(await readFile(`${dataDir}/secrets.json`, 'utf8')) as { demo: Record<string, string> }
    const mailbox = await new Browser(stack.site).open('/mailbox')
    expect([mailbox.status, mailbox.name]).toEqual([200, 'mailbox'])
    expect(mailbox.text).toContain(demo.email)
    expect(await readFile(join(dataDir, 'logs', 'api.log'), 'utf8')).toContain('"subject":"verify_email"')
  })

  test('links for plugins point to the site', async () => {
    const started = await fetch(`${stack.api}/api/v1/auth/plugin/login/start`, { method: 'POST' })
    const { authorize_url } = (await started.json()) as { authorize_url: string }
    expect(authorize_url).toMatch(new RegExp(`^${stack.site}/login\\?attempt=`))
    const running = JSON.parse(await readFile(`${dataDir}/running.json`, 'utf8')) as unknown
    expect(running).toMatchObject({ api: stack.api, site: stack.site })
  })

  test('the demo runs from the sign-in to the history of transitions, also without programs for video', async () => {
    const { stdout } = await run(process.execPath, nodeArguments('cli/demo.ts'), {
      env: { PATH: await temporaryFolder(), SVC_DATA_DIR: dataDir },
      timeout: 60_000,
    })
    expect(stdout).toMatch(/the plugin polled: complete/)
    expect(stdout).toMatch(/relay active \d+ ms after the request/)
    expect(stdout).toMatch(/test pattern skipped: .* install it with: .*srt.* ffmpeg/)
    expect(stdout).toMatch(/provisioning → active +relay_ready/)
    expect(stdout).toMatch(/grace +→ stopped +stop_requested +by user/)
  })

  test('subscriptions can be compared with the billing provider without any variable', async () => {
    const reconciled = await runSvc(['billing', 'reconcile', '--dry-run'], { SVC_DATA_DIR: dataDir })
    expect(reconciled).toMatchObject({ code: 0, stderr: expect.stringMatching(/^Subscriptions at sandbox: 0\./) })
    expect((await stat(`${dataDir}/running.json`)).mode & 0o777).toBe(0o600)
  })

  test('the fleet can be shown and compared with the processes of this machine without any variable', async () => {
    const fleet = (...words: string[]) => runSvc(['fleet', ...words], { SVC_DATA_DIR: dataDir })
    expect((await fleet('status')).stdout).toMatch(/^local +local +50 .* ok at /m)
    expect(await fleet('compare', '--dry-run')).toMatchObject({
      stdout: expect.stringMatching(/^local +\d+ +\d+ +\S+ +compared$/m),
      stderr: expect.stringMatching(/^Dry run: nothing was changed/),
    })
  })

  test('an account that signed up at the site can be granted a plan by its address', async () => {
    const email = 'new-user@example.com'
    const grant = (...words: string[]) => runSvc(['users', 'grant', email, ...words], { SVC_DATA_DIR: dataDir })
    expect(await grant()).toMatchObject({ code: 3, stderr: expect.stringContaining('sign up with it first') })
    const browser = new Browser(stack.site)
    await browser.submit(await browser.open('/sign-up'), '/sign-up', { email, password: 'a few words in a row' })
    const granted = await grant('--addons', '1')
    expect(granted).toMatchObject({ code: 0, stdout: expect.stringMatching(/^plan +paid, active$/m) })
    expect((await browser.open('/account')).data('relays-in-use')).toEqual(['0/2'])
  })

  test('a second start is refused with the process that uses the folder', async () => {
    const second = new Stack(dataDir)
    expect(await second.ended()).toBe(1)
    expect(second.output).toMatch(/is in use by another npm start \(process \d+\)\. Stop it first/)
    expect((await fetch(`${stack.api}/health`)).status).toBe(200)
  })

  test('an API that crashes is restarted', async () => {
    const api = (await processesOf(dataDir)).find(({ command }) => command.endsWith('/api/server.ts'))
    process.kill(api?.pid ?? 0, 'SIGKILL')
    await stack.waitFor(/! api ended by SIGKILL; restarting in 0.5 s/)
    await untilWell(stack.api)
  })
})

test('the next start ends what a killed start left running, and keeps its data', async () => {
  const [signIn = '', start = '', show = ''] = stack.commandLines
  const { session } = JSON.parse(await paste(signIn, start)) as SessionReply
  await untilRelayState(stack, session?.session_id ?? '', 'active')
  await stack.end('SIGKILL')
  expect(await commandsOf(dataDir)).toContainEqual(expect.stringContaining('postgres'))

  // The same account, the same ports for health reports and links, and the same relay.
  const second = await new Stack(dataDir).ready()
  expect(second.output).toContain('! Ended postgres, which a killed start had left running')
  expect(second.site).toBe(stack.site)
  expect(second.commandLines).toEqual(stack.commandLines)
  const found = JSON.parse(await paste(signIn, show)) as SessionReply
  expect(found.session?.session_id).toBe(session?.session_id)
  stack = second
})

test('SIGTERM ends all processes and live relays', async () => {
  expect(await commandsOf(dataDir)).toContainEqual(expect.stringContaining('web/server.ts'))
  expect(await commandsOf(dataDir)).toContainEqual(expect.stringContaining('relay-node/main.ts'))
  expect(await stack.end('SIGTERM')).toBe(0)
  expect(await commandsOf(dataDir)).toEqual([])
  expect(stack.output).not.toContain('did not stop cleanly')
  expect(stack.output).toMatch(/✔ site stopped.*✔ api stopped.*✔ worker stopped.*✔ postgres stopped/s)
})
