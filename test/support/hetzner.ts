/** A Hetzner relay provider against the double of the API, for tests. */
import { Writable } from 'node:stream'
import { onTestFinished } from 'vitest'
import { type RegionConfig, regions } from '../../platform/config/regions.ts'
import { createLog } from '../../platform/log.ts'
import { createHetznerRelayProvider } from '../../providers/relay/hetzner.ts'
import { createInstanceId } from '../../providers/relay/instance-secrets.ts'
import { RelayProviderError, type RelaySpec } from '../../providers/relay/provider.ts'
import { type HetznerServer, startHetznerServer } from './hetzner-server.ts'

export const never = () => new AbortController().signal

export const hetznerRegion = (name = 'eu', settings: object = {}, more: object = {}): RegionConfig => {
  const hetzner = { location: 'fsn1', server_type: 'cx22', image: 'debian-13', ...settings }
  const setting = { region: name, display_name: name, provider: 'hetzner', hetzner, ...more }
  const [region] = regions.parse(JSON.stringify([setting]))
  if (!region) throw new Error('no region')
  return region
}

export const relaySpec = (more: Partial<RelaySpec> = {}): RelaySpec => ({
  instanceId: createInstanceId('hetzner'),
  sessionId: null,
  region: 'eu',
  zone: 0,
  streamTokenHash: null,
  apiUrl: 'https://api.example',
  relayAuthSecret: 'secret-of-the-instance',
  healthIntervalSeconds: 10,
  capMbps: 48,
  engine: 'none',
  ...more,
})

/** The double of the API, closed at the end of the test. */
export async function givenHetzner(): Promise<HetznerServer> {
  const api = await startHetznerServer()
  onTestFinished(() => api.close())
  return api
}

type ProviderOptions = Partial<Parameters<typeof createHetznerRelayProvider>[0]>

export function createHetznerRelays(api: HetznerServer, options: ProviderOptions = {}) {
  const lines: string[] = []
  const destination = new Writable({
    write(chunk, _, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const relays = createHetznerRelayProvider({
    region: hetznerRegion(),
    fleetName: undefined,
    token: api.token,
    apiUrl: api.apiUrl,
    log: createLog('test', 'trace', destination),
    userData: ({ instanceId }) => `#cloud-config\nhostname: ${instanceId}\n`,
    pollMillis: 10,
    ...options,
  })
  return { relays, lines }
}

/** The double and a provider of the region `eu`. */
export async function givenHetznerRelays(options: ProviderOptions = {}) {
  const api = await givenHetzner()
  return { api, ...createHetznerRelays(api, options) }
}

/** The error of a call that has to fail. */
export async function failureOf(call: Promise<unknown>): Promise<RelayProviderError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof RelayProviderError) return error
  throw new Error('the call did not fail with a RelayProviderError', { cause: error })
}
