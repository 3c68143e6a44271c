/** What `npm start` refuses before it boots anything. */
import { execFile } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { nodeArguments } from '../../platform/launcher.ts'
import { temporaryFolder } from '../support/folders.ts'
import { findFreePort } from '../support/ports.ts'
import { endAllAfterwards, Stack } from '../support/stack.ts'

/** Another program on a port of this machine. */
async function occupyPort(): Promise<string> {
  const server = createServer()
  const port = await new Promise<number>((resolve) => {
    server.listen(0, () => resolve((server.address() as { port: number }).port))
  })
  onTestFinished(() => void server.close())
  return String(port)
}

/** The list of problems of a start that is refused. */
async function refusalOf(dataDir: string, variables: Readonly<Record<string, string>>): Promise<string[]> {
  endAllAfterwards(dataDir)
  const stack = new Stack(dataDir, { variables })
  expect(await stack.ended()).toBe(1)
  expect(stack.output).toMatch(/^✖ The configuration has \d+ problems?:$/m)
  return stack.output.split('\n').flatMap((line) => (line.startsWith('  - ') ? [line.slice(4)] : []))
}

test('wrong variables of all programs and all taken ports are listed together, before anything exists', async () => {
  const dataDir = join(await temporaryFolder(), 'data')
  const [api, temporal] = [await occupyPort(), await occupyPort()]
  const problems = await refusalOf(dataDir, {
    SVC_JWT_SECRET: 'swordfish',
    SVC_REGIONS: '[',
    SVC_SUPPORT_EMAIL: 'nobody',
    SVC_DEMO_EMAIL: 'nobody',
    SVC_TEMPORAL_CLI: '/nowhere/temporal',
    PORT: api,
    SVC_EMBEDDED_TEMPORAL_PORT: temporal,
  })
  expect(problems).toHaveLength(7)
  for (const start of [
    'SVC_JWT_SECRET is shorter than 32 bytes: generate one with',
    'SVC_REGIONS is not JSON',
    'SVC_SUPPORT_EMAIL ',
    'SVC_DEMO_EMAIL ',
    'SVC_TEMPORAL_CLI is /nowhere/temporal, which is not a program',
    `Port ${api} for the API (PORT) is taken by another program. End that program, set PORT to another port, or unset it`,
    `Port ${temporal} for the embedded Temporal (SVC_EMBEDDED_TEMPORAL_PORT) is taken by another program.`,
  ])
    expect(problems.filter((line) => line.startsWith(start))).toHaveLength(1)
  expect(problems.join()).not.toContain('swordfish')
  await expect(readdir(dataDir)).rejects.toThrow('ENOENT')
})

test('an address of another machine is refused before anything exists', async () => {
  const dataDir = join(await temporaryFolder(), 'data')
  const region = { region: 'home', display_name: 'Home', provider: 'local', host: '203.0.113.7' }
  expect(await refusalOf(dataDir, { SVC_REGIONS: JSON.stringify([region]) })).toEqual([
    expect.stringMatching(/^SVC_REGIONS, region home: host 203\.0\.113\.7 is no address of this machine .*public_host/),
  ])
  await expect(readdir(dataDir)).rejects.toThrow('ENOENT')
})

test('all taken ports are listed together, before a server has data', async () => {
  const dataDir = await temporaryFolder()
  const [site, postgres, metrics] = [await occupyPort(), await occupyPort(), await occupyPort()]
  const problems = await refusalOf(dataDir, {
    PORT: String(await findFreePort()),
    SVC_SITE_PORT: site,
    SVC_WORKER_METRICS_ADDRESS: `127.0.0.1:${metrics}`,
    SVC_EMBEDDED_PG_PORT: postgres,
  })
  expect(problems).toEqual([
    expect.stringContaining(`Port ${site} for the site (SVC_SITE_PORT) is taken`),
    expect.stringContaining(`Port ${metrics} for the metrics of the worker (SVC_WORKER_METRICS_ADDRESS) is taken`),
    expect.stringContaining(`Port ${postgres} for the embedded Postgres (SVC_EMBEDDED_PG_PORT) is taken`),
  ])
  expect((await readdir(dataDir)).filter((name) => ['postgres', 'temporal', 'logs'].includes(name))).toEqual([])
})

test('two servers with the same port are refused', async () => {
  const port = String(await findFreePort())
  expect(await refusalOf(await temporaryFolder(), { PORT: port, SVC_EMBEDDED_PG_PORT: port })).toEqual([
    `PORT and SVC_EMBEDDED_PG_PORT are both ${port}: each server needs a port of its own`,
  ])
})

test('with servers of its own, a start needs all secrets and names the missing ones at once', async () => {
  const problems = await refusalOf(await temporaryFolder(), {
    DATABASE_URL: 'postgres://svc:pw@127.0.0.1:1/svc',
    TEMPORAL_ADDRESS: '127.0.0.1:1',
    OAUTH_ENCRYPTION_KEY: '0'.repeat(64),
    // The port of a server that is not embedded does not matter.
    SVC_EMBEDDED_PG_PORT: await occupyPort(),
  })
  expect(problems).toEqual([
    'SVC_JWT_SECRET is not set',
    expect.stringMatching(/^OAUTH_ENCRYPTION_KEY is not 32 random bytes/),
    'SVC_RELAY_AUTH_SECRET is not set',
    'SVC_BILLING_WEBHOOK_SECRET is not set',
  ])
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

test('the demo without a running service explains how to start one', async () => {
  const demo = promisify(execFile)(process.execPath, nodeArguments('cli/demo.ts'), {
    env: { PATH: '/usr/bin:/bin', SVC_DATA_DIR: await temporaryFolder() },
  })
  await expect(demo).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('Start it first: npm start') })
})
