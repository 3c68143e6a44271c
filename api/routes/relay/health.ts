/**
 * Health reports of relays. A report without a change costs a share of one batched write and reaches no workflow. A
 * relay that runs without a session reports too, and its report waits for an assignment.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { z } from 'zod'
import type { Sql } from '../../../db/connection.ts'
import { recordPorts } from '../../../db/fleet/kept-ports.ts'
import { markOrphan } from '../../../db/fleet/orphans.ts'
import type { UnboundInstance } from '../../../db/fleet/unbound-instances.ts'
import { triggerJob } from '../../../db/operations/jobs.ts'
import type { ReportedSession } from '../../../db/relay/health.ts'
import {
  findRelayAdmission,
  type RelayAdmission,
  recordPlayKeyUse,
  recordStreamFormat,
  toRelayAdmission,
} from '../../../db/relay-admissions.ts'
import { openStreamToken } from '../../../db/sealed-tokens.ts'
import { bindReplacement } from '../../../db/transactions/bind-replacement.ts'
import { assignmentStatus } from '../../../domain/fleet/instance-assignment.ts'
import { unboundWaitSecondsMax } from '../../../domain/fleet/warm-instances.ts'
import { heldReportSecondsMax, watchedReportSeconds } from '../../../domain/relay/health.ts'
import { ingestEngines, readIngest } from '../../../domain/relay/ingest.ts'
import { chooseSlate, onLossModes } from '../../../domain/relay/on-loss.ts'
import { relayRefusals } from '../../../domain/relay/refusals.ts'
import { isInGraceFor, relayStates } from '../../../domain/relay/session.ts'
import { readStreamFormat, showStreamFormat } from '../../../domain/relay/stream-format.ts'
import type { Sealing } from '../../../platform/sealing.ts'
import type { OperationExamples } from '../../http/operation-text.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok, type Reply } from '../../http/replies.ts'
import { id, storableText } from '../../http/schemas.ts'
import type { Services } from '../../services.ts'
import { builtInSlate } from '../../slates/built-in-slate.ts'
import { route } from '../route.ts'
import { ReportedEvents, recordReportedEvents } from './reported-events.ts'
import { StreamFormat } from './reported-formats.ts'
import { ReportedPathEvents, recordReportedPathEvents } from './reported-path-events.ts'

/**
 * A member that is no valid value counts as missing: a report with broken statistics still proves that the relay runs.
 * Unknown members, and so all free text, are dropped.
 */
const lenient = <Value>(schema: z.ZodType<Value>) => schema.optional().catch(undefined)
const count = lenient(z.number().min(0))

const LastRefused = lenient(z.object({ reason: z.enum(relayRefusals), age_ms: z.number().min(0) }))

const Stats = z.object({
  publishing: lenient(z.boolean()).describe('Whether a stream comes in.'),
  bitrate_kbps: count,
  rtt_ms: count,
  loss_pct: count,
  repeat_pct: count.describe('Of the packets of the stream that came, those that had been sent before, in percent.'),
  links: count,
  players: count,
  stalled_players: count.describe('The players that are connected and read nothing.'),
  usual_links: count.describe('The most links that the publisher had for some seconds, of the last five minutes.'),
  usual_bitrate_kbps: count.describe('About that of the last minute of the publisher.'),
  last_call_age_ms: count.describe('Since a caller proved its address at the ports for publishers.'),
  last_refused: lenient(z.object({ publish: LastRefused, play: LastRefused })).describe(
    'The last refusal on each side since a caller of that side was let in.',
  ),
  bytes_total: count.describe('The bytes that the process of the relay has received. A new process begins at 0.'),
  publishing_ms_total: count.describe(
    'The milliseconds in which the process of the relay has received data: of each stream from its first packet to its last one, without gaps of more than 3 s. Without it the time is judged from pairs of reports.',
  ),
  peak_bitrate_kbps: count.describe('The highest bitrate of the process, over a second or a little more.'),
  started_at_ms: count.describe(
    'When the process of the relay started, in milliseconds since 1970. Without it a smaller `bytes_total` counts as that of an older report.',
  ),
  engine: lenient(z.enum(ingestEngines)),
  refused: lenient(
    z.object(Object.fromEntries(relayRefusals.map((reason) => [reason, lenient(z.int().min(0))]))),
  ).describe('How many callers the process of the relay has refused, by reason. Not stored.'),
  groups: lenient(z.array(z.object({ connections: z.array(z.unknown()).optional() }))).describe(
    'The form of older relays. No stream comes in when no group has a connection.',
  ),
})

/**
 * When the relay should report again at once: the next wait or, with an assignment, the first report of the session.
 */
const soonSeconds = 0.2
/** When a relay reports again that runs before it is bound: the session becomes active with the first report after. */
const untilBoundSeconds = 1

/** Undefined when the report does not state whether a stream comes in. */
const isIdle = ({ publishing, groups }: z.infer<typeof Stats>): boolean | undefined =>
  publishing === undefined ? groups?.every((group) => (group.connections ?? []).length === 0) : !publishing

const port = z.int().min(1).max(65_535)
const Ports = z.object({ srtla: port, publish: port, play: port, stats: port })

const Body = z.object({
  session_id: id
    .or(z.literal(''))
    .nullable()
    .describe('Null, or an empty text, as long as the relay runs without a session.'),
  instance_id: storableText(128),
  wait_seconds: lenient(z.number().min(0)).describe(
    'How long the reply may wait: without a session for an assignment, at most 30 s and a third of the health timeout; with one for a change of it, at most 10 s and a third of the health timeout. A relay whose connection ends meanwhile is suspect.',
  ),
  is_extra: lenient(z.boolean()).describe(
    'Whether the report was sent beside the usual ones, because of an event of the stream. Its relay keeps the usual one open.',
  ),
  events: ReportedEvents,
  path_events: ReportedPathEvents,
  binding: lenient(z.int().min(1).max(2_147_483_647)).describe(
    'The number of the instance in its session, as its assignment states it. 1 where it is absent.',
  ),
  ports: lenient(Ports).describe('Those that the relay has bound. Sent with its first reports with a session.'),
  epoch: lenient(id).describe('That of the last reply that had one.'),
  admission_revision: lenient(z.int().min(0).nullable()).describe(
    'That of what the relay admits by; null for none. To another one than the present the reply contains the present `admission`. A relay that leaves it out gets the stream token with its assignment.',
  ),
  used_play_keys: lenient(z.array(z.string().regex(/^[\w-]{43}$/)).max(64)).describe(
    'SHA-256 of the play keys that were used since the last report, in base64url.',
  ),
  stream_format: lenient(StreamFormat).describe(
    'The format of the stream, until a report with it was accepted, and again when it changes. A replacement of the relay gets it with its `admission`.',
  ),
  observed_at: z.iso.datetime({ offset: true }).optional(),
  stats: Stats.optional(),
})

const Admission = z
  .object({
    revision: z.int(),
    stream_token: z
      .object({ key: z.string(), hash: z.string() })
      .describe('HMAC-SHA256 of the stream token, with its key. Both in base64url.'),
    token_plays: z.boolean().describe('Whether the stream token admits players too.'),
    play_keys: z.array(z.string()).describe('SHA-256 of the play keys, in base64url.'),
    on_loss: z.enum(onLossModes).describe('What players see while no stream arrives.'),
    slate: z
      .string()
      .nullable()
      .describe('The digest of the image that may be needed, for `GET /relay/slate/{digest}`; null for none.'),
    stream_format: StreamFormat.nullable().describe(
      'The last one that a relay of the session has reported; null before.',
    ),
  })
  .describe('What the relay recognises the callers by that it admits.')

const HealthReply = z.object({
  state: z.enum(relayStates).nullable().describe('The state of the session; null without one.'),
  desired: z.enum(['run', 'stop']),
  report_in_seconds: z.number(),
  epoch: id
    .nullable()
    .optional()
    .describe(
      'Only in replies to reports with a session. It changes when the database was restored. To a report with another one a session that is stopped or has another instance counts as unknown.',
    ),
  admission: Admission.optional().describe(
    'In replies to reports with another `admission_revision`. The relay closes the connections that it would not admit.',
  ),
  assignment: z
    .object({
      session_id: id,
      admission: Admission.optional(),
      stream_token: z
        .string()
        .optional()
        .describe('Instead of `admission`, for a relay that does not send `admission_revision`.'),
      binding: z.int().describe('The number of the instance in the session. Reports repeat it.'),
      ports: Ports.optional().describe('The ports that the relay takes if they are free.'),
    })
    .nullable()
    .optional()
    .describe(
      'Only in replies to reports without a session: the session that the relay serves from now on, and what it admits by. Reports after it have this `session_id`. A relay that has lost its assignment gets it again.',
    ),
})

const reportExamples: OperationExamples = {
  requests: {
    streaming: {
      summary: 'A relay that receives a stream',
      value: {
        session_id: '8f14e45f-ceea-4f67-9d3b-2a6c1e7b5d04',
        instance_id: 'i-0f2d8c4b6a1e3957d',
        observed_at: '2026-08-01T18:30:00.000Z',
        stats: {
          publishing: true,
          bitrate_kbps: 5200,
          rtt_ms: 42,
          loss_pct: 0.2,
          repeat_pct: 0.4,
          links: 3,
          players: 1,
          bytes_total: 4_680_000_000,
          publishing_ms_total: 7_200_000,
          peak_bitrate_kbps: 6400,
          started_at_ms: 1_785_607_200_000,
          engine: 'srt-live-transmit',
        },
      },
    },
    unbound: {
      summary: 'A relay without a session',
      value: { session_id: null, instance_id: 'i-0f2d8c4b6a1e3957d', wait_seconds: 10 },
    },
  },
  replies: {
    200: {
      run: { summary: 'Keep running', value: { state: 'active', desired: 'run', report_in_seconds: 5 } },
      assigned: {
        summary: 'A session for a relay without one',
        value: {
          state: 'provisioning',
          desired: 'run',
          report_in_seconds: 0.2,
          assignment: {
            session_id: '8f14e45f-ceea-4f67-9d3b-2a6c1e7b5d04',
            admission: {
              revision: 0,
              stream_token: {
                key: 'PJr2Ln1y3XkS8sPzqW4yVvQ0m5uT7bK9aD6fE1gH2jI',
                hash: 'mB3xT0cVnQ8rYwE5uIoP1aSdF7gHjKlZxCvBnM2qW4E',
              },
              token_plays: true,
              play_keys: ['kL9pO8iU7yT6rE5wQ4aS3dF2gH1jK0lZxXcCvVbBnNm'],
              on_loss: 'slate',
              slate: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
              stream_format: {
                video: { codec: 'hevc', profile: 'main', width: 1920, height: 1080, frame_rate: 59.94 },
                audio: { codec: 'aac_adts', sample_rate: 48_000, channels: 2 },
              },
            },
            binding: 1,
          },
        },
      },
    },
  },
}

export const report = route.relay({
  id: 'reportHealth',
  summary: 'Report the health of a relay',
  description:
    'A relay reports every `report_in_seconds`. Statistics that are not valid are ignored: the report still proves that the relay runs. When `desired` is `stop`, the relay ends.\n\nA relay without a session sends `session_id: null`; its report waits up to `wait_seconds` for an assignment. 409 `instance_mismatch` and `invalid_transition` mean that the session belongs to another instance or has ended. 409 `relay_replaced` means that another instance has taken over: the relay closes its streams and ends. Safe to repeat.',
  body: Body,
  answers: { 200: HealthReply },
  refuses: ['invalid_relay_auth', 'not_found', 'instance_mismatch', 'relay_replaced', 'invalid_transition'],
  examples: reportExamples,
  handle: ({ body, caller, incoming }, services) => {
    if (caller !== 'master' && caller.instanceId !== body.instance_id)
      throw new Refusal('invalid_relay_auth', { message: 'The secret in X-Relay-Auth belongs to another instance.' })
    const { session_id: sessionId } = body
    if (!sessionId) return reportUnbound(body, incoming, services)
    return reportBound(sessionId, body, { hasOwnSecret: caller !== 'master', socket: incoming.socket }, services)
  },
})

type ReportBody = z.output<typeof Body>

interface Sender {
  readonly hasOwnSecret: boolean
  readonly socket: Socket
}

async function reportBound(sessionId: string, body: ReportBody, sender: Sender, services: Services): Promise<Reply> {
  const { instance_id: instanceId, epoch } = body
  const { config, sql, sealing, heldReports, watched } = services
  // The usual report of the relay is expected still.
  if (!body.is_extra) heldReports.endExpectation(sessionId)
  const session = await recordAndBind(sessionId, body, sender, services)
  const { state, command, boundInstanceId, isOtherInstance, isReplaced } = session
  if (state === 'stopped' || isOtherInstance) {
    // Of a time that this database does not have. The relay goes on while it has a stream.
    if (epoch !== undefined && session.epoch !== null && epoch !== session.epoch) throw new Refusal('not_found')
    await sweepInstance(sql, instanceId, state === 'stopped' ? sessionId : null)
    if (state === 'stopped') throw new Refusal('invalid_transition')
    throw new Refusal(isReplaced ? 'relay_replaced' : 'instance_mismatch')
  }
  await announce(sessionId, session, body, services)
  const format = readStreamFormat(body.stream_format)
  if (format) await recordStreamFormat(sql, sessionId, format)
  if (body.used_play_keys?.length) await recordPlayKeyUse(sql, sessionId, body.used_play_keys)
  const events = eventsOf(body)
  await recordReportedEvents(sessionId, session, events, services)
  if (body.path_events !== undefined) await recordReportedPathEvents(sessionId, session, events, services)
  const { healthIntervalSeconds, healthTimeoutSeconds } = config.relay
  const isCurrent = body.admission_revision === undefined || body.admission_revision === session.admissionRevision
  const admission = isCurrent ? undefined : await findRelayAdmission(sql, sealing, sessionId)
  const reply = (seconds: number) =>
    ok({
      state,
      // A disconnect is final, so the relay can stop before its workflow has executed it.
      desired: command === 'disconnect' ? 'stop' : 'run',
      report_in_seconds: seconds,
      epoch: session.epoch,
      ...(admission === undefined ? {} : { admission: presentAdmission(admission) }),
    })
  if (boundInstanceId !== instanceId) return reply(Math.min(untilBoundSeconds, healthIntervalSeconds))
  const intervalSeconds = watched.isWatched(sessionId)
    ? Math.min(watchedReportSeconds, healthIntervalSeconds)
    : healthIntervalSeconds
  if (!isHeld(body) || command === 'disconnect') return reply(intervalSeconds)
  // The relay has to have it at once.
  if (admission !== undefined) return reply(0)
  const seconds = Math.min(body.wait_seconds ?? 0, heldReportSecondsMax(healthTimeoutSeconds))
  if (!heldReports.canHold()) return reply(seconds)
  const waitedSeconds = await heldReports.hold({ sessionId, instanceId, seconds, socket: sender.socket })
  return { ...reply(0), waitedSeconds }
}

const isHeld = ({ wait_seconds: waitSeconds = 0 }: ReportBody): boolean => waitSeconds > 0

const eventsOf = ({ instance_id: instanceId, events, path_events: pathEvents, stats }: ReportBody) => ({
  instanceId,
  events,
  pathEvents,
  startedAtMs: stats?.started_at_ms,
  bitrateKbps: stats?.bitrate_kbps,
})

/** Stores the report. That of an instance which is to take over binds it, and is stored as the session's own then. */
async function recordAndBind(
  sessionId: string,
  body: ReportBody,
  { hasOwnSecret }: Sender,
  { sql, recordReport }: Services,
): Promise<ReportedSession> {
  const { instance_id: instanceId, stats, binding = 1 } = body
  const ingest = readIngest(stats, body.events?.findLast((event) => event !== undefined)?.kind)
  const record = () =>
    recordReport({
      sessionId,
      instanceId,
      hasOwnSecret,
      binding,
      isHeld: isHeld(body) || body.is_extra === true,
      isIdle: stats && isIdle(stats),
      ingest,
    })
  const session = await record()
  if (!session) throw new Refusal('not_found')
  if (!session.isReplacement) return session
  const outcome = await bindReplacement(sql, sessionId, instanceId)
  // Its provider answers in a moment. Until then it is neither the session's nor another's.
  if (outcome === 'not_launched') return { ...session, isOtherInstance: false }
  // The lost one may still take streams, on a machine that is cut off.
  if (outcome === 'bound') await triggerJob(sql, 'sweep_orphans')
  return (await record()) ?? session
}

/** Signals the workflow that waits for the report, and keeps the ports of the relay. */
async function announce(
  sessionId: string,
  { state, reason, boundInstanceId }: ReportedSession,
  { instance_id: instanceId, ports }: ReportBody,
  { sql, deliveries, relaySessions }: Services,
): Promise<void> {
  if (boundInstanceId !== instanceId) return
  const isWaiting = state === 'provisioning' || isInGraceFor({ state, reason }, 'health_lost')
  if (isWaiting)
    await recordPorts(
      sql,
      instanceId,
      ports
        ? { srtlaPort: ports.srtla, publishPort: ports.publish, playPort: ports.play, statsPort: ports.stats }
        : null,
    )
  if (state === 'provisioning') deliveries.signal(() => relaySessions.ready(sessionId))
  else if (isWaiting) deliveries.signal(() => relaySessions.healthRestored(sessionId))
}

/**
 * Answers with an assignment at once or after a wait, with `assignment: null` after the wait, or that the relay should
 * stop.
 */
async function reportUnbound(
  { instance_id: instanceId, wait_seconds: waitSeconds = 0, admission_revision: revision }: ReportBody,
  { socket }: IncomingMessage,
  { config, sql, sealing, assignments }: Services,
): Promise<Reply> {
  const waitSecondsMax = unboundWaitSecondsMax(config.relay.healthTimeoutSeconds)
  const report = { instanceId, waitSeconds: Math.min(waitSeconds, waitSecondsMax), socket }
  const { instance, end, waitedSeconds } = await assignments.report(report)
  const isUnwanted = !instance || assignmentStatus(instance) === 'unwanted'
  if (isUnwanted) await sweepInstance(sql, instanceId, instance?.state === 'stopped' ? instance.sessionId : null)
  if (!instance) throw new Refusal('not_found')
  const assignment = openAssignment(sealing, instance, revision !== undefined)
  const isSoon = assignment !== null || end === 'waited' || end === 'interrupted'
  const body: z.input<typeof HealthReply> = {
    state: assignment && instance.state,
    desired: isUnwanted ? 'stop' : 'run',
    report_in_seconds: isSoon ? soonSeconds : config.relay.healthIntervalSeconds,
    assignment,
  }
  return { ...ok(body), waitedSeconds, headers: assignment ? { 'Cache-Control': 'no-store' } : {} }
}

const presentAdmission = ({
  revision,
  streamToken,
  canTokenPlay,
  playKeys,
  onLoss,
  slate,
  streamFormat,
}: RelayAdmission): z.input<typeof Admission> => ({
  revision,
  stream_token: streamToken,
  token_plays: canTokenPlay,
  play_keys: [...playKeys],
  on_loss: onLoss,
  slate: chooseSlate(onLoss, slate, builtInSlate().digest),
  stream_format: streamFormat && showStreamFormat(streamFormat),
})

/** @param knowsAdmissions false for a relay of a former version, which gets the stream token itself. */
function openAssignment(sealing: Sealing, instance: UnboundInstance, knowsAdmissions: boolean) {
  const { sessionId, userId } = instance
  if (assignmentStatus(instance) !== 'assigned' || sessionId === null || userId === null) return null
  const { binding, ports } = instance
  return {
    session_id: sessionId,
    ...(knowsAdmissions
      ? { admission: presentAdmission(toRelayAdmission(sealing, { sessionId, userId }, instance)) }
      : { stream_token: openStreamToken(sealing, userId, instance) }),
    binding,
    ...(ports === null
      ? {}
      : {
          ports: {
            srtla: ports.srtlaPort,
            publish: ports.publishPort,
            play: ports.playPort,
            stats: ports.statsPort,
          },
        }),
  }
}

/**
 * Makes the sweep run at once for an instance that has no session any more. A stopped session is final, which makes a
 * second observation of its instance unnecessary.
 */
async function sweepInstance(sql: Sql, instanceId: string, stoppedSessionId: string | null): Promise<void> {
  if (stoppedSessionId !== null) await markOrphan(sql, instanceId, stoppedSessionId)
  await triggerJob(sql, 'sweep_orphans')
}
