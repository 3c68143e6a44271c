/**
 * The settings of a relay. Its ids come as arguments, which every process of the machine can read, and its secrets and
 * limits as environment variables, which others cannot read. Checked without zod, which would double the time of a
 * start.
 */

import { isIP } from 'node:net'
import { parseArgs } from 'node:util'
import { type RelayEngineSetting, relayEngineSettings, type SlsServer } from '../domain/relay/engines.ts'
import { portNames, type RelayPorts } from '../domain/relay/ports.ts'
import { type StatsAddresses, statsAddresses } from '../domain/relay/stats-addresses.ts'
import { isUuid } from '../domain/uuid.ts'
import { parseStreamTokenHash } from '../platform/stream-token-hashes.ts'
import { admitToken } from './admission.ts'
import type { RelaySession } from './session.ts'
import {
  type Check,
  type Environment,
  headerTextProblem,
  isBetween,
  isHeaderText,
  isHttpUrl,
} from './setting-checks.ts'
import { listSlsChecks, slsServerOf } from './sls-settings.ts'

export interface Settings {
  readonly instanceId: string
  /** Null: the relay starts unbound, and the control plane assigns a session later. */
  readonly session: RelaySession | null
  /** The ports that it takes if they are free; null for {@link ports}. */
  readonly preferredPorts: RelayPorts | null
  readonly region: string
  /** The relay writes its ports there for its provider. */
  readonly stateFile: string
  /** The API of the control plane, without a path or a trailing slash. */
  readonly apiUrl: string
  readonly authSecret: string
  /** The interval of health reports until the control plane sets another one. */
  readonly healthIntervalSeconds: number
  readonly capMbps: number
  /** The bitrate below which a stream is weak. */
  readonly streamWeakKbps: number
  /** The address that the relay binds. 0.0.0.0 and :: stand for all addresses of both families. */
  readonly host: string
  /** The ports that it binds; 0 for a free one. */
  readonly ports: RelayPorts
  readonly engine: RelayEngineSetting
  /** Set with the engine `sls` only. */
  readonly sls: SlsServer | undefined
  /** Publishers and players must encrypt with it. */
  readonly srtPassphrase: string | undefined
  /** The least latency of a stream over several links. */
  readonly srtlaLatencyMillisMin: number
  readonly statsAddresses: StatsAddresses
  /** The folders of programs, as in `PATH`. */
  readonly searchPath: string
}

/** Every problem in the arguments and the environment, one line each. */
export class SettingsError extends Error {
  override name = 'SettingsError'
  constructor(problems: readonly string[]) {
    super(`The settings of the relay are invalid:\n${problems.map((line) => `  - ${line}`).join('\n')}`)
  }
}

const isPort = (text: string) => /^\d+$/.test(text) && Number(text) <= 65_535
const checkPort = (text: string | undefined): Check => ({
  value: text ?? '0',
  isValid: isPort,
  problem: 'is not a port up to 65535, or 0 for a free one',
})

/** Throws {@link SettingsError} with all problems. */
export function readSettings(args: readonly string[], env: Environment): Settings {
  const { values, problems } = readArguments(args)
  const checks = {
    '--instance': {
      value: values.instance,
      isValid: (t) => /^[\w.-]{1,64}$/.test(t),
      problem: 'is not an instance id',
    },
    '--region': { value: values.region, isValid: (t) => /^[a-z0-9-]{1,32}$/.test(t), problem: 'is not a region name' },
    '--state-file': { value: values['state-file'], isValid: (t) => t !== '', problem: 'is empty' },
    SVC_RELAY_API_URL: { value: env.SVC_RELAY_API_URL, isValid: isHttpUrl, problem: 'is not an http(s) URL' },
    SVC_RELAY_AUTH_SECRET: {
      value: env.SVC_RELAY_AUTH_SECRET,
      isValid: isHeaderText,
      problem: headerTextProblem,
    },
    SVC_RELAY_HEALTH_INTERVAL_SECONDS: {
      value: env.SVC_RELAY_HEALTH_INTERVAL_SECONDS ?? '10',
      isValid: isBetween(0.1, 300),
      problem: 'is not between 0.1 and 300 seconds',
    },
    SVC_RELAY_CAP_MBPS: {
      value: env.SVC_RELAY_CAP_MBPS,
      isValid: isBetween(0.1, 100_000),
      problem: 'is not between 0.1 and 100000 Mbit/s',
    },
    SVC_RELAY_STREAM_WEAK_KBPS: {
      value: env.SVC_RELAY_STREAM_WEAK_KBPS ?? '800',
      isValid: isBetween(50, 100_000),
      problem: 'is not between 50 and 100000 kbit/s',
    },
    SVC_RELAY_HOST: {
      value: env.SVC_RELAY_HOST ?? '127.0.0.1',
      isValid: (t) => isIP(t) !== 0 || /^[A-Za-z0-9.-]{1,253}$/.test(t),
      problem: 'is neither an IP address nor a host name',
    },
    SVC_RELAY_BINDING: {
      value: env.SVC_RELAY_BINDING ?? '1',
      isValid: (t) => /^[1-9]\d{0,9}$/.test(t),
      problem: 'is not the number of an instance, from 1 on',
    },
    SVC_RELAY_PREFERRED_PORTS: {
      value: env.SVC_RELAY_PREFERRED_PORTS ?? '',
      isValid: (t) => t === '' || (t.split(',').length === portNames.length && t.split(',').every(isPort)),
      problem: 'is not four ports with commas between them',
    },
    SVC_RELAY_SRTLA_PORT: checkPort(env.SVC_RELAY_SRTLA_PORT),
    SVC_RELAY_PUBLISH_PORT: checkPort(env.SVC_RELAY_PUBLISH_PORT),
    SVC_RELAY_PLAY_PORT: checkPort(env.SVC_RELAY_PLAY_PORT),
    SVC_RELAY_STATS_PORT: checkPort(env.SVC_RELAY_STATS_PORT),
    SVC_RELAY_ENGINE: {
      value: env.SVC_RELAY_ENGINE ?? 'auto',
      isValid: (t) => relayEngineSettings.some((engine) => engine === t),
      problem: `is not one of ${relayEngineSettings.join(', ')}`,
    },
    SVC_RELAY_SRT_PASSPHRASE: {
      value: env.SVC_RELAY_SRT_PASSPHRASE ?? '',
      isValid: (t) => /^([A-Za-z0-9._-]{10,79})?$/.test(t),
      problem: 'is not 10 to 79 letters, digits, dots, hyphens and underscores',
    },
    SVC_RELAY_SRTLA_LATENCY_MS_MIN: {
      value: env.SVC_RELAY_SRTLA_LATENCY_MS_MIN ?? '1000',
      isValid: (t) => /^\d+$/.test(t) && Number(t) <= 10_000,
      problem: 'is not a number of milliseconds from 0 to 10000',
    },
    SVC_RELAY_STATS_ADDRESSES: {
      value: env.SVC_RELAY_STATS_ADDRESSES ?? 'masked',
      isValid: (t) => statsAddresses.some((each) => each === t),
      problem: `is not one of ${statsAddresses.join(', ')}`,
    },
  } satisfies Record<string, Check>
  const isSls = env.SVC_RELAY_ENGINE === 'sls'
  const allChecks = { ...checks, ...listSessionChecks(values.session, env), ...(isSls ? listSlsChecks(env) : {}) }
  for (const [name, { value, isValid, problem }] of Object.entries<Check>(allChecks)) {
    if (value === undefined) problems.push(`${name} is not set`)
    else if (!isValid(value)) problems.push(`${name} ${problem}`)
  }
  if (problems.length > 0) throw new SettingsError(problems)
  const textOf = (name: keyof typeof checks) => checks[name].value ?? ''
  return Object.freeze({
    instanceId: textOf('--instance'),
    session: sessionOf(values.session, env, Number(textOf('SVC_RELAY_BINDING'))),
    preferredPorts: preferredPortsOf(textOf('SVC_RELAY_PREFERRED_PORTS')),
    region: textOf('--region'),
    stateFile: textOf('--state-file'),
    apiUrl: textOf('SVC_RELAY_API_URL').replace(/\/+$/, ''),
    authSecret: textOf('SVC_RELAY_AUTH_SECRET'),
    healthIntervalSeconds: Number(textOf('SVC_RELAY_HEALTH_INTERVAL_SECONDS')),
    capMbps: Number(textOf('SVC_RELAY_CAP_MBPS')),
    streamWeakKbps: Number(textOf('SVC_RELAY_STREAM_WEAK_KBPS')),
    host: textOf('SVC_RELAY_HOST'),
    ports: {
      srtlaPort: Number(textOf('SVC_RELAY_SRTLA_PORT')),
      publishPort: Number(textOf('SVC_RELAY_PUBLISH_PORT')),
      playPort: Number(textOf('SVC_RELAY_PLAY_PORT')),
      statsPort: Number(textOf('SVC_RELAY_STATS_PORT')),
    },
    engine: textOf('SVC_RELAY_ENGINE') as RelayEngineSetting,
    sls: isSls ? slsServerOf(env) : undefined,
    srtPassphrase: textOf('SVC_RELAY_SRT_PASSPHRASE') || undefined,
    srtlaLatencyMillisMin: Number(textOf('SVC_RELAY_SRTLA_LATENCY_MS_MIN')),
    statsAddresses: textOf('SVC_RELAY_STATS_ADDRESSES') as StatsAddresses,
    searchPath: env.PATH ?? '',
  })
}

/** A session and the hash of its stream token go together. */
function listSessionChecks(sessionId: string | undefined, env: Environment): Record<string, Check> {
  const { SVC_RELAY_STREAM_TOKEN_HASH: tokenHash } = env
  if (sessionId === undefined && tokenHash === undefined) return {}
  return {
    '--session': { value: sessionId, isValid: isUuid, problem: 'is not a UUID' },
    SVC_RELAY_STREAM_TOKEN_HASH: {
      value: tokenHash,
      isValid: (t) => parseStreamTokenHash(t) !== undefined,
      problem: 'is not a key and a hash, each 32 bytes in base64url, with a dot between them',
    },
  }
}

/** @param env checked before. */
const sessionOf = (
  sessionId: string | undefined,
  { SVC_RELAY_STREAM_TOKEN_HASH: text = '' }: Environment,
  binding: number,
) => {
  const tokenHash = parseStreamTokenHash(text)
  return sessionId === undefined || tokenHash === undefined
    ? null
    : { sessionId, admission: admitToken(tokenHash), binding }
}

function preferredPortsOf(text: string): RelayPorts | null {
  if (text === '') return null
  const [srtlaPort = 0, publishPort = 0, playPort = 0, statsPort = 0] = text.split(',').map(Number)
  return { srtlaPort, publishPort, playPort, statsPort }
}

function readArguments(args: readonly string[]) {
  const text = { type: 'string' } as const
  const options = { instance: text, session: text, region: text, 'state-file': text }
  const problems: string[] = []
  const { values, tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind === 'option' && !Object.hasOwn(options, token.name))
      problems.push(`${token.rawName} is not an option`)
  }
  const stringOf = (value: string | boolean | undefined) => (typeof value === 'string' ? value : undefined)
  return {
    values: {
      instance: stringOf(values.instance),
      session: stringOf(values.session),
      region: stringOf(values.region),
      'state-file': stringOf(values['state-file']),
    },
    problems,
  }
}
