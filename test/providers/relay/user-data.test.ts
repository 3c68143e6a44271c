/** The user data that installs and starts a relay in a cloud. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { cloudRelayPorts } from '../../../domain/relay/ports.ts'
import { RelayProviderError, type RelaySpec } from '../../../providers/relay/provider.ts'
import { createUserData } from '../../../providers/relay/user-data.ts'
import { readSettings } from '../../../relay-node/settings.ts'
import { temporaryFolder } from '../../support/folders.ts'

interface CloudConfig {
  readonly ssh_pwauth: boolean
  readonly write_files: readonly { path: string; content: string; permissions?: string; owner?: string }[]
  readonly runcmd: readonly (readonly string[])[]
}

const spec: RelaySpec = {
  instanceId: 'aws-0123456789abcdef',
  sessionId: '6f1c3c54-9c44-4b6e-8f0e-6b1c2f6f3a10',
  region: 'eu-1',
  zone: 0,
  streamTokenHash: { key: 'a'.repeat(43), hash: 'b'.repeat(43) },
  apiUrl: 'https://api.example.com',
  relayAuthSecret: 'aws-0123456789abcdef.0123abcd',
  healthIntervalSeconds: 10,
  capMbps: 48,
  engine: 'auto',
}
const bundle = { fileName: 'relay-node-0.2.0-0123456789ab.mjs', sha256: 'ab'.repeat(32) }

const textOf = (changes: Partial<RelaySpec> = {}) =>
  createUserData({ apiUrl: spec.apiUrl }, bundle)({ ...spec, ...changes })
const configOf = (changes: Partial<RelaySpec> = {}) => parse(textOf(changes)) as CloudConfig
const fileOf = ({ write_files }: CloudConfig, path: string) => write_files.find((file) => file.path === path)
const environmentFileOf = (changes: Partial<RelaySpec> = {}) => fileOf(configOf(changes), '/etc/relay-node/environment')

/** The variables as a shell reads them, which has the rules of systemd for values in double quotes. */
async function variablesOf(changes: Partial<RelaySpec> = {}): Promise<Record<string, string>> {
  const file = join(await temporaryFolder(), 'environment')
  await writeFile(file, environmentFileOf(changes)?.content ?? '')
  const { stdout } = await promisify(execFile)(
    'sh',
    ['-c', `set -a; . "${file}"; exec "$0" -p 'JSON.stringify(process.env)'`, process.execPath],
    { env: {} },
  )
  return JSON.parse(stdout)
}

test('the program on the instance gets settings that it accepts, and starts without a session', async () => {
  const unit = fileOf(configOf(), '/etc/systemd/system/relay-node.service')?.content ?? ''
  const variables = await variablesOf()
  const command = /^ExecStart=\/usr\/bin\/env node \/opt\/relay-node\/relay-node\.mjs (.*)$/m.exec(unit)?.[1] ?? ''
  const args = command.split(' ').map((word) => variables[/^\$\{(\w+)\}$/.exec(word)?.[1] ?? ''] ?? word)

  expect(readSettings(args, variables)).toMatchObject({
    instanceId: spec.instanceId,
    region: 'eu-1',
    session: null,
    apiUrl: spec.apiUrl,
    authSecret: spec.relayAuthSecret,
    healthIntervalSeconds: 10,
    capMbps: 48,
    engine: 'auto',
    host: '0.0.0.0',
    ports: cloudRelayPorts,
  })
})

test('user data has no session and no stream token, and only root can read the secret of the instance', () => {
  const text = textOf()
  expect(text).not.toContain(spec.sessionId)
  expect(text).not.toContain(spec.streamTokenHash?.hash)
  expect(text.split(spec.relayAuthSecret)).toHaveLength(2)
  expect(environmentFileOf()).toMatchObject({ permissions: '0600', owner: 'root:root' })
  expect(configOf().ssh_pwauth).toBe(false)
})

test('the program is downloaded from the api, and must have the digest of the bundle', () => {
  const install = configOf().runcmd.find(([, script]) => script === '/opt/relay-node/install.sh')
  expect(install).toEqual([
    'sh',
    '/opt/relay-node/install.sh',
    `https://api.example.com/relay-node/${bundle.fileName}`,
    bundle.sha256,
    'auto',
  ])
})

test('equal requests have equal user data, below the limit of EC2', () => {
  expect(textOf()).toBe(textOf())
  expect(textOf()).toMatch(/^#cloud-config\n/)
  expect(Buffer.byteLength(textOf())).toBeLessThan(16_384)
})

test('the settings of the stream reach the relay, and an older request leaves them to it', async () => {
  const variables = await variablesOf({ srtlaLatencyMillisMin: 2_500, statsAddresses: 'full', streamWeakKbps: 900 })
  expect(variables).toMatchObject({
    SVC_RELAY_SRTLA_LATENCY_MS_MIN: '2500',
    SVC_RELAY_STATS_ADDRESSES: 'full',
    SVC_RELAY_STREAM_WEAK_KBPS: '900',
  })
  expect(Object.keys(await variablesOf())).not.toContain('SVC_RELAY_SRTLA_LATENCY_MS_MIN')
})

describe('hostile values', () => {
  const hostile = `"'\`$(touch /tmp/x)\${HOME}\\ : # - {{agent_url}} $& %h "]`

  test('reach the program unchanged', async () => {
    const sls = { apiUrl: `http://127.0.0.1/?q=${hostile}`, apiKey: hostile, publishPort: 4001, playPort: 4000 }
    const variables = await variablesOf({ engine: 'sls', sls, srtPassphrase: hostile })
    expect(variables.SVC_RELAY_SLS_API_KEY).toBe(hostile)
    expect(variables.SVC_RELAY_SRT_PASSPHRASE).toBe(hostile)
    expect(variables.SVC_RELAY_SLS_API_URL).toBe(sls.apiUrl)
    expect(
      Object.keys(variables).filter((name) => !/^(SVC_RELAY_\w+|INSTANCE_ID|REGION|PWD|OLDPWD|SHLVL|_)$/.test(name)),
    ).toEqual([])
  })

  test('change nothing else in the user data', () => {
    const lists = ({ write_files, runcmd }: CloudConfig) => [write_files.slice(1), runcmd]
    expect(lists(configOf({ srtPassphrase: hostile }))).toEqual(lists(configOf()))
  })

  test.each(['two\nlines', 'a\u0000b', 'ümlaut', '🎥'])('%j is refused without being shown', (srtPassphrase) => {
    const attempt = () => textOf({ srtPassphrase })
    expect(attempt).toThrow(RelayProviderError)
    expect(attempt).toThrow('cannot contain SVC_RELAY_SRT_PASSPHRASE')
    expect(attempt).not.toThrow(srtPassphrase)
  })

  test('longer than the limit of EC2 are refused', () => {
    expect(() => textOf({ srtPassphrase: 'x'.repeat(16_384) })).toThrow('longer than 16384 bytes')
  })
})
