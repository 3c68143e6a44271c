/** `npm start` and an OBS with the script that the site offers, whose user signs in with a browser of HTTP requests. */
import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { relayFolderOf } from '../../providers/relay/local-relays.ts'
import { atEnd } from '../support/at-end.ts'
import { makeFolder, removeFolder } from '../support/folders.ts'
import { startObs } from '../support/obs.ts'
import { findFreePort } from '../support/ports.ts'
import { relayProcesses } from '../support/relays.ts'
import { Browser } from '../support/site-browser.ts'
import { CookieJar } from '../support/site-cookies.ts'
import { endAll, Stack } from '../support/stack.ts'
import { signInToDemo } from './demo-account.ts'

const stackSettings = {
  SVC_REGIONS: JSON.stringify([{ region: 'local', display_name: 'Local', provider: 'local', capacity: 20 }]),
  SVC_RATE_LIMITS: 'relay_start=1000,relay_active=10000,relay_stop=1000,relay_history=1000',
}
/** Of the servers that otherwise try the same port first. */
const portVariables = ['PORT', 'SVC_SITE_PORT', 'SVC_EMBEDDED_TEMPORAL_PORT', 'SVC_EMBEDDED_TEMPORAL_UI_PORT']

/** What a user chooses in the script's properties. */
const scriptSettings = {
  connection: 'default',
  source: 'Relay stream',
  starts: true,
  stops: true,
  switches: true,
  scene_live: 'LIVE',
  scene_weak: 'LOW',
  scene_back: 'BRB',
}
export const sourceName = scriptSettings.source

export type ScriptService = Awaited<ReturnType<typeof startScriptService>>

/** Starts everything, and ends it after the tests of the file. */
export async function startScriptService() {
  const dataDir = await makeFolder('obs-script-')
  atEnd(async () => {
    await endAll(dataDir)
    await removeFolder(dataDir)
  })
  const ports = Object.fromEntries(
    await Promise.all(portVariables.map(async (name) => [name, `${await findFreePort()}`] as const)),
  )
  const stack = await new Stack(dataDir, { variables: { ...stackSettings, ...ports } }).ready()
  const script = join(dataDir, 'relay-control.py')
  await writeFile(script, await (await fetch(`${stack.site}/downloads/relay-control.py`)).text())
  // The browser of the system: it writes down what it is asked to open.
  const [browser, opened] = [join(dataDir, 'browser'), join(dataDir, 'opened')]
  await writeFile(browser, `#!/bin/sh\nprintf '%s' "$1" > ${opened}.new && mv ${opened}.new ${opened}\n`)
  await chmod(browser, 0o700)
  const obs = await startObs({
    scripts: [{ path: script, settings: scriptSettings }],
    variables: { BROWSER: `${browser} %s` },
  })
  const press = (action: string) => obs.call('TriggerHotkeyByName', { hotkeyName: `relay_control.${action}` })
  const user = await signInToDemo(stack, dataDir)
  return {
    dataDir,
    stack,
    obs,
    user,
    press,
    /** The lines of the script in the log of OBS. */
    scriptLines: async () =>
      (await obs.logText()).split('\n').filter((line) => line.includes('[Python: relay-control.py]')),
    async killRelay(): Promise<void> {
      const { instance_id } = await user.untilSession((session) => session?.state === 'active', 100)
      const relay = relayProcesses(dataDir).find(({ instanceId }) => instanceId === instance_id)
      if (!relay) throw new Error(`${instance_id} has no process`)
      process.kill(relay.pid, 'SIGKILL')
    },
    active: () => user.untilSession((session) => session?.state === 'active', 100),
    /** When relays have admitted publishers, in milliseconds since 1970. */
    async admissions(): Promise<number[]> {
      const folder = relayFolderOf(dataDir)
      const logs = (await readdir(folder)).filter((name) => name.endsWith('.log'))
      const lines = await Promise.all(
        logs.map(async (name) => (await readFile(join(folder, name), 'utf8')).split('\n')),
      )
      return lines
        .flat()
        .filter((line) => /publish\w* connection admitted/.test(line))
        .map((line) => Date.parse((JSON.parse(line) as { time: string }).time))
        .toSorted((a, b) => a - b)
    },
    /** Presses "Sign in", and approves in the browser that the script opens. */
    async signIn(): Promise<void> {
      await rm(opened, { force: true })
      await press('sign_in')
      const url = await untilText(opened)
      const demo = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8')) as { demo: Credentials }
      await approve(stack, url, demo.demo)
    },
  }
}

interface Credentials {
  readonly email: string
  readonly password: string
}

async function untilText(path: string): Promise<string> {
  for (const until = Date.now() + 20_000; Date.now() < until; await sleep(50)) {
    const text = await readFile(path, 'utf8').catch(() => '')
    if (text !== '') return text
  }
  throw new Error('the script has opened no browser')
}

/** As a person in a browser: from the service to the site's pages, through sign-in and approval, and back to OBS. */
async function approve({ site }: Stack, url: string, { email, password }: Credentials): Promise<void> {
  const jar = new CookieJar()
  const request = async (address: string) => {
    const cookie = jar.headerFor(new URL(address), { strict: true })
    const response = await fetch(address, { redirect: 'manual', headers: cookie ? { cookie } : {} })
    jar.store(new URL(address), response.headers.getSetCookie())
    return response
  }
  const question = new URL((await request(url)).headers.get('location') ?? '')
  const browser = new Browser(site)
  const login = await browser.open(question.pathname)
  const asked = await browser.submit(login, '/login', { email, password })
  const decided = await browser.submit(asked, `${question.pathname}/approve`)
  const back = (await request(decided.continuesTo ?? '')).headers.get('location') ?? ''
  const { status } = await request(back)
  if (status !== 200) throw new Error(`the script has answered ${status} to ${new URL(back).pathname}`)
}
