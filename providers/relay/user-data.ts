/**
 * The user data of an instance in a cloud: what cloud-init does at its first boot. It has the instance's own secret,
 * and neither a session nor a stream token, which the relay gets in the reply to a report.
 */
import { readFileSync } from 'node:fs'
import { cloudRelayPorts } from '../../domain/relay/ports.ts'
import type { Config } from '../../platform/config/config.ts'
import { RelayProviderError, type RelaySpec } from './provider.ts'
import type { RelayBundle } from './relay-bundle.ts'
import { relayVariables } from './relay-variables.ts'

const template = new URL('../../deploy/relay/cloud-init.yaml', import.meta.url)
const installScript = new URL('../../deploy/relay/install.sh', import.meta.url)
/** The limit of EC2, which is the lowest. */
const bytesMax = 16_384

/** @returns a function that creates the user data of an instance. The api serves the bundle. */
export const createUserData =
  ({ apiUrl }: Pick<Config, 'apiUrl'>, { fileName, sha256 }: Pick<RelayBundle, 'fileName' | 'sha256'>) =>
  (spec: RelaySpec): string =>
    createRelayUserData({ spec, agentUrl: `${apiUrl}/relay-node/${fileName}`, agentSha256: sha256 })

export interface UserDataRequest {
  readonly spec: RelaySpec
  /** Where the instance downloads the program of a relay. */
  readonly agentUrl: string
  readonly agentSha256: string
}

/** Equal requests have equal user data, since EC2 compares repeated calls. */
export function createRelayUserData({ spec, agentUrl, agentSha256 }: UserDataRequest): string {
  const values: Readonly<Record<string, string>> = {
    environment: environmentFile({ ...relayVariables(spec), ...cloudVariables(spec) }),
    install_script: readFileSync(installScript, 'utf8'),
    agent_url: agentUrl,
    agent_sha256: agentSha256,
    engine: spec.engine,
  }
  const text = readFileSync(template, 'utf8').replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`the template of the user data has an unknown value ${name}`)
    // A JSON string is a YAML string too.
    return JSON.stringify(value)
  })
  if (Buffer.byteLength(text) > bytesMax) throw refusal(`is longer than ${bytesMax} bytes`)
  return text
}

const cloudVariables = ({ instanceId, region }: RelaySpec) => ({
  INSTANCE_ID: instanceId,
  REGION: region,
  SVC_RELAY_HOST: '0.0.0.0',
  SVC_RELAY_SRTLA_PORT: String(cloudRelayPorts.srtlaPort),
  SVC_RELAY_PUBLISH_PORT: String(cloudRelayPorts.publishPort),
  SVC_RELAY_PLAY_PORT: String(cloudRelayPorts.playPort),
  SVC_RELAY_STATS_PORT: String(cloudRelayPorts.statsPort),
})

/** In the syntax of systemd's `EnvironmentFile`, with every value in double quotes. */
function environmentFile(variables: Readonly<Record<string, string>>): string {
  const lines = Object.entries(variables).map(([name, value]) => {
    if (!/^[\x20-\x7e]*$/.test(value)) throw refusal(`cannot contain ${name}: it has characters other than ASCII`)
    return `${name}="${value.replaceAll(/["\\$`]/g, '\\$&')}"\n`
  })
  return lines.join('')
}

const refusal = (problem: string) =>
  new RelayProviderError(`the user data of an instance ${problem}`, 'give_up', { detail: 'configuration' })
