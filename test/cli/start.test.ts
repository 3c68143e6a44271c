import { execFile } from 'node:child_process'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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

/** Looks until the relay is in that state. */
async function untilState(stack: Stack, jwt: string, state: string): Promise<void> {
  const url = `${stack.api}/api/v1/relay/active?connection_id=demo`
  let seen: unknown
  for (let look = 0; look < 40; look++) {
    const response = await fetch(url, { headers: { authorization: `Bearer ${jwt}` } })
    const { session } = (await response.json()) as SessionReply
    if (session?.state === state) return
    seen = session?.state
    await sleep(500)
  }
  throw new Error(`the relay is ${seen}, not ${state}`)
}

const names = async (dataDir: string) => (await processesOf(dataDir)).map(({ command }) => command)

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

  test('the command lines that it shows start, show and stop a relay when they are pasted', async () => {
    const [signIn = '', start = '', look = '', stop = ''] = stack.commandLines
    const started = JSON.parse(await paste(signIn, start)) as SessionReply
    expect(started.session?.state).toBe('provisioning')
    const jwt = (await paste(signIn, 'echo $JWT')).trim()
    await untilState(stack, jwt, 'active')
    expect(JSON.parse(await paste(`JWT=${jwt}`, look))).toMatchObject({ session: { state: 'active' } })
    expect(JSON.parse(await paste(`JWT=${jwt}`, stop))).toMatchObject({
      session: { session_id: started.session?.session_id, state: 'stopped' },
    })
  })

  test('the site lets the demo account in, and holds no secret itself', async () => {
    const { demo } = JSON.parse(await readFile(`${dataDir}/secrets.json`, 'utf8')) as { demo: Record<string, string> }
    const browser = new Browser(stack.site)
    const login = await browser.open('/')
    expect([login.path, login.status]).toEqual(['/login', 200])
    const page = await browser.submit(login, '/login', { email: demo.email ?? '', password: demo.password ?? '' })
    expect([page.path, page.status]).toEqual(['/relays', 200])
    const site = (await processesOf(dataDir)).find(({ command }) => command.endsWith('/web/server.ts'))
    const environment = await readFile(`/proc/${site?.pid}/environ`, 'utf8')
    expect(environment).toContain('SVC_API_URL=http://127.0.0.1:')
    expect(environment).not.toMatch(/SECRET|KEY|PASSWORD|DATABASE|TEMPORAL/)
  })

  test('links for plugins lead to the site', async () => {
    const started = await fetch(`${stack.api}/api/v1/auth/plugin/login/start`, { method: 'POST' })
    const { authorize_url } = (await started.json()) as { authorize_url: string }
    expect(authorize_url).toMatch(new RegExp(`^${stack.site}/login\\?attempt=`))
    const running = JSON.parse(await readFile(`${dataDir}/running.json`, 'utf8')) as unknown
    expect(running).toMatchObject({ api: stack.api, site: stack.site })
  })

  test('the demo takes a client from sign-in to the history of moves', async () => {
    const { stdout } = await run(process.execPath, ['--import', 'tsx', 'cli/demo.ts'], {
      env: { PATH: '/usr/bin:/bin', SVC_DATA_DIR: dataDir },
      timeout: 60_000,
    })
    expect(stdout).toMatch(/the plugin polled: complete/)
    expect(stdout).toMatch(/the relay is active, \d+ ms after it was asked for/)
    expect(stdout).toMatch(/provisioning → active +relay_ready/)
    expect(stdout).toMatch(/grace +→ stopped +stop_requested/)
  })

  test('what the billing provider’s list would change is asked without any variable', async () => {
    const { stdout } = await run(process.execPath, ['--import', 'tsx', 'cli/reconcile.ts', '--dry-run'], {
      env: { PATH: '/usr/bin:/bin', SVC_DATA_DIR: dataDir },
      timeout: 30_000,
    })
    expect(stdout).toMatch(/Subscriptions at sandbox: 0\./)
    expect((await stat(`${dataDir}/running.json`)).mode & 0o777).toBe(0o600)
  })

  test('who signed up at the site is given a plan by its address', async () => {
    const email = 'somebody@example.com'
    const grant = (...args: string[]) =>
      run(process.execPath, ['--import', 'tsx', 'cli/grant.ts', ...args], {
        env: { PATH: '/usr/bin:/bin', SVC_DATA_DIR: dataDir },
      })
    await expect(grant(email)).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('sign up first') })
    const browser = new Browser(stack.site)
    await browser.submit(await browser.open('/sign-up'), '/sign-up', { email, password: 'a few words in a row' })
    expect((await grant(email, '--addons', '1')).stdout).toContain(`${email} has the paid plan now with add-ons: 1.`)
    expect((await browser.open('/account')).html).toContain('2 managed relays at once')
    await expect(grant(email, '--addons', '9')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^npm run grant/),
    })
  })

  test('a second start is refused and says which process is in its way', async () => {
    const second = new Stack(dataDir)
    expect(await second.ended()).toBe(1)
    expect(second.output).toMatch(/Another start \(process \d+\) is running on .*Stop it first/)
    expect((await fetch(`${stack.api}/health`)).status).toBe(200)
  })

  test('an API that crashes is started again', async () => {
    const api = (await processesOf(dataDir)).find(({ command }) => command.endsWith('/api/server.ts'))
    process.kill(api?.pid ?? 0, 'SIGKILL')
    await stack.waitFor(/! api ended by SIGKILL; it is started again in 0.5 s/)
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

test('SIGTERM ends everything, a live relay too', { timeout: startMillisMax }, async () => {
  const dataDir = await temporaryFolder()
  endAllAfterwards(dataDir)
  const stack = await new Stack(dataDir).ready()
  const [signIn = '', start = ''] = stack.commandLines
  await paste(signIn, start)
  await untilState(stack, (await paste(signIn, 'echo $JWT')).trim(), 'active')
  expect(await names(dataDir)).toContainEqual(expect.stringContaining('web/server.ts'))
  expect(await stack.end('SIGTERM')).toBe(0)
  expect(await names(dataDir)).toEqual([])
  expect(stack.output).not.toContain('did not stop cleanly')
  expect(stack.output).toMatch(/✔ site stopped.*✔ api stopped.*✔ worker stopped.*✔ postgres stopped/s)
})

test('what a killed start leaves behind is ended by the next one, which goes on with its data', {
  timeout: startMillisMax,
}, async () => {
  const dataDir = await temporaryFolder()
  endAllAfterwards(dataDir)
  const first = await new Stack(dataDir).ready()
  const [signIn = '', start = ''] = first.commandLines
  const begun = JSON.parse(await paste(signIn, start)) as SessionReply
  await first.end('SIGKILL')
  expect(await names(dataDir)).toContainEqual(expect.stringContaining('postgres'))

  const second = await new Stack(dataDir).ready()
  expect(second.output).toContain('! postgres of a killed start was still running; ended it')
  // The same account, the same ports for relays to report to and links to lead to, and the same relay.
  expect(second.site).toBe(first.site)
  expect(second.commandLines).toEqual(first.commandLines)
  const [, , look = ''] = second.commandLines
  const found = JSON.parse(await paste(signIn, look)) as SessionReply
  expect(found.session?.session_id).toBe(begun.session?.session_id)
  expect(await second.end('SIGINT')).toBe(0)
  expect(await names(dataDir)).toEqual([])
})

test('a first start that was killed at any step is no obstacle to the next one, on the same ports', {
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
  // As soon as each is there: none of them is ready yet.
  for (const command of [
    'bin/initdb -D',
    'bin/postgres -D',
    ' start-dev ',
    '/activities/worker/worker.ts',
    '/web/server.ts',
  ]) {
    const killed = new Stack(dataDir, { variables })
    await eventually(() => isRunning(command), Boolean, 60)
    await killed.end('SIGKILL')
  }
  const stack = await new Stack(dataDir, { variables }).ready()
  expect(stack.api).toBe(`http://localhost:${variables.PORT}`)
  expect(await stack.end('SIGINT')).toBe(0)
})

test('a first start without room says so, and the next one with room goes well', {
  timeout: startMillisMax,
}, async () => {
  const dataDir = await temporaryFolder()
  endAllAfterwards(dataDir)
  // Room for 1 KiB a file, for initdb's first files, and for all but its log of changes.
  for (const fileBlocksMax of [2, 100, 20_000]) {
    const full = new Stack(dataDir, { fileBlocksMax })
    expect([fileBlocksMax, await full.ended()]).toEqual([fileBlocksMax, 1])
    expect(full.output).toMatch(
      /There is not enough room .* Free some space there, or set SVC_DATA_DIR to another folder/,
    )
    expect(await names(dataDir)).toEqual([])
  }
  const stack = await new Stack(dataDir).ready()
  expect(await stack.end('SIGINT')).toBe(0)
})

test('a data folder that is a file is refused with a way out', async () => {
  const file = join(await temporaryFolder(), 'file')
  await writeFile(file, 'something')
  for (const dataDir of [file, join(file, 'below', 'it')]) {
    const stack = new Stack(dataDir)
    expect(await stack.ended()).toBe(1)
    expect(stack.output).toContain(`${file} is not a folder, so the data folder ${dataDir} can't be made. Move it away`)
  }
  expect(await readFile(file, 'utf8')).toBe('something')
})

test('a data folder where no user can write is refused with a way out', async () => {
  const stack = new Stack('/sys/relay-control-plane')
  expect(await stack.ended()).toBe(1)
  expect(stack.output).toMatch(/(can't be written|read-only).*or set SVC_DATA_DIR to another folder/)
})

test('a stop in the middle of a start leaves nothing either', { timeout: startMillisMax }, async () => {
  const dataDir = await temporaryFolder()
  endAllAfterwards(dataDir)
  const stack = new Stack(dataDir)
  await stack.waitFor('Starting Temporal')
  expect(await stack.end('SIGINT')).toBe(0)
  expect(await names(dataDir)).toEqual([])
  expect((await readdir(dataDir)).filter((name) => name.startsWith('lock-'))).toEqual([])
})

test('the demo without a running service says how to start one', async () => {
  const demo = run(process.execPath, ['--import', 'tsx', 'cli/demo.ts'], {
    env: { PATH: '/usr/bin:/bin', SVC_DATA_DIR: await temporaryFolder() },
  })
  await expect(demo).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('Start it first: npm start') })
})
