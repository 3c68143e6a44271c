/** The arguments and variables of the relay's program. */
import { describe, expect, test } from 'vitest'
import { cloudRelayPorts } from '../../domain/relay/ports.ts'
import { formatStreamTokenHash, hashStreamToken } from '../../platform/stream-token-hashes.ts'
import { admitToken } from '../../relay-node/admission.ts'
import { readSettings, SettingsError } from '../../relay-node/settings.ts'

const args = [
  '--instance',
  'relay-1',
  '--session',
  '6f1c3c54-9c44-4b6e-8f0e-6b1c2f6f3a10',
  '--region',
  'eu-1',
  '--state-file',
  'relay-1.json',
]
const tokenHash = hashStreamToken('Ab12Cd34', 'k'.repeat(43))
const env = {
  SVC_RELAY_API_URL: 'http://localhost:8080/',
  SVC_RELAY_AUTH_SECRET: 'between-relay-and-plane',
  SVC_RELAY_STREAM_TOKEN_HASH: formatStreamTokenHash(tokenHash),
  SVC_RELAY_CAP_MBPS: '48',
}

const problemsOf = (read: () => unknown): string => {
  try {
    read()
  } catch (error) {
    if (error instanceof SettingsError) return error.message
    throw error
  }
  return ''
}

test('ids are read from arguments, and secrets from the environment', () => {
  expect(readSettings(args, env)).toEqual({
    instanceId: 'relay-1',
    session: { sessionId: '6f1c3c54-9c44-4b6e-8f0e-6b1c2f6f3a10', admission: admitToken(tokenHash), binding: 1 },
    preferredPorts: null,
    region: 'eu-1',
    stateFile: 'relay-1.json',
    apiUrl: 'http://localhost:8080',
    authSecret: 'between-relay-and-plane',
    healthIntervalSeconds: 10,
    capMbps: 48,
    streamWeakKbps: 800,
    engine: 'auto',
    srtPassphrase: undefined,
    srtlaLatencyMillisMin: 1_000,
    statsAddresses: 'masked',
    searchPath: '',
    host: '127.0.0.1',
    ports: { srtlaPort: 0, publishPort: 0, playPort: 0, statsPort: 0 },
  })
})

describe('a session and the hash of its stream token', () => {
  const unboundArgs = args.filter((_, index) => index !== 2 && index !== 3)
  const { SVC_RELAY_STREAM_TOKEN_HASH, ...unboundEnv } = env

  test('may both be missing, so that the relay starts unbound', () => {
    expect(readSettings(unboundArgs, unboundEnv).session).toBeNull()
  })

  test('are required together', () => {
    expect(problemsOf(() => readSettings(args, unboundEnv))).toContain('SVC_RELAY_STREAM_TOKEN_HASH is not set')
    expect(problemsOf(() => readSettings(unboundArgs, env))).toContain('--session is not set')
  })
})

test('the number of the instance and the ports of its connection are read, and other texts are rejected', () => {
  const again = { SVC_RELAY_BINDING: '3', SVC_RELAY_PREFERRED_PORTS: '5000,4001,4000,5080' }
  const settings = readSettings(args, { ...env, ...again })
  expect(settings).toMatchObject({ session: { binding: 3 }, preferredPorts: cloudRelayPorts })
  expect(problemsOf(() => readSettings(args, { ...env, SVC_RELAY_BINDING: '0' }))).toContain('SVC_RELAY_BINDING is not')
  for (const text of ['5000', '5000,4001,4000,http'])
    expect(problemsOf(() => readSettings(args, { ...env, SVC_RELAY_PREFERRED_PORTS: text }))).toContain(
      'SVC_RELAY_PREFERRED_PORTS is not four ports',
    )
})

test('fixed ports are read, and texts that are no ports are rejected', () => {
  const fixed = { SVC_RELAY_SRTLA_PORT: '5000', SVC_RELAY_PUBLISH_PORT: '4001', SVC_RELAY_PLAY_PORT: '4000' }
  expect(readSettings(args, { ...env, ...fixed, SVC_RELAY_STATS_PORT: '5080' }).ports).toEqual(cloudRelayPorts)
  for (const text of ['65536', '-1', '40.5', 'http', ''])
    expect(problemsOf(() => readSettings(args, { ...env, SVC_RELAY_STATS_PORT: text }))).toContain(
      'SVC_RELAY_STATS_PORT is not a port up to 65535',
    )
})

test('all problems are reported together, each with its name', () => {
  const problems = problemsOf(() => readSettings(['--session', 'x', '--color', 'red'], { SVC_RELAY_CAP_MBPS: 'much' }))

  for (const line of [
    '--color is not an option',
    '--instance is not set',
    '--session is not a UUID',
    'SVC_RELAY_API_URL is not set',
    'SVC_RELAY_AUTH_SECRET is not set',
    'SVC_RELAY_CAP_MBPS is not between 0.1 and 100000 Mbit/s',
  ]) {
    expect(problems).toContain(line)
  }
})

test('an invalid secret is not shown', () => {
  const broken = { ...env, SVC_RELAY_AUTH_SECRET: 'two\nlines', SVC_RELAY_STREAM_TOKEN_HASH: 'short' }
  const problems = problemsOf(() => readSettings(args, broken))

  expect(problems).toContain('SVC_RELAY_AUTH_SECRET contains characters that are not allowed in a header')
  expect(problems).not.toMatch(/two|short/)
})

test.each([
  ['SVC_RELAY_SRTLA_LATENCY_MS_MIN', ['-1', '1.5', '10001', 'long', '']],
  ['SVC_RELAY_STREAM_WEAK_KBPS', ['49', '100001', 'low', '']],
  ['SVC_RELAY_STATS_ADDRESSES', ['none', 'MASKED', '']],
])('%s has to be one of its values', (name, texts) => {
  for (const text of texts)
    expect(problemsOf(() => readSettings(args, { ...env, [name]: text }))).toContain(`${name} is not`)
})

test.each(['short', 'with a space in it', 'plus+and%percent', 'a'.repeat(80)])(
  'the passphrase %j, which programs would read in different ways or refuse, is rejected',
  (passphrase) => {
    const problems = problemsOf(() => readSettings(args, { ...env, SVC_RELAY_SRT_PASSPHRASE: passphrase }))
    expect(problems).toContain('SVC_RELAY_SRT_PASSPHRASE is not 10 to 79 letters, digits, dots')
    expect(problems).not.toContain(passphrase)
  },
)

test('the server of the engine `sls` is required with that engine, and ignored with any other', () => {
  const server = {
    SVC_RELAY_SLS_API_URL: 'http://127.0.0.1:8080/',
    SVC_RELAY_SLS_API_KEY: 'key-of-the-api',
    SVC_RELAY_SLS_PUBLISH_PORT: '4001',
    SVC_RELAY_SLS_PLAY_PORT: '70000',
  }
  expect(readSettings(args, { ...env, ...server }).sls).toBeUndefined()
  const withSls = { ...env, SVC_RELAY_ENGINE: 'sls' }
  expect(problemsOf(() => readSettings(args, withSls))).toContain('SVC_RELAY_SLS_API_URL is not set')
  const problems = problemsOf(() => readSettings(args, { ...withSls, ...server, SVC_RELAY_SLS_API_KEY: 'two words' }))
  expect(problems).toContain('SVC_RELAY_SLS_PLAY_PORT is not a port from 1 to 65535')
  expect(problems).toContain('SVC_RELAY_SLS_API_KEY contains characters that are not allowed in a header')
  expect(readSettings(args, { ...withSls, ...server, SVC_RELAY_SLS_PLAY_PORT: '4000' }).sls).toEqual({
    apiUrl: 'http://127.0.0.1:8080',
    apiKey: 'key-of-the-api',
    publishPort: 4001,
    playPort: 4000,
  })
})

test('an API URL that is not http or https is rejected', () => {
  expect(problemsOf(() => readSettings(args, { ...env, SVC_RELAY_API_URL: 'file:///etc' }))).toContain(
    'SVC_RELAY_API_URL is not an http(s) URL',
  )
})
