/** Reports of relays. Steady ones cost a share of one batched write; only changes reach an actor. */
import { z } from 'zod'
import { condemnInstance } from '../../db/instances.ts'
import { triggerJob } from '../../db/jobs.ts'
import { Refusal } from '../http/refusals.ts'
import { ok, route } from '../http/route.ts'
import { id, storable } from '../http/schemas.ts'

/** What srtla's statistics look like, as far as it matters here: whether anyone sends. */
const Stats = z.looseObject({
  groups: z.array(z.looseObject({ connections: z.array(z.unknown()).optional() })).optional(),
})

export const report = route({
  method: 'POST',
  path: '/relay/health',
  summary: 'A relay reports that it is well, and is told whether to go on',
  caller: 'relay',
  body: z.object({
    session_id: id,
    instance_id: storable(128),
    observed_at: z.iso.datetime({ offset: true }).optional(),
    stats: Stats.optional(),
  }),
  answers: {
    200: z.object({
      state: z.enum(['provisioning', 'active', 'grace', 'stopped']),
      desired: z.enum(['run', 'stop']),
      report_in_seconds: z.int(),
    }),
  },
  refuses: ['invalid_relay_auth', 'not_found', 'instance_mismatch', 'invalid_transition'],
  handle: async ({ body }, { config, sql, recordReport, deliveries, actors }) => {
    const { session_id: sessionId, instance_id: instanceId } = body
    const idle = body.stats?.groups?.every((group) => (group.connections ?? []).length === 0)
    const session = await recordReport({ sessionId, instanceId, idle })
    if (!session) throw new Refusal('not_found')
    const isForeign = session.bound !== null && session.bound !== instanceId
    if (session.state === 'stopped' || isForeign) {
      // An instance that lives on without a session, or beside it, is looked for at once. A stopped session is final, so
      // its instance needs no second observation.
      if (session.state === 'stopped') await condemnInstance(sql, instanceId, sessionId)
      await triggerJob(sql, 'sweep_orphans')
      throw new Refusal(session.state === 'stopped' ? 'invalid_transition' : 'instance_mismatch')
    }
    if (session.bound !== null && session.state === 'provisioning') deliveries.tell(() => actors.ready(sessionId))
    if (session.state === 'grace' && session.reason === 'health_lost')
      deliveries.tell(() => actors.healthRestored(sessionId))
    return ok({
      state: session.state,
      // A disconnect is the one order that nothing takes back, so the relay may as well hear it here.
      desired: session.command === 'disconnect' ? 'stop' : 'run',
      report_in_seconds: config.relay.healthIntervalSeconds,
    })
  },
})
