/** The examples of docs/plugin.md against `npm start`, in their order. The test is the user in the browser. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type ClientProject, makeClientProject } from '../support/client-package.ts'
import { makeFolder, removeFolder } from '../support/folders.ts'
import { findDifference, GuideShell, readSteps, type Step } from '../support/guide.ts'
import { findFreePort } from '../support/ports.ts'
import { eventually } from '../support/relays.ts'
import { Browser } from '../support/site-browser.ts'
import { endAll, Stack } from '../support/stack.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))
const steps = readSteps(await readFile(join(repository, 'docs/plugin.md'), 'utf8'))
const apiOfGuide = 'http://localhost:8080'

let dataDir: string
let folder: string
let stack: Stack
let shell: GuideShell
let project: ClientProject
let browser: Browser

beforeAll(async () => {
  ;[dataDir, folder] = await Promise.all([makeFolder(), makeFolder()])
  const names = ['SVC_EMBEDDED_PG_PORT', 'SVC_EMBEDDED_TEMPORAL_PORT', 'SVC_EMBEDDED_TEMPORAL_UI_PORT', 'PORT']
  const ports = await Promise.all([...names, 'SVC_SITE_PORT'].map(async (name) => [name, `${await findFreePort()}`]))
  // As in the guide.
  const limits = { SVC_RATE_LIMITS: 'relay_start=60,relay_active=600', SVC_TRIAL_SECONDS: '0' }
  const variables = { ...(Object.fromEntries(ports) as Record<string, string>), ...limits }
  ;[stack, project] = await Promise.all([new Stack(dataDir, { variables }).ready(), makeClientProject(folder)])
  shell = new GuideShell({ SVC_DATA_DIR: dataDir })
  browser = new Browser(stack.site)
  // The guide's `ws` is that of this repository, since a test needs no network.
  await mkdir(join(folder, 'node_modules/@types'))
  for (const name of ['ws', '@types/ws'])
    await symlink(join(repository, 'node_modules', name), join(folder, 'node_modules', name))
})

afterAll(async () => {
  shell?.end()
  await endAll(dataDir)
  await Promise.all([removeFolder(dataDir), removeFolder(folder)])
})

/** Opens the page of a login attempt, signs in where it asks for that, compares the code, and approves. */
async function approve(authorizeUrl: string, code: string): Promise<void> {
  const { pathname, search, origin } = new URL(authorizeUrl)
  expect(origin).toBe(stack.site)
  const { demo } = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8')) as { demo: Record<string, string> }
  const opened = await browser.open(pathname + search)
  const question = opened.hasForm('/login') ? await browser.submit(opened, '/login', demo) : opened
  expect(question.text).toContain(code)
  expect((await browser.submit(question, '/login/approve')).notice).toBe('approved')
}

async function runStep(step: Step): Promise<void> {
  if (step.kind === 'ts') await project.write(step.title, step.text)
  else if (step.kind === 'comment') {
    expect(step.text).toBe('the user approves')
    const started = JSON.parse(await shell.run('echo "$started"')) as Record<'authorize_url' | 'user_code', string>
    await approve(started.authorize_url, started.user_code)
  } else {
    const output = await shell.run(step.text.replaceAll(apiOfGuide, stack.api))
    expect(findDifference(step, output), output).toBeUndefined()
  }
}

test.each(steps.map((step) => [`${step.title} (line ${step.line})`, step] as const))(
  'the example works: %s',
  async (_, step) => {
    await runStep(step)
    if (step.title === 'main.ts') await runPlugin()
  },
)

/** The whole plugin: signs in once, keeps its relay ready over a restart of the software, and stops it at its end. */
async function runPlugin(): Promise<void> {
  await project.compile()
  const tokenFile = join(folder, 'tokens.json')
  const first = startPlugin(tokenFile)
  const [, url = '', code = ''] = await first.untilPrinted(/Open (\S+) and compare the code (\S+)/)
  await approve(url, code)
  await first.untilPrinted(/^active \(relay_ready\)$/m)
  expect((await stat(tokenFile)).mode & 0o777).toBe(0o600)
  expect(await first.end()).toBe(0)

  const second = startPlugin(tokenFile)
  await second.untilPrinted(/^active \(start_requested\)$/m)
  expect(second.output()).not.toContain('compare the code')
  expect(await second.end()).toBe(0)
  expect(first.output() + second.output()).not.toMatch(/srt(la)?:\/\//)
  await refreshInTwoProcesses(tokenFile)
}

/** Two processes whose token has expired refresh it once, and neither ends the sign-in of the other. */
async function refreshInTwoProcesses(tokenFile: string): Promise<void> {
  const read = async () => JSON.parse(await readFile(tokenFile, 'utf8')) as { refresh_token: string }
  const before = await read()
  await writeFile(tokenFile, JSON.stringify({ ...before, expiresAt: 0 }))
  const both = [startPlugin(tokenFile), startPlugin(tokenFile)]
  await Promise.all(both.map((plugin) => plugin.untilPrinted(/^active /m)))
  expect(both.map((plugin) => plugin.output()).join('')).not.toContain('compare the code')
  const after = await read()
  expect(after.refresh_token).not.toBe(before.refresh_token)
  expect(await Promise.all(both.map((plugin) => plugin.end()))).toEqual([0, 0])
  await writeFile(tokenFile, JSON.stringify({ ...after, expiresAt: 0 }))
  const last = startPlugin(tokenFile)
  await last.untilPrinted(/^active /m)
  expect(last.output()).not.toContain('compare the code')
  expect(await last.end()).toBe(0)
}

function startPlugin(tokenFile: string) {
  let output = ''
  const child: ChildProcess = spawn(process.execPath, ['build/main.js', stack.api, tokenFile], { cwd: folder })
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  onTestFinished(() => void child.kill('SIGKILL'))
  return {
    output: () => output,
    untilPrinted: async (pattern: RegExp): Promise<RegExpExecArray> => {
      const isPrinted = () => pattern.test(output) || child.exitCode !== null
      await eventually(async () => isPrinted(), Boolean)
      const found = pattern.exec(output)
      if (!found) throw new Error(`the plugin has not printed ${pattern}:\n${output}`)
      return found
    },
    /** @returns the exit code after the end of the broadcast software. */
    end: async (): Promise<number | null> => {
      const exit = once(child, 'exit')
      child.kill('SIGTERM')
      const [code] = await exit
      return code as number | null
    },
  }
}
