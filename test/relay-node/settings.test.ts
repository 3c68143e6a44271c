import { expect, test } from 'vitest'
import { readSettings, SettingsError } from '../../relay-node/settings.ts'

const args = [
  ...['--instance', 'relay-1', '--session', '6f1c3c54-9c44-4b6e-8f0e-6b1c2f6f3a10'],
  ...['--region', 'eu-1', '--state-file', 'relay-1.json'],
]
const env = {
  SVC_RELAY_API_URL: 'http://localhost:8080/',
  SVC_RELAY_AUTH_SECRET: 'between-relay-and-plane',
  SVC_RELAY_STREAM_TOKEN: 'Ab12Cd34',
  SVC_RELAY_CAP_MBPS: '48',
}

const problemsOf = (given: () => unknown): string => {
  try {
    given()
  } catch (error) {
    if (error instanceof SettingsError) return error.message
    throw error
  }
  return ''
}

test('a relay knows who it is from its arguments and its secrets from the environment', () => {
  expect(readSettings(args, env)).toEqual({
    instanceId: 'relay-1',
    sessionId: '6f1c3c54-9c44-4b6e-8f0e-6b1c2f6f3a10',
    region: 'eu-1',
    stateFile: 'relay-1.json',
    apiUrl: 'http://localhost:8080',
    authSecret: 'between-relay-and-plane',
    streamToken: 'Ab12Cd34',
    healthIntervalSeconds: 10,
    capMbps: 48,
    host: '127.0.0.1',
  })
})

test('all mistakes are told at once, each by its name', () => {
  const problems = problemsOf(() => readSettings(['--session', 'x', '--color', 'red'], { SVC_RELAY_CAP_MBPS: 'much' }))

  for (const line of [
    '--color is unknown',
    '--instance is not set',
    '--session is no UUID',
    'SVC_RELAY_API_URL is not set',
    'SVC_RELAY_AUTH_SECRET is not set',
    'SVC_RELAY_CAP_MBPS is not between 0.1 and 100000 Mbit/s',
  ]) {
    expect(problems).toContain(line)
  }
})

test('a secret that is wrong is not shown', () => {
  const broken = { ...env, SVC_RELAY_AUTH_SECRET: 'two\nlines', SVC_RELAY_STREAM_TOKEN: 'short' }
  const problems = problemsOf(() => readSettings(args, broken))

  expect(problems).toContain('SVC_RELAY_AUTH_SECRET holds what a header may not carry')
  expect(problems).not.toMatch(/two|short/)
})

test('an address that is not of the web is refused', () => {
  expect(problemsOf(() => readSettings(args, { ...env, SVC_RELAY_API_URL: 'file:///etc' }))).toContain(
    'SVC_RELAY_API_URL is no http(s) URL',
  )
})
