/** The relay session of the HTTP contract. Every reply that contains a session is built here, so that no row leaks. */
import { z } from 'zod'
import type { IngestRow, PathRow, PlayerKeyColumns, RelaySessionRow, ShownSessionRow } from '../../db/relay/sessions.ts'
import { openPlayKey, openSessionToken } from '../../db/sealed-tokens.ts'
import { absenceSeconds } from '../../domain/relay/health.ts'
import { shownIngest, summaryAgeSecondsMax } from '../../domain/relay/ingest.ts'
import { isEndingSoon, longestSeconds, relayStates, sessionDetails } from '../../domain/relay/session.ts'
import {
  judgeSignal,
  phoneCodes,
  playerCodes,
  relayCodes,
  type SignalPart,
  signalLevels,
} from '../../domain/relay/signal.ts'
import type { Config } from '../../platform/config/config.ts'
import { issueLinksTicket } from '../../platform/links-tickets.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { instanceSecret } from '../../providers/relay/instance-secrets.ts'
import { id, timestamp } from '../http/schemas.ts'

const partOf = <Code extends string>(codes: readonly [Code, ...Code[]]) =>
  z.object({
    level: z.enum(signalLevels).describe('Nothing is `good` while nothing arrives.'),
    code: z.enum(codes),
    since: timestamp.describe('Since when the code holds.'),
  })

export const Signal = z
  .object({ phone: partOf(phoneCodes), relay: partOf(relayCodes), player: partOf(playerCodes) })
  .describe(
    'The signal path: what is right or wrong with the end that publishes, the relay, and the end that plays. A client that does not know a code shows its level.',
  )
  .meta({ id: 'Signal' })

/** What only a live session has. */
export const LiveFields = z.object({
  ends_at: timestamp.optional().describe('The latest end, by the longest duration.'),
  idle_ends_at: timestamp
    .optional()
    .describe('From this time on the relay also ends when no stream has come in for ten minutes.'),
  ending_soon: z
    .boolean()
    .optional()
    .describe(
      'Whether `idle_ends_at` is near or past: an hour away, or a quarter of the time until `ends_at` where that is below three hours.',
    ),
  ingest: z
    .object({
      publishing: z.boolean(),
      bitrate_kbps: z.int(),
      links: z.int(),
      repeat_pct: z
        .number()
        .optional()
        .describe('Of the packets of the stream that came, those that had been sent before, in percent.'),
      usual_links: z
        .int()
        .optional()
        .describe('The most links that the stream had for some seconds, of the last five minutes.'),
      loss_pct: z
        .number()
        .optional()
        .describe('Of the packets of the last two seconds, those lost on the way, in percent.'),
      rtt_ms: z.number().optional().describe('The round trip between the phone and the relay.'),
      players: z.int().optional().describe('The players that are connected.'),
      since: timestamp,
    })
    .nullable()
    .optional()
    .describe(
      'The stream that the relay receives; null before its first report. `since`: of the value of `publishing`.',
    ),
  signal: Signal.optional(),
  engine: z.literal('none').optional().describe('Present when the relay has no program to forward video with.'),
})

export const Detail = z
  .enum(sessionDetails)
  .nullable()
  .describe(
    'What the reason leaves open. Of `provision_failed`, where it is known: the provider has no room, the service has reached a limit of its account at the provider, or its settings are wrong. Of `health_lost`: the relay is proved to be gone, or it is silent. Of `health_restored`: `relay_replaced` when another relay has taken over. Of an end: `relay_unstable` when the relays of the session were lost too often.',
  )

const DockSession = LiveFields.extend({
  session_id: id,
  connection_id: z.string(),
  state: z.enum(relayStates),
  reason: z.string(),
  detail: Detail,
  region: z.string(),
  relay_host_masked: z.string().nullable(),
  created_at: timestamp,
  active_at: timestamp.nullable(),
  grace_ends_at: timestamp.nullable(),
  stopped_at: timestamp.nullable(),
})

const ipv6Url = z
  .string()
  .optional()
  .describe('The same at the IPv6 address of the relay, where it has one. The links of an SRTLA group can use both.')

/**
 * The session object. The dock view has no `instance_id` and none of the fields below it; a stopped session has no
 * secrets.
 */
export const SessionView = DockSession.extend({
  instance_id: z.string().nullable().optional(),
  relay_host: z.string().nullable().optional(),
  pair_token: z.string().nullable().optional(),
  relay_ws_token: z.string().nullable().optional(),
  connect: z
    .object({
      srtla_url: z.string(),
      srt_url: z.string(),
      player_url: z.string(),
      stats_url: z.string(),
      srtla_url_v6: ipv6Url,
      srt_url_v6: ipv6Url,
      links_url: z
        .string()
        .optional()
        .describe('A page of the relay about the links of the stream. Valid for four to five minutes.'),
    })
    .nullable()
    .optional(),
}).meta({ id: 'RelaySession' })

export type SessionView = z.infer<typeof SessionView>

/** `owner`: the plugin, which needs the secrets to stream. `dock`: a view that may be visible on stream. */
export type Audience = 'owner' | 'dock'

export const View = z.object({ view: z.enum(['dock']).optional() })

export const audienceOf = ({ view }: { view?: 'dock' | undefined }): Audience => view ?? 'owner'

/** What the owner's view needs in addition to the row. */
export interface OwnerSecrets {
  readonly sealing: Sealing
  /** The owner's stream token. It is part of a live session's view only. */
  readonly streamToken: string
  /** Part of each address of a relay that requires encryption. */
  readonly srtPassphrase: string | undefined
  /** The master secrets of relays, from which the tickets for their pages follow. */
  readonly relayAuthSecrets: readonly string[]
}

export type SessionLimits = Pick<
  Config['relay'],
  'maxSessionSeconds' | 'healthIntervalSeconds' | 'healthTimeoutSeconds'
>

type SessionTimes = Pick<ShownSessionRow, 'createdAt' | 'activeAt' | 'graceStartedAt'>

/** @param secrets omitted for the dock view. */
export function presentSession(row: ShownSessionRow, limits: SessionLimits, secrets?: OwnerSecrets): SessionView {
  const dock = {
    session_id: row.id,
    connection_id: row.connectionId,
    state: row.state,
    reason: row.reason,
    detail: row.detail,
    region: row.region,
    relay_host_masked: row.relayHost === null ? null : maskHost(row.relayName ?? row.relayHost),
    created_at: row.createdAt.toISOString(),
    active_at: row.activeAt?.toISOString() ?? null,
    grace_ends_at: row.graceEndsAt?.toISOString() ?? null,
    stopped_at: row.stoppedAt?.toISOString() ?? null,
    ...presentLiveFields(row, limits),
  }
  if (!secrets) return dock
  const own = { ...dock, instance_id: row.instanceId }
  if (row.state === 'stopped') return own
  return {
    ...own,
    relay_host: row.relayName ?? row.relayHost,
    pair_token: openSessionToken(secrets.sealing, row, 'pair_token'),
    relay_ws_token: openSessionToken(secrets.sealing, row, 'relay_ws_token'),
    connect: connectionKit(row, secrets),
  }
}

export function presentLiveFields(
  row: Pick<ShownSessionRow, keyof IngestRow | keyof PathRow | 'state' | 'reason' | keyof SessionTimes>,
  { maxSessionSeconds, healthIntervalSeconds, healthTimeoutSeconds }: SessionLimits,
): z.infer<typeof LiveFields> {
  if (row.state === 'stopped') return {}
  const createdAt = row.createdAt.getTime()
  return {
    ends_at: new Date(createdAt + longestSeconds(maxSessionSeconds) * 1000).toISOString(),
    idle_ends_at: new Date(createdAt + maxSessionSeconds * 1000).toISOString(),
    ending_soon: isEndingSoon(createdAt, maxSessionSeconds, Date.now()),
    ingest: presentIngest(row, healthIntervalSeconds),
    signal: presentSignal(row, healthIntervalSeconds, healthTimeoutSeconds),
    ...(row.engine === 'none' ? { engine: row.engine } : {}),
  }
}

function presentIngest(row: IngestRow, healthIntervalSeconds: number): z.infer<typeof LiveFields>['ingest'] {
  const { isPublishing, publishingSince, ingestAt } = row
  if (isPublishing === null || publishingSince === null || ingestAt === null) return null
  const last = { isPublishing, bitrateKbps: row.bitrateKbps ?? 0, links: row.links ?? 0, since: publishingSince }
  const shown = shownIngest({ ...last, at: ingestAt, ageSeconds: row.ingestAgeSeconds ?? 0 }, healthIntervalSeconds)
  return {
    publishing: shown.isPublishing,
    bitrate_kbps: shown.bitrateKbps,
    links: shown.links,
    ...(shown.isPublishing && row.repeatPct !== null ? { repeat_pct: row.repeatPct } : {}),
    ...(shown.isPublishing && row.usualLinks !== null ? { usual_links: row.usualLinks } : {}),
    ...(shown.isPublishing && row.lossPct !== null ? { loss_pct: row.lossPct } : {}),
    ...(shown.isPublishing && row.rttMs !== null ? { rtt_ms: row.rttMs } : {}),
    ...(row.players === null ? {} : { players: row.players }),
    since: shown.since.toISOString(),
  }
}

function presentSignal(
  row: Parameters<typeof presentLiveFields>[0],
  healthIntervalSeconds: number,
  healthTimeoutSeconds: number,
): z.infer<typeof Signal> {
  const { isPublishing, publishingSince, ingestAt, phoneCode, phoneSince, playerCode, playerSince } = row
  const isJudged = isPublishing !== null && publishingSince && ingestAt && phoneCode && phoneSince && playerCode
  const signal = judgeSignal<Date>(
    {
      ...row,
      hasEngine: row.engine !== 'none',
      stream: isJudged
        ? {
            phone: { code: phoneCode, since: phoneSince },
            player: { code: playerCode, since: playerSince ?? phoneSince },
            isPublishing,
            publishingSince,
            judgedAt: ingestAt,
            ageSeconds: row.ingestAgeSeconds ?? 0,
          }
        : null,
      isSuspect: row.isSuspect === true,
      isPathCut: (row.pathSilentSeconds ?? 0) > absenceSeconds('api', healthTimeoutSeconds),
    },
    summaryAgeSecondsMax(healthIntervalSeconds),
  )
  return { phone: presentPart(signal.phone), relay: presentPart(signal.relay), player: presentPart(signal.player) }
}

const presentPart = <Code extends string>({ level, code, since }: SignalPart<Code, Date>) => ({
  level,
  code,
  since: since.toISOString(),
})

/** The addresses to publish to and to play from; null before an instance is bound. */
export function connectionKit(
  row: RelaySessionRow & Partial<PlayerKeyColumns>,
  { sealing, streamToken, srtPassphrase, relayAuthSecrets }: OwnerSecrets,
): SessionView['connect'] {
  if (row.relayHost === null || row.srtlaPort === null) return null
  const host = row.relayName ?? (row.relayHost.includes(':') ? `[${row.relayHost}]` : row.relayHost)
  const encryption = srtPassphrase === undefined ? '' : `&passphrase=${encodeURIComponent(srtPassphrase)}`
  const publish = `?streamid=publish/live/${streamToken}${encryption}`
  const v6 = row.relayHostV6
  return {
    srtla_url: `srtla://${host}:${row.srtlaPort}${publish}`,
    srt_url: `srt://${host}:${row.publishPort}${publish}`,
    player_url: `srt://${host}:${row.playPort}?streamid=play/live/${playSecret(row, sealing) ?? streamToken}${encryption}`,
    stats_url: `http://${host}:${row.statsPort}/stats`,
    ...(row.instanceId === null
      ? {}
      : {
          links_url: `http://${host}:${row.statsPort}/links?ticket=${linksTicket(relayAuthSecrets, row.instanceId, row.id)}`,
        }),
    ...(v6 === null
      ? {}
      : {
          srtla_url_v6: `srtla://[${v6}]:${row.srtlaPort}${publish}`,
          srt_url_v6: `srt://[${v6}]:${row.publishPort}${publish}`,
        }),
  }
}

const playSecret = (row: Partial<PlayerKeyColumns>, sealing: Sealing): string | undefined =>
  row.playKeyId && row.playKeySealed
    ? openPlayKey(sealing, { id: row.playKeyId, keySealed: row.playKeySealed })
    : undefined

const linksTicket = (masterSecrets: readonly string[], instanceId: string, sessionId: string): string =>
  issueLinksTicket(
    masterSecrets.map((secret) => instanceSecret(secret, instanceId)),
    sessionId,
    Date.now(),
  )

/** Masks a host so that a relay can be recognised but not reached: streamers share their screens. */
function maskHost(host: string): string {
  if (/^\d+(\.\d+){3}$/.test(host)) return `${host.split('.').slice(0, 2).join('.')}.x.x`
  if (host.includes(':')) return `${host.split(':').slice(0, 2).join(':')}:x`
  return `${host.slice(0, 2)}***${host.includes('.') ? host.slice(host.indexOf('.')) : ''}`
}
