/** A relay session as its readers see it. A row never leaves by any other way. */
import { z } from 'zod'
import type { RelaySessionRow } from '../../db/relay-sessions.ts'
import { openSessionToken } from '../../db/sealed-tokens.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { id, timestamp } from '../http/schemas.ts'

const DockSession = z.object({
  session_id: id,
  connection_id: z.string(),
  state: z.enum(['provisioning', 'active', 'grace', 'stopped']),
  reason: z.string(),
  region: z.string(),
  relay_host_masked: z.string().nullable(),
  created_at: timestamp,
  active_at: timestamp.nullable(),
  grace_ends_at: timestamp.nullable(),
  stopped_at: timestamp.nullable(),
})

/** The session object. The dock's view lacks `instance_id` and everything below it; a stopped one lacks the secrets. */
export const SessionView = DockSession.extend({
  instance_id: z.string().nullable().optional(),
  relay_host: z.string().nullable().optional(),
  pair_token: z.string().nullable().optional(),
  relay_ws_token: z.string().nullable().optional(),
  connect: z
    .object({ srtla_url: z.string(), srt_url: z.string(), player_url: z.string(), stats_url: z.string() })
    .nullable()
    .optional(),
})

export type SessionView = z.infer<typeof SessionView>

/** `owner`: the plugin, with all it needs to stream. `dock`: anything that may be looked at by others. */
export type Audience = 'owner' | 'dock'

export const View = z.object({ view: z.enum(['dock']).optional() })

export const audienceOf = ({ view }: { view?: 'dock' | undefined }): Audience => view ?? 'owner'

/** What the owner's view takes besides the row. */
export interface OwnerSecrets {
  readonly sealing: Sealing
  /** The owner's; only a live session is shown with it. */
  readonly streamToken: string
}

/** @param secrets left out for the dock, which sees nothing that they open. */
export function presentSession(row: RelaySessionRow, secrets?: OwnerSecrets): SessionView {
  const dock = {
    session_id: row.id,
    connection_id: row.connectionId,
    state: row.state,
    reason: row.reason,
    region: row.region,
    relay_host_masked: row.relayHost === null ? null : masked(row.relayHost),
    created_at: row.createdAt.toISOString(),
    active_at: row.activeAt?.toISOString() ?? null,
    grace_ends_at: row.graceEndsAt?.toISOString() ?? null,
    stopped_at: row.stoppedAt?.toISOString() ?? null,
  }
  if (!secrets) return dock
  const own = { ...dock, instance_id: row.instanceId }
  if (row.state === 'stopped') return own
  return {
    ...own,
    relay_host: row.relayHost,
    pair_token: openSessionToken(secrets.sealing, row, 'pair_token'),
    relay_ws_token: openSessionToken(secrets.sealing, row, 'relay_ws_token'),
    connect: connectionKit(row, secrets.streamToken),
  }
}

/** Where to stream to and play from; null until there is an instance. */
function connectionKit(row: RelaySessionRow, streamToken: string): SessionView['connect'] {
  if (row.relayHost === null || row.srtlaPort === null) return null
  const host = row.relayHost.includes(':') ? `[${row.relayHost}]` : row.relayHost
  return {
    srtla_url: `srtla://${host}:${row.srtlaPort}?streamid=publish/live/${streamToken}`,
    srt_url: `srt://${host}:${row.publishPort}?streamid=publish/live/${streamToken}`,
    player_url: `srt://${host}:${row.playPort}?streamid=play/live/${streamToken}`,
    stats_url: `http://${host}:${row.statsPort}/stats`,
  }
}

/** Enough to recognise a relay by, too little to reach it: streamers share their screens. */
function masked(host: string): string {
  if (/^\d+(\.\d+){3}$/.test(host)) return `${host.split('.').slice(0, 2).join('.')}.x.x`
  if (host.includes(':')) return `${host.split(':').slice(0, 2).join(':')}:x`
  return `${host.slice(0, 2)}***${host.includes('.') ? host.slice(host.indexOf('.')) : ''}`
}
