import { execFile } from 'node:child_process'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeArguments } from '../../platform/launcher.ts'
import { makeFolder, removeFolder, temporaryFolder } from '../support/folders.ts'
import { eventually, freePort } from '../support/relays.ts'
import { Browser } from '../support/site-browser.ts'
import { endAll, endAllAfterwards, processesOf, Stack } from '../support/stack.ts'

const startMillisMax = 180_000
const run = promisify(execFile)

async function paste(...lines: string[]): Promise<string> {
  return (await run('bash', ['-c', lines.join('\n')], { timeout: 30_000 })).stdout
}

interface SessionReply {
  session: { session_id: string; state: string } | null
}

/** Polls until the relay has the state. */
async function untilState(stack: Stack, jwt: string, state: string): Promise<void> {
  const url = `${stack.api}/api/v1/relay/active?connection_id=demo`
  let last: unknown
  for (let poll = 0; poll < 40; poll++) {
    const response = await fetch(url, { headers: { authorization: `Bearer ${jwt}` } })
    const { session } = (await response.json()) as SessionReply
    if (session?.state === state) return
    last = session?.state
    await sleep(500)
  }
  throw new Error(`the relay is ${last}, not ${state}`)
}

const commands = async (dataDir: string) => (await processesOf(dataDir)).map(({ command }) => command)

describe('on an empty folder', () => {
  let dataDir: string
  let stack: Stack

  beforeAll(async () => {
    dataDir = await makeFolder()
    stack = await new Stack(dataDir).ready()
  }, startMillisMax)

  afterAll(async () => {
    await endAll(dataDir)
    await removeFolder(dataDir)
  })

  test('the commands that it prints start, show and stop a relay', async () => {
    const [signIn = '', start = '', show = '', stop = ''] = stack.commandLines
    const started = JSON.parse(await paste(signIn, start)) as SessionReply
    expect(started.session?.state).toBe('provisioning')
    const jwt = (await paste(signIn, 'echo $JWT')).trim()
    await untilState(stack, jwt, 'active')
    expect(JSON.parse(await paste(`JWT=${jwt}`, show))).toMatchObject({ session: { state: 'active' } })
    expect(JSON.parse(await paste(`JWT=${jwt}`, stop))).toMatchObject({
      session: { session_id: started.session?.session_id, state: 'stopped' },
    })
  })

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
    const { stdout } = await run(process.execPath, [...nodeArguments('cli/reconcile.ts'), '--dry-run'], {
      env: { PATH: '/usr/bin:/bin', SVC_DATA_DIR: dataDir },
      timeout: 30_000,
    })
    expect(stdout).toMatch(/Subscriptions at sandbox: 0\./)
    expect((await stat(`${dataDir}/running.json`)).mode & 0o777).toBe(0o600)
  })

  test('the fleet can be shown and compared with the processes of this machine without any variable', async () => {
    const fleet = (...args: string[]) =>
      run(process.execPath, [...nodeArguments('cli/fleet.ts'), ...args], {
        env: { PATH: '/usr/bin:/bin', SVC_DATA_DIR: dataDir },
        timeout: 30_000,
      })
    expect((await fleet('status')).stdout).toMatch(/^local +local +50 .* ok at /m)
    expect((await fleet('reconcile', '--dry-run')).stdout).toMatch(
      /^local: \d+ listed, [\s\S]*\nDry run: nothing was changed/,
    )
  })

  test('an account that signed up at the site can be granted a plan by its address', async () => {
    const email = 'new-user@example.com'
    const grant = (...args: string[]) =>
      run(process.execPath, [...nodeArguments('cli/grant.ts'), ...args], {
        env: { PATH: '/usr/bin:/bin', SVC_DATA_DIR: dataDir },
      })
    await expect(grant(email)).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('Sign up first') })
    const browser = new Browser(stack.site)
    await browser.submit(await browser.open('/sign-up'), '/sign-up', { email, password: 'a few words in a row' })
    expect((await grant(email, '--addons', '1')).stdout).toContain(`${email} now has the paid plan with 1 add-on.`)
    expect((await browser.open('/account')).data('relays-in-use')).toEqual(['0/2'])
    await expect(grant(email, '--addons', '9')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Usage: npm run grant/),
    })
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
    let status = 0
    for (let attempt = 0; attempt < 60 && status !== 200; attempt++) {
      await sleep(250)
      status = await fetch(`${stack.api}/health`).then(
        (response) => response.status,
        () => 0,
      )
    }
    expect(status).toBe(200)
  })
})

test('SIGTERM ends all processes and live relays', { timeout: startMillisMax }, async () => {
  const dataDir = await temporaryFolder()
  endAllAfterwards(dataDir)
  const stack = await new Stack(dataDir).ready()
  const [signIn = '', start = ''] = stack.commandLines
  await paste(signIn, start)
  await untilState(stack, (await paste(signIn, 'echo $JWT')).trim(), 'active')
  expect(await commands(dataDir)).toContainEqual(expect.stringContaining('web/server.ts'))
  expect(await stack.end('SIGTERM')).toBe(0)
  expect(await commands(dataDir)).toEqual([])
  expect(stack.output).not.toContain('did not stop cleanly')
  expect(stack.output).toMatch(/✔ site stopped.*✔ api stopped.*✔ worker stopped.*✔ postgres stopped/s)
})

test('the next start ends what a killed start left running, and keeps its data', {
  timeout: startMillisMax,
}, async () => {
  const dataDir = await temporaryFolder()
  endAllAfterwards(dataDir)
  const first = await new Stack(dataDir).ready()
  const [signIn = '', start = ''] = first.commandLines
  const started = JSON.parse(await paste(signIn, start)) as SessionReply
  await first.end('SIGKILL')
  expect(await commands(dataDir)).toContainEqual(expect.stringContaining('postgres'))

  const second = await new Stack(dataDir).ready()
  expect(second.output).toContain('! Ended postgres, which a killed start had left running')
  // The same account, the same ports for health reports and links, and the same relay.
  expect(second.site).toBe(first.site)
  expect(second.commandLines).toEqual(first.commandLines)
  const [, , show = ''] = second.commandLines
  const found = JSON.parse(await paste(signIn, show)) as SessionReply
  expect(found.session?.session_id).toBe(started.session?.session_id)
  expect(await second.end('SIGINT')).toBe(0)
  expect(await commands(dataDir)).toEqual([])
})

test('a start succeeds on the same ports after starts that were killed at any step', {
  timeout: startMillisMax,
}, async () => {
  const dataDir = await temporaryFolder()
  endAllAfterwards(dataDir)
  const ports = await Promise.all(Array.from({ length: 5 }, freePort))
  const names = [
    'SVC_EMBEDDED_PG_PORT',
    'SVC_EMBEDDED_TEMPORAL_PORT',
    'SVC_EMBEDDED_TEMPORAL_UI_PORT',
    'PORT',
    'SVC_SITE_PORT',
  ]
  const variables = Object.fromEntries(names.map((name, index) => [name, String(ports[index])]))
  const isRunning = async (command: string) =>
    (await processesOf(dataDir)).some((entry) => entry.command.includes(command))
  // Killed as soon as the process exists, before it is ready.
  for (const command of [
    'bin/initdb -D',
    'bin/postgres -D',
    ' start-dev ',
    '/activities/worker/worker.ts',
    '/web/server.ts',
  ]) {
    const killed = new Stack(dataDir, { variables })
    await eventually(() => isRunning(command), Boolean)
    await killed.end('SIGKILL')
  }
  const stack = await new Stack(dataDir, { variables }).ready()
  expect(stack.api).toBe(`http://localhost:${variables.PORT}`)
  expect(await stack.end('SIGINT')).toBe(0)
})

test('a start on a full disk explains the problem, and the next start with free space succeeds', {
  timeout: startMillisMax,
}, async () => {
  const dataDir = await temporaryFolder()
  endAllAfterwards(dataDir)
  // Space for 1 KiB per file, for the first files of initdb, and for all but the write-ahead log.
  for (const fileBlocksMax of [2, 100, 20_000]) {
    const full = new Stack(dataDir, { fileBlocksMax })
    expect([fileBlocksMax, await full.ended()]).toEqual([fileBlocksMax, 1])
    expect(full.output).toMatch(
      /There is not enough disk space .* Free some space there, or set SVC_DATA_DIR to another folder/,
    )
    expect(await commands(dataDir)).toEqual([])
  }
  const stack = await new Stack(dataDir).ready()
  expect(await stack.end('SIGINT')).toBe(0)
})

test('a data folder that is a file is refused with the way out', async () => {
  const file = join(await temporaryFolder(), 'file')
  await writeFile(file, 'something')
  for (const dataDir of [file, join(file, 'below', 'it')]) {
    const stack = new Stack(dataDir)
    expect(await stack.ended()).toBe(1)
    expect(stack.output).toContain(
      `${file} is not a folder, so the data folder ${dataDir} can't be created. Move it away`,
    )
  }
  expect(await readFile(file, 'utf8')).toBe('something')
})

test('a data folder that is not writable is refused with the way out', async () => {
  const stack = new Stack('/sys/relay-control-plane')
  expect(await stack.ended()).toBe(1)
  expect(stack.output).toMatch(/(can't be written|read-only).*or set SVC_DATA_DIR to another folder/)
})

test('a stop during a start leaves no process and no lock', { timeout: startMillisMax }, async () => {
  const dataDir = await temporaryFolder()
  endAllAfterwards(dataDir)
  const stack = new Stack(dataDir)
  await stack.waitFor('Starting Temporal')
  expect(await stack.end('SIGINT')).toBe(0)
  expect(await commands(dataDir)).toEqual([])
  expect((await readdir(dataDir)).filter((name) => name.includes('.lock.'))).toEqual([])
})

test('the demo without a running service explains how to start one', async () => {
  const demo = run(process.execPath, nodeArguments('cli/demo.ts'), {
    env: { PATH: '/usr/bin:/bin', SVC_DATA_DIR: await temporaryFolder() },
  })
  await expect(demo).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('Start it first: npm start') })
})
