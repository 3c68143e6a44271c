/**
 * What a relay is told when it starts: who it is, by arguments, which any process on the machine can read; its secrets and
 * limits, by the environment, which they can't. Checked by hand rather than with zod, whose loading would take as long as
 * all the rest of the start.
 */
import { isIP } from 'node:net'
import { parseArgs } from 'node:util'

export interface Settings {
  readonly instanceId: string
  readonly sessionId: string
  readonly region: string
  /** Where the relay writes down its ports, readable by the provider that started it. */
  readonly stateFile: string
  /** The control plane, without a path or a slash at the end. */
  readonly apiUrl: string
  readonly authSecret: string
  /** The relay lets in only streams that carry it. */
  readonly streamToken: string
  /** How often to report when the control plane hasn't said. */
  readonly healthIntervalSeconds: number
  readonly capMbps: number
  /** The address that the relay binds, and under which it is reached. */
  readonly host: string
}

/** Every mistake in the arguments and the environment, one line each. */
export class SettingsError extends Error {
  override name = 'SettingsError'
  constructor(problems: readonly string[]) {
    super(`The relay can't start with these settings:\n${problems.map((line) => `  - ${line}`).join('\n')}`)
  }
}

interface Check {
  readonly from: string | undefined
  readonly test: (text: string) => boolean
  /** Follows the name in the message, so that a secret's value never gets into one. */
  readonly otherwise: string
}

const isUuid = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
const isWebAddress = (text: string) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
const isBetween = (least: number, most: number) => (text: string) =>
  text.trim() !== '' && Number(text) >= least && Number(text) <= most

/** Throws {@link SettingsError} with all mistakes at once. */
export function readSettings(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Settings {
  const { values, problems } = readArguments(args)
  const checks = {
    '--instance': { from: values.instance, test: (t) => /^[\w.-]{1,64}$/.test(t), otherwise: 'is no instance id' },
    '--session': { from: values.session, test: isUuid, otherwise: 'is no UUID' },
    '--region': { from: values.region, test: (t) => /^[a-z0-9-]{1,32}$/.test(t), otherwise: 'is no region name' },
    '--state-file': { from: values['state-file'], test: (t) => t !== '', otherwise: 'is empty' },
    SVC_RELAY_API_URL: { from: env.SVC_RELAY_API_URL, test: isWebAddress, otherwise: 'is no http(s) URL' },
    SVC_RELAY_AUTH_SECRET: {
      from: env.SVC_RELAY_AUTH_SECRET,
      test: (t) => /^[\x21-\x7e]+$/.test(t),
      otherwise: 'holds what a header may not carry',
    },
    SVC_RELAY_STREAM_TOKEN: {
      from: env.SVC_RELAY_STREAM_TOKEN,
      test: (t) => /^[A-Za-z0-9]{8}$/.test(t),
      otherwise: 'is not eight letters and digits',
    },
    SVC_RELAY_HEALTH_INTERVAL_SECONDS: {
      from: env.SVC_RELAY_HEALTH_INTERVAL_SECONDS ?? '10',
      test: isBetween(0.1, 300),
      otherwise: 'is not between 0.1 and 300 seconds',
    },
    SVC_RELAY_CAP_MBPS: {
      from: env.SVC_RELAY_CAP_MBPS,
      test: isBetween(0.1, 100_000),
      otherwise: 'is not between 0.1 and 100000 Mbit/s',
    },
    SVC_RELAY_HOST: {
      from: env.SVC_RELAY_HOST ?? '127.0.0.1',
      test: (t) => isIP(t) !== 0 || /^[A-Za-z0-9.-]{1,253}$/.test(t),
      otherwise: 'is neither an IP address nor a host name',
    },
  } satisfies Record<string, Check>
  for (const [name, { from, test, otherwise }] of Object.entries<Check>(checks)) {
    if (from === undefined) problems.push(`${name} is not set`)
    else if (!test(from)) problems.push(`${name} ${otherwise}`)
  }
  if (problems.length > 0) throw new SettingsError(problems)
  const given = (name: keyof typeof checks) => checks[name].from ?? ''
  return Object.freeze({
    instanceId: given('--instance'),
    sessionId: given('--session'),
    region: given('--region'),
    stateFile: given('--state-file'),
    apiUrl: given('SVC_RELAY_API_URL').replace(/\/+$/, ''),
    authSecret: given('SVC_RELAY_AUTH_SECRET'),
    streamToken: given('SVC_RELAY_STREAM_TOKEN'),
    healthIntervalSeconds: Number(given('SVC_RELAY_HEALTH_INTERVAL_SECONDS')),
    capMbps: Number(given('SVC_RELAY_CAP_MBPS')),
    host: given('SVC_RELAY_HOST'),
  })
}

function readArguments(args: readonly string[]) {
  const text = { type: 'string' } as const
  const options = { instance: text, session: text, region: text, 'state-file': text }
  const problems: string[] = []
  const { values, tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind === 'option' && !Object.hasOwn(options, token.name)) problems.push(`${token.rawName} is unknown`)
  }
  const textOf = (value: string | boolean | undefined) => (typeof value === 'string' ? value : undefined)
  return {
    values: {
      instance: textOf(values.instance),
      session: textOf(values.session),
      region: textOf(values.region),
      'state-file': textOf(values['state-file']),
    },
    problems,
  }
}
