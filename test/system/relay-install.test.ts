/** The script that installs the program of a relay on an instance in a cloud, with the programs of this machine. */
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { relayBundle } from '../../providers/relay/relay-bundle.ts'
import { endOf, eventually, givenControlPlane, secret } from '../relay-node/running.ts'
import { startApi } from '../support/api.ts'
import { givenMachine, prepared } from './relay-machine.ts'

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
  expect(await machine.aptCalls()).toEqual([
    'update -q',
    expect.stringMatching(/^install .* nodejs srt-tools$/),
    'update -q',
    expect.stringMatching(/^install .* ffmpeg$/),
  ])

  const other = await givenMachine(['curl'])
  expect(await endOf(other.install(url, bundle.sha256, { engine: 'sls' }).child)).toBe(0)
  expect(await other.aptCalls()).toEqual(['update -q', expect.stringMatching(/^install .* nodejs$/)])
})

test('the relay is started before ffmpeg is installed, and runs without it where that fails', async () => {
  const bundle = await relayBundle()
  const { url } = await givenServer([bundle.code])
  const machine = await givenMachine(['curl', 'node', 'srt-live-transmit'])
  const check = `[ -e ${machine.folder}/started ] && echo started before "$@" >&2; exit 1`
  await writeFile(join(machine.folder, 'bin', 'apt-get'), `#!/bin/sh\n${check}\n`, { mode: 0o755 })
  const { child, output } = machine.install(url, bundle.sha256)
  expect(await endOf(child)).toBe(0)
  expect(output()).toContain('started before update -q')
  expect(output()).toContain('ffmpeg is not installed, so this relay shows no slates')
})

test('an image with an old Node is refused with the reason', async () => {
  const machine = await givenMachine(['curl', 'srt-live-transmit'])
  await writeFile(join(machine.folder, 'bin', 'node'), '#!/bin/sh\necho v18.20.4\n', { mode: 0o755 })
  const { child, output } = machine.install('http://127.0.0.1:1/none', 'ab'.repeat(32))
  expect(await endOf(child)).toBe(1)
  expect(output()).toContain('needs Node 20 or newer, and this image has v18.20.4')
  expect(machine.isStarted()).toBe(false)
})
