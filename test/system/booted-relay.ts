/** A process with the settings and the program of its user data, which takes the place of a machine in a cloud. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { temporaryFolder } from '../support/folders.ts'

interface CloudConfig {
  readonly write_files: readonly { path: string; content: string }[]
  readonly runcmd: readonly (readonly string[])[]
}

interface BootedRelay {
  readonly relay: ChildProcess
  readonly stateFile: string
}

/**
 * Does what the machine would do at its boot, with free ports, since this machine has other relays. It ends with the
 * test. @param more variables that replace those of the user data.
 */
export async function bootRelay(userData: string, more: Readonly<Record<string, string>> = {}): Promise<BootedRelay> {
  const { write_files, runcmd } = parse(userData) as CloudConfig
  const folder = await temporaryFolder()
  const [, , url = '', sha256] = runcmd.find((command) => command.some((word) => word.endsWith('/install.sh'))) ?? []
  const code = Buffer.from(await (await fetch(url)).arrayBuffer())
  expect(createHash('sha256').update(code).digest('hex')).toBe(sha256)
  const program = join(folder, 'relay-node.mjs')
  await writeFile(program, code)
  const environment = join(folder, 'environment')
  await writeFile(environment, write_files.find(({ path }) => path === '/etc/relay-node/environment')?.content ?? '')
  const read = `set -a; . "${environment}"; exec "$0" -p 'JSON.stringify(process.env)'`
  const variables = JSON.parse(execFileSync('sh', ['-c', read, process.execPath], { env: {}, encoding: 'utf8' }))
  for (const name of Object.keys(variables)) if (name.endsWith('_PORT')) variables[name] = '0'
  const stateFile = join(folder, 'state.json')
  const args = ['--instance', variables.INSTANCE_ID, '--region', variables.REGION, '--state-file', stateFile]
  const relay = spawn(process.execPath, [program, ...args], {
    env: { ...variables, SVC_RELAY_HOST: '127.0.0.1', ...more },
    stdio: 'ignore',
  })
  onTestFinished(() => void relay.kill('SIGKILL'))
  return { relay, stateFile }
}
