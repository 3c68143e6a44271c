/** The environment variables of a relay that do not depend on where it runs. See `relay-node/settings.ts`. */
import type { SlsServer } from '../../domain/relay/engines.ts'
import { portNames } from '../../domain/relay/ports.ts'
import type { RelaySpec } from './provider.ts'

export const relayVariables = (spec: RelaySpec): Readonly<Record<string, string>> => ({
  SVC_RELAY_API_URL: spec.apiUrl,
  SVC_RELAY_AUTH_SECRET: spec.relayAuthSecret,
  SVC_RELAY_HEALTH_INTERVAL_SECONDS: String(spec.healthIntervalSeconds),
  SVC_RELAY_CAP_MBPS: String(spec.capMbps),
  SVC_RELAY_ENGINE: spec.engine,
  ...(spec.sls ? slsVariables(spec.sls) : {}),
  SVC_RELAY_SRT_PASSPHRASE: spec.srtPassphrase ?? '',
  ...(spec.srtlaLatencyMillisMin === undefined
    ? {}
    : { SVC_RELAY_SRTLA_LATENCY_MS_MIN: String(spec.srtlaLatencyMillisMin) }),
  ...(spec.binding === undefined ? {} : { SVC_RELAY_BINDING: String(spec.binding) }),
  ...(spec.ports ? { SVC_RELAY_PREFERRED_PORTS: portNames.map((name) => spec.ports?.[name]).join(',') } : {}),
  ...(spec.streamWeakKbps === undefined ? {} : { SVC_RELAY_STREAM_WEAK_KBPS: String(spec.streamWeakKbps) }),
  ...(spec.statsAddresses === undefined ? {} : { SVC_RELAY_STATS_ADDRESSES: spec.statsAddresses }),
})

const slsVariables = ({ apiUrl, apiKey, publishPort, playPort }: SlsServer) => ({
  SVC_RELAY_SLS_API_URL: apiUrl,
  SVC_RELAY_SLS_API_KEY: apiKey,
  SVC_RELAY_SLS_PUBLISH_PORT: String(publishPort),
  SVC_RELAY_SLS_PLAY_PORT: String(playPort),
})
