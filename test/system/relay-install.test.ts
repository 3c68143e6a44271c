/** The script that installs the program of a relay on an instance in a cloud, with the programs of this machine. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readStackConfig } from '../../platform/config/stack.ts'
import { findProgram } from '../../platform/find-program.ts'
import { relayBundle } from '../../platform/relay-bundle.ts'
import { endOf, eventually, givenControlPlane, secret } from '../relay-node/running.ts'
import { startApi } from '../support/api.ts'
import { temporaryFolder } from '../support/folders.ts'

/** A machine with these programs, besides those of every Linux image. `apt-get` installs nothing but records its arguments. */
async function givenMachine(programs: readonly string[]) {
  const folder = await temporaryFolder()
  const bin = join(folder, 'bin')
  await mkdir(bin)
  const { searchPath } = readStackConfig()
  for (const name of ['sh', 'sed', 'mkdir', 'chmod', 'mv', 'rm', 'ln', 'sleep', 'sha256sum', ...programs]) {
    const path = name === 'node' ? process.execPath : findProgram(name, searchPath)
    if (path === undefined) throw new Error(`this test requires ${name} on the PATH`)
    await symlink(path, join(bin, name))
  }
  const aptLog = join(folder, 'apt.log')
  const links = `for name in "$@"; do [ "$name" != nodejs ] || ln -sf ${process.execPath} ${bin}/node; done`
  await writeFile(join(bin, 'apt-get'), `#!/bin/sh\necho "$@" >>${aptLog}\n${links}\n`, { mode: 0o755 })
  const program = join(folder, 'opt', 'relay-node.mjs')
  const started = join(folder, 'started')
  const install = (url: string, sha256: string, options: { engine?: string; start?: string; env?: object } = {}) => {
    const { engine = 'auto', start = `ln -s . ${started}`, env = {} } = options
    const child = spawn('/bin/sh', [resolve('deploy/relay/install.sh'), url, sha256, engine], {
      cwd: folder,
      env: {
        PATH: bin,
        RELAY_NODE_FOLDER: join(folder, 'opt'),
        RELAY_NODE_START: start,
        RELAY_NODE_PAUSE_SECONDS: '0.1',
        ...env,
      },
    })
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await endOf(child)
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data))
    return { child, output: () => output }
  }
  const aptCalls = async () => (existsSync(aptLog) ? (await readFile(aptLog, 'utf8')).trim().split('\n') : [])
  return { folder, program, install, aptCalls, isStarted: () => existsSync(started) }
}

/** A server that answers with these contents, one after the other, and then with the last one. */
async function givenServer(contents: (Buffer | string)[]) {
  let requests = 0
  const server = createServer((_, response) => {
    response.end(contents[Math.min(requests, contents.length - 1)])
    requests += 1
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await eventually(() => server.listening, Boolean)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/program.mjs`, requests: () => requests }
}

const prepared = ['curl', 'node', 'srt-live-transmit']

test('a prepared image downloads the program from the api, starts it and reports, without apt-get', async () => {
  const bundle = await relayBundle()
  const [api, plane, machine] = [await startApi(), await givenControlPlane(), await givenMachine(prepared)]
  const relay = `--instance aws-0123456789abcdef --region eu-1 --state-file ${machine.folder}/state.json`

  machine.install(`${api.url}/relay-node/${bundle.fileName}`, bundle.sha256, {
    start: `exec node ${machine.program} ${relay}`,
    env: { SVC_RELAY_API_URL: plane.url, SVC_RELAY_AUTH_SECRET: secret, SVC_RELAY_CAP_MBPS: '48' },
  })

  await eventually(
    () => plane.reports.length,
    (count) => count >= 1,
    20_000,
  )
  expect(plane.reports[0]?.body).toMatchObject({ session_id: null, instance_id: 'aws-0123456789abcdef' })
  expect(plane.reports[0]?.body.stats.engine).toBe('srt-live-transmit')
  expect(await machine.aptCalls()).toEqual([])
})

test('a program with another digest is not started, and downloaded again', async () => {
  const bundle = await relayBundle()
  const machine = await givenMachine(prepared)
  const server = await givenServer(['process.exit()', bundle.code])

  const { child, output } = machine.install(server.url, bundle.sha256)

  expect(await endOf(child)).toBe(0)
  expect(output()).toContain('download failed')
  expect(server.requests()).toBe(2)
  expect((await readFile(machine.program)).equals(bundle.code)).toBe(true)
  expect(machine.isStarted()).toBe(true)
})

test('while no program with the digest can be downloaded nothing is started', async () => {
  const machine = await givenMachine(prepared)
  const server = await givenServer(['process.exit()'])
  const { output } = machine.install(server.url, 'ab'.repeat(32))
  await eventually(
    () => output().split('download failed').length,
    (count) => count > 3,
    20_000,
  )
  expect(existsSync(machine.program)).toBe(false)
  expect(machine.isStarted()).toBe(false)
})

test('an image that has the program downloads nothing', async () => {
  const bundle = await relayBundle()
  const machine = await givenMachine(prepared)
  await mkdir(join(machine.folder, 'opt'))
  await writeFile(machine.program, bundle.code)
  const { child } = machine.install('http://127.0.0.1:1/none', bundle.sha256)
  expect(await endOf(child)).toBe(0)
  expect(machine.isStarted()).toBe(true)
})

test('missing programs are installed with apt-get, the SRT tools only for an engine that needs them', async () => {
  const bundle = await relayBundle()
  const { url } = await givenServer([bundle.code])
  const machine = await givenMachine(['curl'])
  expect(await endOf(machine.install(url, bundle.sha256).child)).toBe(0)
  expect(await machine.aptCalls()).toEqual(['update -q', expect.stringMatching(/^install .* nodejs srt-tools$/)])

  const other = await givenMachine(['curl'])
  expect(await endOf(other.install(url, bundle.sha256, { engine: 'sls' }).child)).toBe(0)
  expect(await other.aptCalls()).toEqual(['update -q', expect.stringMatching(/^install .* nodejs$/)])
})

test('an image with an old Node is refused with the reason', async () => {
  const machine = await givenMachine(['curl', 'srt-live-transmit'])
  await writeFile(join(machine.folder, 'bin', 'node'), '#!/bin/sh\necho v18.20.4\n', { mode: 0o755 })
  const { child, output } = machine.install('http://127.0.0.1:1/none', 'ab'.repeat(32))
  expect(await endOf(child)).toBe(1)
  expect(output()).toContain('needs Node 20 or newer, and this image has v18.20.4')
  expect(machine.isStarted()).toBe(false)
})
