import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFile, cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { relayVersion } from '../../../domain/relay/version.ts'
import { relayArguments } from '../../../providers/relay/local-relays.ts'
import { relayBundle, relayFingerprint } from '../../../providers/relay/relay-bundle.ts'
import { endOf, eventually, givenControlPlane, secret } from '../../relay-node/running.ts'
import { temporaryFolder } from '../../support/folders.ts'

const project = new URL('../../../', import.meta.url)

test('the bundle runs with node alone, in an empty folder, and reports to the control plane', async () => {
  const plane = await givenControlPlane()
  const folder = await temporaryFolder()
  const { fileName, code } = await relayBundle()
  await writeFile(join(folder, fileName), code)

  const relay = { instanceId: 'aws-0123456789abcdef', sessionId: null, region: 'eu-1', stateFile: 'state.json' }
  const child = spawn(process.execPath, [fileName, ...relayArguments(relay)], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { SVC_RELAY_API_URL: plane.url, SVC_RELAY_AUTH_SECRET: secret, SVC_RELAY_CAP_MBPS: '48' },
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await endOf(child)
  })

  await eventually(
    () => plane.reports.length,
    (count) => count >= 1,
  )
  expect(plane.reports[0]?.body).toMatchObject({ session_id: null, instance_id: 'aws-0123456789abcdef' })
  child.kill('SIGTERM')
  expect(await endOf(child)).toBe(0)
})

test('the name of the bundle has the version and the digest of its content', async () => {
  const { fileName, sha256, code } = await relayBundle()
  expect(createHash('sha256').update(code).digest('hex')).toBe(sha256)
  expect(fileName).toBe(`relay-node-${relayVersion}-${sha256.slice(0, 12)}.mjs`)
})

test('the bundle imports no package, and contains no path of this machine', async () => {
  const text = (await relayBundle()).code.toString()
  const imported = [...text.matchAll(/(?:\bfrom|\bimport|\brequire\() ?"([^"]+)"/g)].map(([, name]) => name)
  expect(imported.length).toBeGreaterThan(10)
  expect(imported.filter((name) => !name?.startsWith('node:'))).toEqual([])
  expect(text).not.toContain(fileURLToPath(project))
  expect(text).not.toContain(`${homedir()}/`)
})

/** A copy of the sources of the bundle, elsewhere. */
async function copySources(): Promise<string> {
  const folder = await temporaryFolder()
  for (const source of ['relay-node', 'platform'])
    await cp(fileURLToPath(new URL(source, project)), join(folder, source), { recursive: true })
  return folder
}

test('the same sources have the same bundle, byte for byte, in another folder and environment', async () => {
  const folder = await copySources()
  await symlink(fileURLToPath(new URL('node_modules', project)), join(folder, 'node_modules'))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await promisify(execFile)(process.execPath, ['--import', 'tsx', 'providers/relay/build-relay.ts'], {
    cwd: folder,
    env: { PATH: '/usr/bin:/bin', TZ: 'Asia/Tokyo', LANG: 'tr_TR.UTF-8' },
  })
  const { fileName, code } = await relayBundle()
  expect((await readFile(join(folder, 'dist', fileName))).equals(code)).toBe(true)
})

test('the bundle contains only files whose change changes its fingerprint', async () => {
  const text = (await relayBundle()).code.toString()
  const files = [...text.matchAll(/^\/\/ (\S+\.\w+)$/gm)].map(([, file]) => file)
  expect(files).toContain('relay-node/main.ts')
  expect(files.filter((file) => !/^(relay-node|platform)\/[^/]+\.ts$/.test(file ?? ''))).toEqual([])
})

test.each(['relay-node/health.ts', 'platform/file-lock.ts'])(
  'a change of %s changes the fingerprint of the bundle',
  async (file) => {
    const folder = await copySources()
    const copy = pathToFileURL(`${folder}/`)
    const before = await relayFingerprint(copy)
    expect(before).toBe(await relayFingerprint(project))
    await appendFile(join(folder, file), '\n')
    expect(await relayFingerprint(copy)).not.toBe(before)
  },
)
