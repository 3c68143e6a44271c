/** `svc doctor` on a running `npm start`, with one fault after another. Needs faketime and unshare (util-linux). */
import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectPostgres } from '../../db/connection.ts'
import { makeFolder, removeFolder, temporaryFolder } from '../support/folders.ts'
import { eventually } from '../support/relays.ts'
import { endAll, processesOf, Stack } from '../support/stack.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))
const doctor = [process.execPath, 'cli/svc/bin.mjs', 'doctor']
const searchPath = process.env.PATH ?? ''

interface Finding {
  readonly name: string
  readonly status: 'ok' | 'warn' | 'fail'
  readonly detail: string
  readonly fix: string | null
}

interface Examination {
  readonly code: number
  readonly output: string
  readonly checks: readonly Finding[]
  readonly failed: readonly string[]
  find(name: string): Finding | undefined
}

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

function run(command: readonly string[], env: Readonly<Record<string, string>>) {
  const [program = '', ...words] = command
  const options = { cwd: project, env: { PATH: searchPath, SVC_DATA_DIR: dataDir, ...env }, timeout: 50_000 }
  return new Promise<{ code: number; output: string }>((resolve) => {
    execFile(program, words, options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
    )
  })
}

/** @param prefix a program that runs the doctor. */
async function examine(
  env: Readonly<Record<string, string>> = {},
  prefix: readonly string[] = [],
): Promise<Examination> {
  const { code, output } = await run([...prefix, ...doctor, '--json'], env)
  const { checks } = JSON.parse(output) as { checks: Finding[] }
  return {
    code,
    output,
    checks,
    failed: checks.filter(({ status }) => status === 'fail').map(({ name }) => name),
    find: (name) => checks.find((check) => check.name === name),
  }
}

const readJson = async (name: string) =>
  JSON.parse(await readFile(join(dataDir, name), 'utf8')) as Record<string, never>

const readServers = async (): Promise<Record<string, string>> => (await readJson('running.json')).servers ?? {}

const isListening = (address: string) =>
  new Promise<boolean>((resolve) => {
    const { hostname, port } = new URL(address)
    const socket = createConnection(Number(port), hostname)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('close', () => socket.destroy())
  })

async function signal(command: string, name: NodeJS.Signals): Promise<void> {
  const found = (await processesOf(dataDir)).find(({ command: text }) => text.includes(command))
  if (!found) throw new Error(`${command} does not run`)
  process.kill(found.pid, name)
}

test('everything is in order on a healthy stack', async () => {
  const { code, checks, output } = await examine()
  expect(checks.filter(({ status }) => status !== 'ok')).toEqual([])
  expect(code).toBe(0)
  expect(checks.length).toBeGreaterThan(15)
  for (const check of checks) expect(Object.keys(check)).toEqual(['name', 'status', 'detail', 'fix'])
  expect(Object.keys(JSON.parse(output) as object)).toEqual(['checks'])
  const secrets = Object.values(await readJson('secrets.json')).filter((secret) => typeof secret === 'string')
  expect(secrets.length).toBe(7)
  for (const secret of secrets) expect(output).not.toContain(secret)
})

test('the report has a line for each check and counts them', async () => {
  const { code, output } = await run(doctor, {})
  expect(code).toBe(0)
  expect(output).toMatch(/^✔ postgres +Postgres 18\.\d+ at 127\.0\.0\.1:\d+\/svc, \d+ of \d+ connections in use/m)
  expect(output).toMatch(/\n\n\d+ ok, 0 to look at, 0 failed\n$/)
})

describe('names the fault and the fix for', () => {
  test('a secret that is too short, and examines the rest', async () => {
    const { code, failed, find, output } = await examine({ SVC_JWT_SECRET: 'swordfish' })
    expect([code, failed]).toEqual([1, ['configuration']])
    expect(find('configuration')?.detail).toContain('SVC_JWT_SECRET is shorter than 32 bytes')
    expect(output).not.toContain('swordfish')
  })

  test('secrets that differ from those of the service', async () => {
    const other = {
      OAUTH_ENCRYPTION_KEY: 'qJ3vTn8yW1kRz5mXc7Lb0sHd2gFa9uPe4iOtYw6NQxE=',
      SVC_OPERATOR_PASSWORD: 'not-the-one-it-has',
    }
    const { code, failed, find, output } = await examine(other)
    expect([code, failed]).toEqual([1, ['encryption-key', 'operator-password']])
    expect(find('encryption-key')).toMatchObject({
      detail: expect.stringMatching(/stored secrets are encrypted with the key \w+, which OAUTH_ENCRYPTION_KEY lacks/),
      fix: expect.stringContaining('Set OAUTH_ENCRYPTION_KEY to the key that the service used before'),
    })
    expect(find('operator-password')?.fix).toContain('the password that the api was started with')
    for (const secret of Object.values(other)) expect(output).not.toContain(secret)
  })

  test('secrets that are equal to each other', async () => {
    const same = 'whsec_p7Qm2vXk9LrT4wYb6ZcN8sJd1gHf3aUe5iOtVyRqWxM='
    const { failed, find, output } = await examine({ SVC_JWT_SECRET: same, SVC_BILLING_WEBHOOK_SECRET: same })
    expect(failed).toEqual(['secrets'])
    expect(find('secrets')?.detail).toBe('SVC_BILLING_WEBHOOK_SECRET and SVC_JWT_SECRET are equal')
    expect(output).not.toContain(same)
  })

  test('generated secrets that other users can read', async () => {
    const file = join(dataDir, 'secrets.json')
    await chmod(file, 0o644)
    const { failed, find } = await examine()
    await chmod(file, 0o600)
    expect(failed).toEqual(['secrets'])
    expect(find('secrets')).toMatchObject({ detail: expect.stringContaining('(mode 644)'), fix: `chmod 600 ${file}` })
  })

  test('a wrong password in DATABASE_URL', async () => {
    const { DATABASE_URL = '' } = await readServers()
    const { code, failed, find, output } = await examine({
      DATABASE_URL: DATABASE_URL.replace(/:[^:@]+@/, ':swordfish@'),
    })
    expect([code, failed]).toEqual([1, ['postgres']])
    expect(find('postgres')?.fix).toBe('Correct the user and the password in DATABASE_URL.')
    expect(find('migrations')).toMatchObject({ status: 'warn', detail: 'not checked: Postgres is not usable' })
    expect(output).not.toContain('swordfish')
  })

  test('a missing migration', async () => {
    const sql = connectPostgres((await readServers()).DATABASE_URL ?? '', 1)
    try {
      const [removed] =
        await sql`delete from schema_migrations where name = (select max(name) from schema_migrations) returning *`
      const missing = await examine()
      await sql`insert into schema_migrations ${sql({ name: removed?.name, checksum: removed?.checksum, applied_at: removed?.appliedAt })}`
      expect([missing.code, missing.failed]).toEqual([1, ['migrations']])
      expect(missing.find('migrations')).toMatchObject({
        detail: `missing: ${removed?.name}`,
        fix: expect.stringContaining('npm run migrate'),
      })
    } finally {
      await sql.end()
    }
  })

  test('a missing video engine', async () => {
    const { code, failed, find } = await examine({ PATH: await temporaryFolder() })
    expect([code, failed]).toEqual([1, ['video-engine']])
    expect(find('video-engine')?.fix).toMatch(/Install it: .*(srt-tools|install srt)/)
  })

  test('a full disk', async () => {
    const folder = join(await temporaryFolder(), 'full')
    await mkdir(folder)
    const { demo: _, ...secrets } = await readJson('secrets.json')
    const { api } = await readJson('running.json')
    const env = {
      ...secrets,
      ...(await readServers()),
      SVC_DATA_DIR: folder,
      SVC_API_URL: stack.api,
      SVC_SITE_URL: stack.site,
    }
    expect(api).toBe(stack.api)
    // A file system of 8 MiB, full, in a mount namespace of its own.
    const isRoot = process.getuid?.() === 0
    const script = `mount -t tmpfs -o size=8m tmpfs ${folder} && head -c 8m /dev/zero > ${folder}/file; exec "$@"`
    const prefix = ['unshare', '--mount', ...(isRoot ? [] : ['--map-root-user']), 'sh', '-c', script, 'sh']
    const { code, failed, find } = await examine(env, prefix)
    expect([code, failed]).toEqual([1, ['disk']])
    expect(find('disk')).toMatchObject({
      detail: expect.stringContaining(`only 0 MiB are free at ${folder}`),
      fix: expect.stringContaining('Free some space there'),
    })
  })

  test('a wrong clock', async () => {
    const { code, failed, find } = await examine({}, ['faketime', '-f', '+300s'])
    expect([code, failed]).toEqual([1, ['clocks']])
    expect(find('clocks')).toMatchObject({
      detail: expect.stringMatching(
        /this machine and Postgres differ by (299|300|301)\.\d s.*this machine and the API differ by/,
      ),
      fix: expect.stringContaining('NTP'),
    })
  })

  // From here on the stack stays broken. A start that is suspended restarts nothing.
  test('a stopped worker', async () => {
    await signal('cli/start.ts', 'SIGSTOP')
    await signal('activities/worker/worker.ts', 'SIGTERM')
    await eventually(
      async () => (await fetch(`${stack.api}/health`)).status,
      (status) => status === 503,
    )
    const { code, failed, find } = await examine()
    expect(code).toBe(1)
    expect(failed).toContain('worker')
    expect(failed.filter((name) => name !== 'task-queue')).toEqual(['worker'])
    expect(find('worker')?.fix).toContain('Start a worker')
  })

  test('a stopped Temporal', async () => {
    const { TEMPORAL_ADDRESS } = await readServers()
    await signal(' start-dev ', 'SIGTERM')
    await eventually(
      () => isListening(`http://${TEMPORAL_ADDRESS}`),
      (isUp) => !isUp,
    )
    const { code, failed, find } = await examine()
    expect([code, failed]).toEqual([1, ['temporal', 'worker']])
    expect(find('temporal')).toMatchObject({
      detail: expect.stringContaining(`Temporal at ${TEMPORAL_ADDRESS} does not answer`),
      fix: expect.stringContaining('temporal/temporal.log'),
    })
    expect(find('task-queue')?.detail).toBe('not checked: Temporal does not answer')
  })

  test('a stopped Postgres', async () => {
    const { DATABASE_URL = '' } = await readServers()
    await signal('bin/postgres -D', 'SIGINT')
    await eventually(
      () => isListening(DATABASE_URL.replace('postgres:', 'http:')),
      (isUp) => !isUp,
    )
    const { code, failed, find } = await examine()
    expect([code, failed]).toEqual([1, ['postgres', 'temporal']])
    expect(find('postgres')).toMatchObject({
      detail: expect.stringContaining('ECONNREFUSED'),
      fix: expect.stringContaining('postgres/postgres.log'),
    })
  })

  test('a stack that was killed', async () => {
    expect(await stack.end('SIGKILL')).toBeNull()
    const { failed, find } = await examine()
    expect(failed).toContain('stack')
    expect(find('stack')?.fix).toContain('Run npm start again')
  })
})

test('without a stack and without variables, both ways out are named', async () => {
  const { code, failed, find } = await examine({ SVC_DATA_DIR: await temporaryFolder() })
  expect(code).toBe(1)
  expect(failed).toEqual(['configuration'])
  expect(find('configuration')?.detail).toMatch(/no stack is running in .*, and DATABASE_URL is not set/)
})
