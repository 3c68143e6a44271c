/** A worker of an older version, whose relays have another program, beside the api and the schema of a newer one. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { relayVersion } from '../../domain/relay/version.ts'
import { atEnd } from '../support/at-end.ts'
import { startControlPlane } from '../support/control-plane.ts'
import { temporaryFolder } from '../support/folders.ts'
import { givenHetzner } from '../support/hetzner.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))
const parts = ['activities', 'db', 'deploy/relay', 'domain', 'platform', 'providers', 'relay-node', 'workflows']

/** A copy of the project whose relays have the version 0.0.9. */
async function givenOlderVersion(): Promise<string> {
  const folder = await temporaryFolder()
  for (const part of [...parts, 'package.json', 'tsconfig.json'])
    await cp(join(project, part), join(folder, part), { recursive: true })
  await symlink(join(project, 'node_modules'), join(folder, 'node_modules'))
  const file = join(folder, 'domain/relay/version.ts')
  await writeFile(file, (await readFile(file, 'utf8')).replace(relayVersion, '0.0.9'))
  return folder
}

function startWorkerOf(folder: string, env: Readonly<Record<string, string>>): () => string {
  const program = [join(folder, 'platform/launch.mjs'), join(folder, 'activities/worker/worker.ts')]
  const child = spawn(process.execPath, program, {
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  const gone = once(child, 'exit')
  atEnd(async () => {
    child.kill('SIGKILL')
    await gone
  })
  return () => output
}

test('an older worker starts beside a newer schema that is compatible, and its machines get their program from the newer api', async () => {
  const cloud = await givenHetzner()
  const hetzner = { location: 'fsn1', server_type: 'cx22', image: 'debian-13' }
  const { client, environment, worker, paidUser, sql } = await startControlPlane({
    LOG_LEVEL: 'info',
    SVC_REGIONS: JSON.stringify([
      { region: 'eu', display_name: 'Europe', provider: 'hetzner', default: true, hetzner },
    ]),
    SVC_FLEET_NAME: 'production',
    SVC_HETZNER_API_URL: cloud.apiUrl,
    SVC_HETZNER_TOKEN: cloud.token,
    SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '300',
  })
  await worker.kill()
  await sql`insert into schema_migrations (name, checksum, compatible) values ('9999_newer.sql', 'unknown', true)`

  const output = startWorkerOf(await givenOlderVersion(), environment)
  await expect.poll(output).toContain('the worker accepts work')
  expect(output()).toContain('9999_newer.sql')
  expect((await (await paidUser()).start()).status).toBe(201)
  await expect.poll(() => cloud.project.servers().length).toBe(1)

  const userData = cloud.project.servers()[0]?.userData ?? ''
  const [, fileName = '', sha256] = /\/relay-node\/(relay-node-0\.0\.9-\w+\.mjs)", "(\w{64})"/.exec(userData) ?? []
  const answer = await fetch(`${client.url}/relay-node/${fileName}`)
  expect(answer.status).toBe(200)
  const code = Buffer.from(await answer.arrayBuffer())
  expect(createHash('sha256').update(code).digest('hex')).toBe(sha256)
})
