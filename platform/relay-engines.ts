/** The programs that can terminate SRT connections on a relay. */
export const relayEngines = ['srt-live-transmit', 'sls'] as const
export type RelayEngine = (typeof relayEngines)[number]

/** `auto`: `srt-live-transmit` where it is installed, else none. `none`: the relay forwards no video. */
export const relayEngineSettings = ['auto', ...relayEngines, 'none'] as const
export type RelayEngineSetting = (typeof relayEngineSettings)[number]

/** The command that installs `srt-live-transmit`. */
export const engineInstallCommand = (platform: NodeJS.Platform): string =>
  platform === 'darwin' ? 'brew install srt' : 'sudo apt-get install srt-tools'
