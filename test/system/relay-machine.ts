/**
 * A folder in the place of a machine in a cloud, on which the script of the user data installs the program of a relay.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { onTestFinished } from 'vitest'
import { readStackConfig } from '../../platform/config/stack.ts'
import { findProgram } from '../../platform/find-program.ts'
import { endOf } from '../relay-node/running.ts'
import { temporaryFolder } from '../support/folders.ts'

/** The programs of a prepared image. */
export const prepared = ['curl', 'node', 'srt-live-transmit', 'ffmpeg']

interface InstallOptions {
  readonly script?: string
  readonly engine?: string
  /** The command that starts the service. */
  readonly start?: string
  readonly env?: Readonly<Record<string, string>>
}

/**
 * A machine with these programs, besides those of every Linux image. `apt-get` installs nothing but records its
 * arguments.
 */
export async function givenMachine(programs: readonly string[]) {
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
  const install = (url: string, sha256: string, options: InstallOptions = {}) => {
    const { script = 'deploy/relay/install.sh', engine = 'auto', start = `ln -s . ${started}`, env = {} } = options
    const child = spawn('/bin/sh', [resolve(script), url, sha256, engine], {
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
