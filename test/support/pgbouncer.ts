/** PgBouncer, the pooler that most providers of Postgres run, as Debian packages it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { atEnd } from './at-end.ts'
import { makeFolder, removeFolder } from './folders.ts'
import { findPgBouncer } from './pgbouncer-program.ts'
import { findFreePort } from './ports.ts'
import { eventually } from './relays.ts'

export type PoolMode = 'session' | 'transaction' | 'statement'

export interface PgBouncer {
  /** The URL of the database through the pooler. */
  urlOf(databaseUrl: string): string
  stop(): Promise<void>
  start(): Promise<void>
}

/**
 * With the defaults of its package, which refuse all settings at the start of a connection. Ends after the tests of the
 * file.
 */
export async function startPgBouncer(
  mode: PoolMode,
  serverUrl: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<PgBouncer> {
  const folder = await makeFolder()
  const port = await findFreePort()
  const { hostname, port: serverPort, username, password } = new URL(serverUrl)
  const file = join(folder, 'pgbouncer.ini')
  await writeFile(join(folder, 'users.txt'), `"${username}" "${decodeURIComponent(password)}"\n`)
  await writeFile(
    file,
    `[databases]
* = host=${hostname} port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${join(folder, 'users.txt')}
pool_mode = ${mode}
default_pool_size = 40
${process.getuid?.() === 0 ? 'user = nobody' : ''}
${Object.entries(settings)
  .map(([name, value]) => `${name} = ${value}`)
  .join('\n')}
`,
  )
  await chmod(file, 0o644)
  let child: ReturnType<typeof spawn> | undefined
  const start = async () => {
    child = spawn(findPgBouncer() ?? 'pgbouncer', ['-q', file], { stdio: 'ignore' })
    await eventually(
      () => isListening(port),
      (listens) => listens,
    )
  }
  const stop = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  await start()
  atEnd(async () => {
    await stop()
    await removeFolder(folder)
  })
  const urlOf = (databaseUrl: string) => {
    const through = new URL(databaseUrl)
    through.host = `127.0.0.1:${port}`
    if (mode === 'transaction') through.searchParams.set('pgbouncer', 'true')
    return through.href
  }
  return { urlOf, start, stop }
}

async function isListening(port: number): Promise<boolean> {
  const socket = createConnection(port, '127.0.0.1')
  const isConnected = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'error').then(() => false),
  ]).catch(() => false)
  socket.destroy()
  return isConnected
}
