/**
 * OBS on a display of its own, configured by files and driven over its WebSocket. The scenes are `LIVE`, `LOW` and
 * `BRB`. Two can run at the same time.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { OBSWebSocket } from 'obs-websocket-js'
import { atEnd } from './at-end.ts'
import { makeFolder, removeFolder } from './folders.ts'
import { type Display, startDisplay } from './obs-display.ts'
import { type ObsScript, profile, readObsCollections, readObsLogs, scenes, writeObsFiles } from './obs-files.ts'
import { endChild, withParent } from './obs-process.ts'
import { findFreePort } from './ports.ts'

const readySecondsMax = 60

export interface ObsOptions {
  /** Loaded at each start. */
  readonly scripts?: readonly ObsScript[]
  /** More variables of its environment, such as `PYTHONHOME`. */
  readonly variables?: Readonly<Record<string, string>>
}

export interface Obs {
  /** The connection, also over restarts. */
  readonly socket: OBSWebSocket
  /** A request of the WebSocket's protocol 5. */
  readonly call: OBSWebSocket['call']
  /** Such as `29.0.2`. */
  readonly version: string
  /** The folder that OBS takes for its configuration, `obs-studio`. */
  readonly configFolder: string
  /** The home of its user. */
  readonly home: string
  /** What it logged, also at earlier starts. */
  logText(): Promise<string>
  /** The scene collection with its backups. OBS writes it when it ends and after changes. */
  collectionText(): Promise<string>
  /** The scene on air. */
  scene(): Promise<string>
  /** Ends it by a signal, which is a tidy end with SIGTERM, and starts it again with the same files and port. */
  restart(signal?: NodeJS.Signals): Promise<void>
  end(): Promise<void>
}

/**
 * Starts OBS, and ends it after the tests of the file. Resolves when its WebSocket has identified the caller. Rejects
 * with the last lines of its log when it does not become ready.
 */
export async function startObs({ scripts = [], variables = {} }: ObsOptions = {}): Promise<Obs> {
  const home = await makeFolder('obs-')
  atEnd(() => removeFolder(home))
  const configFolder = join(home, '.config/obs-studio')
  await mkdir(join(home, 'runtime'), { mode: 0o700 })
  const [port, password] = [await findFreePort(), randomBytes(12).toString('hex')]
  await writeObsFiles(configFolder, { port, password, scripts })
  const display = await startDisplay()
  atEnd(display.end)
  const socket = new OBSWebSocket()
  const start = () => startProcess(home, display, variables)
  let child = start()
  const end = async (signal: NodeJS.Signals = 'SIGTERM') => {
    await socket.disconnect()
    await endChild(child.process, signal)
  }
  atEnd(() => end('SIGKILL'))
  const untilReady = () =>
    identify(socket, { url: `ws://127.0.0.1:${port}`, password, child, logText: () => readObsLogs(configFolder) })
  await untilReady()
  return {
    socket,
    call: socket.call.bind(socket) as OBSWebSocket['call'],
    version: (await socket.call('GetVersion')).obsVersion,
    configFolder,
    home,
    logText: () => readObsLogs(configFolder),
    collectionText: () => readObsCollections(configFolder),
    scene: async () => (await socket.call('GetCurrentProgramScene')).currentProgramSceneName,
    async restart(signal) {
      await end(signal)
      child = start()
      await untilReady()
    },
    end,
  }
}

interface Running {
  readonly process: ChildProcess
  readonly output: () => string
}

function startProcess(home: string, display: Display, variables: Readonly<Record<string, string>>): Running {
  const options = ['--profile', profile, '--collection', profile, '--scene', scenes[0]]
  // Without dialogs from OBS 30 on. Earlier versions ignore what they do not know.
  const silent = ['--multi', '--disable-updater', '--disable-missing-files-check']
  const [program = '', ...args] = withParent('obs', ...silent, ...options)
  const child = spawn(program, args, {
    cwd: home,
    env: {
      PATH: process.env.PATH,
      LANG: 'C.UTF-8',
      HOME: home,
      XDG_CONFIG_HOME: join(home, '.config'),
      XDG_RUNTIME_DIR: join(home, 'runtime'),
      DISPLAY: display.name,
      LIBGL_ALWAYS_SOFTWARE: '1',
      QT_QPA_PLATFORM: 'xcb',
      ...variables,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (text) => {
      output = (output + text).slice(-20_000)
    })
  child.on('error', (error) => {
    output += error.message
  })
  return { process: child, output: () => output }
}

interface Identification {
  readonly url: string
  readonly password: string
  readonly child: Running
  readonly logText: () => Promise<string>
}

/** Connects as soon as the port accepts, and resolves when the scenes are loaded, which may be later. */
async function identify(socket: OBSWebSocket, { url, password, child, logText }: Identification): Promise<void> {
  let reason = ''
  const isReady = async () => {
    try {
      if (!socket.identified) await socket.connect(url, password)
      return (await socket.call('GetSceneList')).scenes.length === scenes.length
    } catch (error) {
      reason = (error as Error).message
      return false
    }
  }
  for (const until = Date.now() + readySecondsMax * 1000; !(await isReady()); await sleep(100)) {
    const { exitCode, signalCode } = child.process
    const hasEnded = exitCode !== null || signalCode !== null
    if (hasEnded || Date.now() > until) {
      const why = hasEnded ? `it ended with ${exitCode ?? signalCode}` : reason
      const lines = ((await logText()) || child.output()).trimEnd().split('\n').slice(-15)
      throw new Error(`OBS did not become ready: ${why}. Its log ends with:\n${lines.join('\n')}`)
    }
  }
}
