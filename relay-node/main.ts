/**
 * The program that runs on a relay: receives streams, serves statistics, and reports its health until it is stopped.
 */
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RelayPorts } from '../domain/relay/ports.ts'
import { lockFile } from '../platform/file-lock.ts'
import { startDataPlane } from './data-plane.ts'
import type { Engine } from './engine.ts'
import { FormatReport } from './format-report.ts'
import { reportUntilEnded } from './health.ts'
import { chooseListeningHosts } from './listening-hosts.ts'
import { createLiveTransmitEngine, findLiveTransmit, liveTransmitCommand } from './live-transmit-engine.ts'
import { createLog, type Log } from './log.ts'
import { readSettings, type Settings, SettingsError } from './settings.ts'
import { Slates } from './slates/slates.ts'
import { createSlsEngine } from './sls-engine.ts'
import { writeStateFile } from './state-file.ts'
import { startStatsServer } from './stats-server.ts'

/** Exit codes of the process, which its provider reads. */
const exitCodes = { ended: 0, failed: 1, invalidSettings: 2, alreadyRunning: 3 } as const

/**
 * How long a relay waits for ports of its connection that are taken. The relay stopped before it has 3 s to end
 * (`providers/relay/local-relays.ts`), and may not even have begun to.
 */
const takenPortsMillisMax = 6_000
const takenPortsPauseMillis = 100

async function run(settings: Settings): Promise<number> {
  const { instanceId, session, region, stateFile, host } = settings
  const sessionId = session?.sessionId ?? null
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

  const engine = chooseEngine(settings, log)
  const hosts = await chooseListeningHosts(host, log)
  const dataPlane = await startDataPlane({ ...settings, hosts, admission: session?.admission, engine, log })
  let deniedSince: Date | null = null
  let ownSessionId = session?.sessionId
  const openStatsServer = (port: number) =>
    startStatsServer({
      hosts,
      port,
      source: dataPlane,
      instanceId,
      owner: { secret: settings.authSecret, sessionId: () => ownSessionId },
      log,
      unknownSince: () => deniedSince,
    })
  let statsServer = await openStatsServer(settings.ports.statsPort)
  const boundPorts = (): RelayPorts => ({ ...dataPlane.ports(), statsPort: statsServer.port })
  /** Takes ports that a connection had before, all or none of them. */
  const takePorts = async (wanted: RelayPorts): Promise<void> => {
    const stats = wanted.statsPort === statsServer.port ? statsServer : await openStatsServer(wanted.statsPort)
    try {
      await dataPlane.takePorts(wanted)
    } catch (error) {
      if (stats !== statsServer) await stats.close()
      throw error
    }
    const left = statsServer
    statsServer = stats
    if (left !== stats) await left.close()
  }
  /** Keeps the ports that it has when the wanted ones stay taken. */
  const takePortsOnceFree = async (wanted: RelayPorts): Promise<void> => {
    const since = Date.now()
    for (let attempt = 1; ; attempt += 1)
      try {
        return await takePorts(wanted)
      } catch (error) {
        const { message } = error as Error
        if (attempt === 1)
          log('info', 'a port of the connection is taken: waiting until it is free', { error: message })
        if (Date.now() - since >= takenPortsMillisMax || ending.signal.aborted)
          return log('warn', 'a port of the connection stays taken, so this relay has others', { error: message })
        await sleep(takenPortsPauseMillis)
      }
  }
  if (settings.preferredPorts !== null) await takePortsOnceFree(settings.preferredPorts)
  const startedAt = new Date().toISOString()
  const writeState = () =>
    writeStateFile(stateFile, { instanceId, sessionId, region, pid: process.pid, host, ...boundPorts(), startedAt })
  await writeState()
  log('info', 'relay is ready', { sessionId, region, host, engine: engine?.name ?? 'none', ...boundPorts() })

  let closing: Promise<unknown> | undefined
  /** Ends the streams. All ports are released at once, since the next relay of the connection waits for them. */
  const closeStreams = async () => {
    closing ??= Promise.all([dataPlane.close('the relay is ending'), statsServer.close()])
    await closing
  }
  const reason = await reportUntilEnded({
    apiUrl: settings.apiUrl,
    authSecret: settings.authSecret,
    intervalSeconds: settings.healthIntervalSeconds,
    sessionId,
    binding: session?.binding,
    instanceId,
    boundPorts,
    async onAssigned(assigned) {
      ownSessionId = assigned.sessionId
      if (assigned.ports !== null) await takePortsOnceFree(assigned.ports)
      dataPlane.admit(assigned.admission)
      if (assigned.ports !== null) await writeState()
    },
    onDenied: (since) => {
      deniedSince = since
    },
    summarizeIngest: dataPlane.summarize,
    streamEvents: dataPlane.streamEvents,
    pathEvents: dataPlane.pathEvents,
    format: new FormatReport(dataPlane.streamFormat),
    admissions: {
      revision: dataPlane.admissionRevision,
      takeUsedPlayKeys: dataPlane.takeUsedPlayKeys,
      onChange: dataPlane.admit,
    },
    closeStreams,
    log,
    signal: ending.signal,
  })
  log('info', 'relay is ending', { reason: ending.signal.aborted ? ending.signal.reason : reason })
  await closeStreams()
  return exitCodes.ended
}

/** @returns undefined for a relay that refuses streams, for example where no engine is installed. */
function chooseEngine(settings: Settings, log: Log): Engine | undefined {
  const { engine, searchPath, srtPassphrase, srtlaLatencyMillisMin, sls, instanceId, apiUrl, authSecret } = settings
  if (sls !== undefined) return createSlsEngine({ server: sls, streamName: instanceId, log })
  const path = engine === 'none' ? undefined : findLiveTransmit(searchPath)
  if (path !== undefined) {
    const command = liveTransmitCommand(path, searchPath)
    const slates = new Slates({ apiUrl, authSecret, searchPath, log })
    return createLiveTransmitEngine({ command, passphrase: srtPassphrase, srtlaLatencyMillisMin, slates, log })
  }
  if (engine === 'srt-live-transmit') throw new SettingsError(['SVC_RELAY_ENGINE: srt-live-transmit is not installed'])
  log('warn', 'this relay forwards no video: srt-live-transmit is not installed (Debian and Ubuntu: srt-tools)', {})
  return undefined
}

try {
  process.exit(await run(readSettings(process.argv.slice(2), process.env)))
} catch (error) {
  process.stdout.write(`${error instanceof SettingsError ? error.message : (error as Error).stack}\n`)
  process.exit(error instanceof SettingsError ? exitCodes.invalidSettings : exitCodes.failed)
}
