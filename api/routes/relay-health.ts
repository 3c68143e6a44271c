/** Health reports of relays. A report without a change costs a share of one batched write and reaches no workflow. */
import { z } from 'zod'
import { markOrphan } from '../../db/instances.ts'
import { triggerJob } from '../../db/jobs.ts'
import { isInGraceFor, relayStates } from '../../domain/relay-session.ts'
import { Refusal } from '../http/refusals.ts'
import { ok, route } from '../http/route.ts'
import { id, storableText } from '../http/schemas.ts'

/** The part of srtla's statistics that says whether a stream comes in. */
const Stats = z.looseObject({
  groups: z.array(z.looseObject({ connections: z.array(z.unknown()).optional() })).optional(),
})

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
    const isIdle = body.stats?.groups?.every((group) => (group.connections ?? []).length === 0)
    const session = await recordReport({ sessionId, instanceId, isIdle })
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
