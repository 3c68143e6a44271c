/**
 * A separate Postgres for one test file that can be restarted, and frozen: like a hanging machine it accepts
 * connections and never answers.
 */
import { readdir, readFile } from 'node:fs/promises'
import { startEmbeddedPostgres } from '../../platform/embedded/postgres.ts'
import { createLog } from '../../platform/log.ts'
import { sendSignal } from '../../platform/processes.ts'
import { atEnd } from './at-end.ts'
import { makeServerFolder, removeFolder } from './folders.ts'

export interface OwnPostgres {
  readonly url: string
  freeze(): Promise<void>
  thaw(): Promise<void>
  /** Stops the server and starts it again at the same address. */
  restart(): Promise<void>
}

/** Starts the server, and stops it after the tests of the file. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const dir = await makeServerFolder()
  const log = createLog('postgres', 'silent')
  const settings = { fsync: 'off' }
  let server = await startEmbeddedPostgres({ dir, log, settings })
  const { url, port } = server
  const signal = async (name: NodeJS.Signals) => {
    // The main process first, so that it cannot start a process that is missed.
    sendSignal(server.pid, name)
    for (const pid of await childrenOf(server.pid)) sendSignal(pid, name)
  }
  const thaw = () => signal('SIGCONT')
  atEnd(async () => {
    await thaw()
    await server.stop()
    await removeFolder(dir)
  })
  const restart = async () => {
    await server.stop()
    server = await startEmbeddedPostgres({ dir, log, settings, port: async () => port })
  }
  return { url, freeze: () => signal('SIGSTOP'), thaw, restart }
}

async function childrenOf(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const isChild = async (pid: number) => {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent
  }
  const found = await Promise.all(pids.map(async (pid) => ((await isChild(pid)) ? [pid] : [])))
  return found.flat()
}
