/** The program that runs on a relay: takes in streams, tells what comes in, reports its health, ends when it is told to. */
import { claim, release, writeState } from './claim.ts'
import { reportUntilEnded } from './health.ts'
import { listen } from './listeners.ts'
import { createLog } from './log.ts'
import { readSettings, type Settings, SettingsError } from './settings.ts'
import { Stats } from './stats.ts'

/** How the process ends: its provider reads the code. */
const exits = { ended: 0, failed: 1, badSettings: 2, alreadyRunning: 3 } as const

/** Never goes back, and tells the time of day all the same. */
const clock = () => performance.timeOrigin + performance.now()

async function run(settings: Settings): Promise<number> {
  const { instanceId, sessionId, region, stateFile, host } = settings
  const log = createLog(instanceId)
  const ending = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => ending.abort(name))

  if (!claim(stateFile)) {
    log('info', 'another process runs this instance')
    return exits.alreadyRunning
  }
  process.once('exit', () => release(stateFile))

  const stats = new Stats()
  const showStats = () => stats.show(clock())
  const listeners = await listen({
    host,
    log,
    arrived: (entrance, addr, bytes) => stats.count(entrance, addr, bytes, clock()),
    showStats,
  })
  const startedAt = new Date().toISOString()
  writeState(stateFile, { instanceId, sessionId, region, pid: process.pid, host, ...listeners.ports, startedAt })
  log('info', 'relay is up', { sessionId, region, host, ...listeners.ports })

  const why = await reportUntilEnded({
    apiUrl: settings.apiUrl,
    authSecret: settings.authSecret,
    intervalSeconds: settings.healthIntervalSeconds,
    sessionId,
    instanceId,
    showStats,
    log,
    signal: ending.signal,
  })
  log('info', 'relay ends', { why: ending.signal.aborted ? ending.signal.reason : why })
  await listeners.close()
  return exits.ended
}

try {
  process.exit(await run(readSettings(process.argv.slice(2), process.env)))
} catch (error) {
  process.stdout.write(`${error instanceof SettingsError ? error.message : (error as Error).stack}\n`)
  process.exit(error instanceof SettingsError ? exits.badSettings : exits.failed)
}
