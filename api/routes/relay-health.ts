/** Health reports of relays. A report without a change costs a share of one batched write and reaches no workflow. */
import { z } from 'zod'
import { triggerJob } from '../../db/jobs.ts'
import { markOrphan } from '../../db/orphans.ts'
import { ingestEngines, readIngest } from '../../domain/ingest.ts'
import { isInGraceFor, relayStates } from '../../domain/relay-session.ts'
import { Refusal } from '../http/refusals.ts'
import { ok, route } from '../http/route.ts'
import { id, storableText } from '../http/schemas.ts'

/**
 * A member that is no valid value counts as missing: a report with broken statistics still proves that the relay runs. Unknown
 * members, and so all free text, are dropped.
 */
const lenient = <Value>(schema: z.ZodType<Value>) => schema.optional().catch(undefined)
const count = lenient(z.number().min(0))

const Stats = z.object({
  publishing: lenient(z.boolean()).describe('Whether a stream comes in.'),
  bitrate_kbps: count,
  rtt_ms: count,
  loss_pct: count,
  links: count,
  players: count,
  bytes_total: count.describe('The bytes that the process of the relay has received. A new process begins at 0.'),
  engine: lenient(z.enum(ingestEngines)),
  groups: lenient(z.array(z.object({ connections: z.array(z.unknown()).optional() }))).describe(
    'The form of older relays. No stream comes in when no group has a connection.',
  ),
})

/** Undefined when the report does not state whether a stream comes in. */
const isIdle = ({ publishing, groups }: z.infer<typeof Stats>): boolean | undefined =>
  publishing === undefined ? groups?.every((group) => (group.connections ?? []).length === 0) : !publishing

export const report = route({
  method: 'POST',
  path: '/relay/health',
  summary: 'Report the health of a relay. The reply says whether it should keep running',
  caller: 'relay',
  body: z.object({
    session_id: id,
    instance_id: storableText(128),
    observed_at: z.iso.datetime({ offset: true }).optional(),
    stats: Stats.optional(),
  }),
  answers: {
    200: z.object({
      state: z.enum(relayStates),
      desired: z.enum(['run', 'stop']),
      report_in_seconds: z.int(),
    }),
  },
  refuses: ['invalid_relay_auth', 'not_found', 'instance_mismatch', 'invalid_transition'],
  handle: async ({ body }, { config, sql, recordReport, deliveries, relaySessions }) => {
    const { session_id: sessionId, instance_id: instanceId } = body
    const session = await recordReport({
      sessionId,
      instanceId,
      isIdle: body.stats && isIdle(body.stats),
      ingest: readIngest(body.stats),
    })
    if (!session) throw new Refusal('not_found')
    const { state, reason, command, boundInstanceId } = session
    const isOtherInstance = boundInstanceId !== null && boundInstanceId !== instanceId
    if (state === 'stopped' || isOtherInstance) {
      // The instance has no session, so the sweep runs at once. A stopped session is final, which makes a second observation
      // of its instance unnecessary.
      if (state === 'stopped') await markOrphan(sql, instanceId, sessionId)
      await triggerJob(sql, 'sweep_orphans')
      throw new Refusal(state === 'stopped' ? 'invalid_transition' : 'instance_mismatch')
    }
    if (boundInstanceId !== null && state === 'provisioning') deliveries.signal(() => relaySessions.ready(sessionId))
    if (isInGraceFor({ state, reason }, 'health_lost')) deliveries.signal(() => relaySessions.healthRestored(sessionId))
    return ok({
      state,
      // A disconnect is final, so the relay can stop before its workflow has executed it.
      desired: command === 'disconnect' ? 'stop' : 'run',
      report_in_seconds: config.relay.healthIntervalSeconds,
    })
  },
})
