/** The programs that can terminate SRT connections on a relay. */
export const relayEngines = ['srt-live-transmit', 'sls'] as const
export type RelayEngine = (typeof relayEngines)[number]

/** `auto`: `srt-live-transmit` where it is installed, else none. `none`: the relay forwards no video. */
export const relayEngineSettings = ['auto', ...relayEngines, 'none'] as const
export type RelayEngineSetting = (typeof relayEngineSettings)[number]

/** An SLS server (OpenIRL's srt-live-server or irl-srt-server) on the machine of a relay. */
export interface SlsServer {
  /** Its HTTP API, at the host of its listeners. */
  readonly apiUrl: string
  readonly apiKey: string
  readonly publishPort: number
  readonly playPort: number
}

/** The command that installs `srt-live-transmit`. */
export const engineInstallCommand = (platform: NodeJS.Platform): string =>
  platform === 'darwin' ? 'brew install srt' : 'sudo apt-get install srt-tools'
