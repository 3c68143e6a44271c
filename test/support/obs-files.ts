/** The files by which OBS starts without a wizard, a dialog or a window to look at. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The scenes of the collection, the first of them on air at first. */
export const scenes = ['LIVE', 'LOW', 'BRB'] as const

/** A script that OBS loads at its start, as Tools → Scripts does. */
export interface ObsScript {
  readonly path: string
  /** What the script gets as its settings. OBS stores them in the scene collection. */
  readonly settings?: Readonly<Record<string, unknown>>
}

export interface ObsSettings {
  readonly port: number
  readonly password: string
  readonly scripts: readonly ObsScript[]
}

/** The profile and the scene collection. */
export const profile = 'T'
const scenesFolder = 'basic/scenes'

type Ini = Readonly<Record<string, Readonly<Record<string, string | number | boolean>>>>

const formatIni = (sections: Ini): string =>
  Object.entries(sections)
    .flatMap(([name, keys]) => [`[${name}]`, ...Object.entries(keys).map(([key, value]) => `${key}=${value}`), ''])
    .join('\n')

const general = ({ port, password }: ObsSettings): Ini => ({
  // Without `Pre31Migrated` OBS 32 stops at a dialog about a migration of its settings.
  General: { FirstRun: true, EnableAutoUpdates: false, Pre31Migrated: true, LastVersion: 486_539_266 },
  Basic: { Profile: profile, ProfileDir: profile, SceneCollection: profile, SceneCollectionFile: profile },
  BasicWindow: { PreviewEnabled: false, SysTrayEnabled: false },
  OBSWebSocket: {
    FirstLoad: false,
    ServerEnabled: true,
    ServerPort: port,
    AlertsEnabled: false,
    AuthRequired: true,
    ServerPassword: password,
  },
})

const video: Ini = {
  General: { Name: profile },
  Video: { BaseCX: 640, BaseCY: 360, OutputCX: 640, OutputCY: 360, FPSType: 1, FPSInt: 15 },
  Audio: { SampleRate: 48_000 },
}

const collection = (scripts: readonly ObsScript[]) => ({
  name: profile,
  current_scene: scenes[0],
  current_program_scene: scenes[0],
  scene_order: scenes.map((name) => ({ name })),
  sources: scenes.map((name) => ({ id: 'scene', name, settings: { items: [] } })),
  groups: [],
  transitions: [],
  current_transition: 'Cut',
  transition_duration: 0,
  modules: { 'scripts-tool': scripts.map(({ path, settings = {} }) => ({ path, settings })) },
})

/** Writes what OBS 29 to 32 read at their start. @param folder the one that OBS takes for `obs-studio`. */
export async function writeObsFiles(folder: string, settings: ObsSettings): Promise<void> {
  const write = async (path: string, text: string) => {
    const file = join(folder, path)
    await mkdir(join(file, '..'), { recursive: true })
    await writeFile(file, text)
  }
  const ini = formatIni(general(settings))
  await write('global.ini', ini)
  // From OBS 31 on.
  await write('user.ini', ini)
  // From OBS 30 on.
  await write(
    'plugin_config/obs-websocket/config.json',
    JSON.stringify({
      alerts_enabled: false,
      auth_required: true,
      first_load: false,
      server_enabled: true,
      server_password: settings.password,
      server_port: settings.port,
    }),
  )
  await write(`basic/profiles/${profile}/basic.ini`, formatIni(video))
  await write(`${scenesFolder}/${profile}.json`, JSON.stringify(collection(settings.scripts)))
}

async function readAll(folder: string, isWanted: (name: string) => boolean): Promise<string> {
  const names = (await readdir(folder).catch(() => [])).filter(isWanted).toSorted()
  return (await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))).join('\n')
}

/** The text of all logs, those of earlier starts first. */
export const readObsLogs = (folder: string): Promise<string> => readAll(join(folder, 'logs'), () => true)

/** The text of the scene collections with their backups: what a user shares with others. */
export const readObsCollections = (folder: string): Promise<string> =>
  readAll(join(folder, scenesFolder), (name) => name.includes('.json'))
