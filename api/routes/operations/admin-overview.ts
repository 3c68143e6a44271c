/** The health of the service and what happened in the last hour, for the operator console. */
import { z } from 'zod'
import type { BillingEventStatus } from '../../../domain/billing/event.ts'
import { capacityStatuses } from '../../../domain/fleet/regions.ts'
import { ok } from '../../http/replies.ts'
import { timestamp } from '../../http/schemas.ts'
import type { OperatorOverview } from '../../views/operator-overview.ts'
import { route } from '../route.ts'

const Overview = z.object({
  as_of: timestamp,
  sessions: z.object({ provisioning: z.int(), active: z.int(), grace: z.int() }).describe('Live sessions by state.'),
  minutes: z
    .array(
      z.object({
        at: timestamp,
        started: z.int(),
        stopped: z.int(),
        provisioning_failed: z.int(),
        sign_ins_failed: z.int(),
      }),
    )
    .describe('The last 60 minutes, oldest first. The last one is not over.'),
  provisioning: z
    .object({ sessions: z.int(), p50_seconds: z.number().nullable(), p95_seconds: z.number().nullable() })
    .describe('Time from start to active, of sessions that were started in the last hour.'),
  commands: z.object({ undelivered: z.int(), oldest_seconds: z.number() }),
  billing_events: z.object({
    pending: z.int(),
    parked: z.int(),
    dead: z.int(),
    unresolved: z.int(),
    oldest_pending_seconds: z.number(),
  }),
  jobs: z.object({ total: z.int(), overdue: z.array(z.string()), failing: z.array(z.string()) }),
  workers: z.object({ alive: z.int() }),
  outbox: z
    .object({ pending: z.int(), failed: z.int(), oldest_seconds: z.number() })
    .describe('Messages to users. `failed` were given up in the last 24 hours.'),
  orphans: z.object({ instances: z.int(), oldest_seconds: z.number() }),
  regions: z.array(
    z.object({
      region: z.string(),
      display_name: z.string(),
      status: z.enum(capacityStatuses),
      capacity: z.int(),
      sessions: z.int(),
      drained_at: timestamp.nullable(),
    }),
  ),
})

export const overview = route.operator({
  id: 'getOverview',
  summary: 'Show the health and the last hour',
  description: 'The health of the service and the figures of the last hour. It is computed once a second at most.',
  answers: { 200: Overview },
  refuses: [],
  handle: async (_, { findOperatorOverview }) => ok(presentOverview(await findOperatorOverview())),
})

function presentOverview(overview: OperatorOverview): z.infer<typeof Overview> {
  const { asOf, sessionsByState, commands, jobs, workersAlive, outbox, orphans } = overview
  return {
    as_of: asOf.toISOString(),
    sessions: {
      provisioning: sessionsByState('provisioning'),
      active: sessionsByState('active'),
      grace: sessionsByState('grace'),
    },
    minutes: overview.minutes.map((minute) => ({
      at: minute.at.toISOString(),
      started: minute.started,
      stopped: minute.stopped,
      provisioning_failed: minute.provisioningFailed,
      sign_ins_failed: minute.signInsFailed,
    })),
    provisioning: {
      sessions: overview.provisioning.sessions,
      p50_seconds: overview.provisioning.p50Seconds,
      p95_seconds: overview.provisioning.p95Seconds,
    },
    commands: { undelivered: commands.commands, oldest_seconds: commands.oldestSeconds },
    billing_events: presentInbox(overview.inbox),
    jobs,
    workers: { alive: workersAlive },
    outbox: { pending: outbox.pending, failed: outbox.failed, oldest_seconds: outbox.oldestSeconds },
    orphans: { instances: orphans.instances, oldest_seconds: orphans.oldestSeconds },
    regions: overview.regions.map(({ region, row, status }) => ({
      region: region.region,
      display_name: region.display_name,
      status,
      capacity: region.capacity,
      sessions: row.sessions,
      drained_at: row.drainedAt?.toISOString() ?? null,
    })),
  }
}

function presentInbox(inbox: OperatorOverview['inbox']): z.infer<typeof Overview>['billing_events'] {
  const find = (status: BillingEventStatus) => inbox.find((figure) => figure.status === status)
  return {
    pending: find('pending')?.events ?? 0,
    parked: find('parked')?.events ?? 0,
    dead: find('dead')?.events ?? 0,
    unresolved: find('unresolved')?.events ?? 0,
    oldest_pending_seconds: find('pending')?.oldestSeconds ?? 0,
  }
}
