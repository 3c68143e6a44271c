/** The program of relays as one file: the same on every machine, and complete. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { relayVersion } from '../../../domain/relay/version.ts'
import { relayArguments } from '../../../providers/relay/local-relays.ts'
import { relayBundle } from '../../../providers/relay/relay-bundle.ts'
import { endOf, eventually, givenControlPlane, secret } from '../../relay-node/running.ts'
import { temporaryFolder } from '../../support/folders.ts'
import { copyProject } from '../../support/project-copies.ts'

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

test('the files that the bundle names as its sources give the same bundle, byte for byte, in another folder and environment', async () => {
  const { fileName, code } = await relayBundle()
  const { folder, launch } = await copyProject('relay-node', 'providers/relay/build-relay.ts')
  expect(await launch('providers/relay/build-relay.ts')).toBe(`dist/${fileName}`)
  expect((await readFile(join(folder, 'dist', fileName))).equals(code)).toBe(true)
})

test('a changed file in any folder gives another bundle, and the former one when the change is undone', async () => {
  const { fileName } = await relayBundle()
  const { folder, launch } = await copyProject('relay-node', 'providers/relay/build-relay.ts')
  for (const file of ['relay-node/health.ts', 'platform/file-lock.ts', 'domain/relay/engines.ts']) {
    const path = join(folder, file)
    const text = await readFile(path, 'utf8')
    await writeFile(path, `${text}\nObject.assign(globalThis, { added: true })\n`)
    const changed = await launch('providers/relay/build-relay.ts')
    expect([file, changed]).not.toEqual([file, `dist/${fileName}`])
    expect(await readFile(join(folder, changed), 'utf8')).toContain('{ added: true }')
    await writeFile(path, text)
    expect(await launch('providers/relay/build-relay.ts')).toBe(`dist/${fileName}`)
  }
})
