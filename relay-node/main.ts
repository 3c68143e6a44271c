/** The program that runs on a relay: receives streams, serves statistics, and reports its health until it is stopped. */
import { rmSync } from 'node:fs'
import { lockFile } from '../platform/file-lock.ts'
import { reportUntilEnded } from './health.ts'
import { listen } from './listeners.ts'
import { createLog } from './log.ts'
import { readSettings, type Settings, SettingsError } from './settings.ts'
import { writeStateFile } from './state-file.ts'
import { Stats } from './stats.ts'

/** Exit codes of the process, which its provider reads. */
const exitCodes = { ended: 0, failed: 1, invalidSettings: 2, alreadyRunning: 3 } as const

/** The time of day in milliseconds, by a clock that never goes back. */
const now = () => performance.timeOrigin + performance.now()

async function run(settings: Settings): Promise<number> {
  const { instanceId, sessionId, region, stateFile, host } = settings
  const log = createLog(instanceId)
  const ending = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => ending.abort(name))

  const lock = await lockFile(stateFile)
  if ('heldBy' in lock) {
    log('info', 'another process runs this instance', { holder: lock.heldBy.pid })
    return exitCodes.alreadyRunning
  }
  // Of a killed predecessor.
  rmSync(stateFile, { force: true })
  process.once('exit', () => {
    rmSync(stateFile, { force: true })
    lock.release()
  })

  const stats = new Stats()
  const showStats = () => stats.show(now())
  const listeners = await listen({
    host,
    log,
    onDatagram: (entrance, addr, bytes) => stats.count(entrance, addr, bytes, now()),
    showStats,
  })
  const startedAt = new Date().toISOString()
  const { ports } = listeners
  await writeStateFile(stateFile, { instanceId, sessionId, region, pid: process.pid, host, ...ports, startedAt })
  log('info', 'relay is ready', { sessionId, region, host, ...ports })

  const reason = await reportUntilEnded({
    apiUrl: settings.apiUrl,
    authSecret: settings.authSecret,
    intervalSeconds: settings.healthIntervalSeconds,
    sessionId,
    instanceId,
    showStats,
    log,
    signal: ending.signal,
  })
  log('info', 'relay is ending', { reason: ending.signal.aborted ? ending.signal.reason : reason })
  await listeners.close()
  return exitCodes.ended
}

try {
  process.exit(await run(readSettings(process.argv.slice(2), process.env)))
} catch (error) {
  process.stdout.write(`${error instanceof SettingsError ? error.message : (error as Error).stack}\n`)
  process.exit(error instanceof SettingsError ? exitCodes.invalidSettings : exitCodes.failed)
}
