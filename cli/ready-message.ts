/** The message of a stack that is ready: its addresses, and commands to paste that start a relay. */
import { engineInstallCommand, type RelayEngineSetting } from '../domain/relay/engines.ts'
import { findProgram } from '../platform/find-program.ts'
import { keepsSecureCookies, noSecureCookies } from '../platform/secure-cookies.ts'
import { patternInputs } from './media-programs.ts'
import type { DemoAccount } from './plan-grants.ts'

export interface ReadyStack {
  api: string
  site: string
  /** Whether the site shows the emails instead of sending them. */
  mailbox: boolean
  temporalUi: string | undefined
  postgres: string
  /** Where to find the operator password. */
  operatorPassword: string
  logs: string
  demo: DemoAccount | undefined
  /** The data folder that the other commands have to be given; undefined for the default one. */
  dataDir: string | undefined
  /** Why relays forward no video, with the way out; undefined when they do. */
  videoObstacle: string | undefined
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/**
 * Why relays that start with these settings forward no video, with the way out.
 * @param folders those of `PATH`, where relays find their engine.
 */
export function findVideoObstacle(
  engine: RelayEngineSetting,
  folders: readonly string[],
  platform: NodeJS.Platform,
): string | undefined {
  if (engine === 'none') return 'Relays forward no video, since SVC_RELAY_ENGINE is none.'
  if (engine === 'sls' || findProgram('srt-live-transmit', folders) !== undefined) return undefined
  return `Relays forward no video until this is installed:  ${engineInstallCommand(platform)}`
}

/** Commands for bash and zsh that need only curl, sed and grep, and ffmpeg to publish and play. */
export function curlCommands(api: string, demo: DemoAccount) {
  const base = `${api}/api/v1`
  const json = `-H 'Content-Type: application/json'`
  const bearer = `-H "Authorization: Bearer $JWT"`
  const newKey = `$(uuidgen -r 2>/dev/null || node -p 'crypto.randomUUID()')`
  const address = (streamId: string) =>
    `$(curl -s '${base}/relay/active?connection_id=demo' ${bearer} | grep -o 'srt://[^"]*streamid=${streamId}/[^"]*' | head -n 1)`
  const credentials = quoted(JSON.stringify(demo))
  return {
    signIn: `JWT=$(curl -s ${base}/auth/login ${json} -d ${credentials} | sed -E 's/.*"cp_access_jwt":"([^"]+)".*/\\1/')`,
    start: `curl -s ${base}/relay/start ${bearer} -H "Idempotency-Key: ${newKey}" ${json} -d '{"connection_id":"demo"}'`,
    show: `curl -s ${base}/relay/active ${bearer}`,
    // In the background without standard input, which would stop it.
    publish: `ffmpeg -nostdin -loglevel error ${patternInputs} -b:v 2M -f mpegts "${address('publish')}&pkt_size=1316" &`,
    // A smaller probe than the default of 5 s, so that the picture appears sooner.
    play: `ffplay -loglevel error -probesize 500000 -analyzeduration 1000000 "${address('play')}"`,
    stop: `curl -s ${base}/relay/stop ${bearer} ${json} -d '{"connection_id":"demo","immediate":true}'`,
  }
}

/** A command of this project for another terminal. */
const npmCommand = ({ dataDir }: ReadyStack, command: string): string =>
  `${dataDir === undefined ? '' : `SVC_DATA_DIR=${quoted(dataDir)} `}npm run ${command}`

export function formatReadyMessage(stack: ReadyStack): string {
  const rows: [string, string | undefined][] = [
    ['Site', stack.site],
    ['Mailbox', stack.mailbox ? `${stack.site}/mailbox   all emails of this service` : undefined],
    ['API', stack.api],
    ['API docs', `${stack.api}/docs`],
    ['Temporal UI', stack.temporalUi],
    ['Metrics', `${stack.api}/metrics`],
    ['Postgres', stack.postgres],
    ['Demo account', stack.demo && `${stack.demo.email}   ${stack.demo.password}`],
    ['Operator', `${stack.site}/operator   user "operator", password ${stack.operatorPassword}`],
    ['Logs', stack.logs],
  ]
  const lines = rows.flatMap(([name, value]) => (value ? [`  ${name.padEnd(14)}${value}`] : []))
  if (stack.demo) {
    const { signIn, start, show, publish, play, stop } = curlCommands(stack.api, stack.demo)
    lines.push('', '  Sign in, start a relay and show it (paste into a shell):', '', signIn, start, show)
    if (stack.videoObstacle === undefined)
      lines.push('', '  When it is active, publish a test pattern to it and play it (needs ffmpeg):', '', publish, play)
    lines.push('', '  Stop the relay:', '', stop)
    lines.push('', `  See all of it in another terminal:  ${npmCommand(stack, 'demo')}`)
  }
  if (!keepsSecureCookies(stack.site)) lines.push('', `  ! ${noSecureCookies(stack.site)}`)
  if (stack.videoObstacle !== undefined) lines.push('', `  ! ${stack.videoObstacle}`)
  lines.push('', '  Connect encoders and players:  docs/relays.md')
  lines.push('', `  Give an account a paid plan:  ${npmCommand(stack, 'svc -- users grant EMAIL')}`)
  lines.push('', `  Show and change everything, or check it:  ${npmCommand(stack, 'svc -- --help')}`)
  return ['', ...lines, '', '  Press Ctrl-C to stop everything.', ''].join('\n')
}
