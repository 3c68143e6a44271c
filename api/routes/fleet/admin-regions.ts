/** Regions as operators see them. A drained region takes no new sessions, while its live sessions run on. */
import { z } from 'zod'
import { listRegionRows, type RegionRow } from '../../../db/fleet/regions.ts'
import { type OperatorAct, type RegionAction, recordRegionChange } from '../../../db/transactions/change-region.ts'
import type { RegionConfig } from '../../../platform/config/regions.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { storableText, timestamp } from '../../http/schemas.ts'
import type { Services } from '../../services.ts'
import { route } from '../route.ts'
import { ReasonOnly } from '../schemas.ts'
import { Image } from './regions.ts'

const RegionView = z
  .object({
    region: z.string(),
    display_name: z.string(),
    provider: z.string(),
    capacity: z.int(),
    /** The number of instances that are to be kept ready. */
    warm: z.int(),
    drained_at: timestamp.nullable(),
    image: Image,
    /** Live sessions. */
    sessions: z.int(),
    instances: z
      .object({ bound: z.int(), warm_ready: z.int(), warm_booting: z.int(), leftover: z.int() })
      .describe(
        'Existing instances: of live sessions; without a session, that have reported or have not yet; and those that are to be destroyed.',
      ),
  })
  .meta({ id: 'OperatorRegion' })

const presentRegion = (config: RegionConfig, row: RegionRow): z.infer<typeof RegionView> => ({
  region: config.region,
  display_name: config.display_name,
  provider: config.provider,
  capacity: config.capacity,
  warm: config.warm,
  drained_at: row.drainedAt?.toISOString() ?? null,
  image: config.image,
  sessions: row.sessions,
  instances: {
    bound: row.bound,
    warm_ready: row.warmReady,
    warm_booting: row.warmBooting,
    leftover: row.leftover,
  },
})

export const listRegions = route.operator({
  id: 'listRegionDetails',
  summary: 'List regions with their instances',
  description: 'The regions in the configured order, with their sessions and instances.',
  answers: { 200: z.object({ regions: z.array(RegionView) }) },
  refuses: [],
  handle: async (_, { sql, config }) => {
    const rows = await listRegionRows(
      sql,
      config.regions.map(({ region }) => region),
    )
    return ok({
      regions: config.regions.flatMap((region) =>
        rows.filter((row) => row.region === region.region).map((row) => presentRegion(region, row)),
      ),
    })
  },
})

/** Shared by the routes that change a region. */
const changeParts = {
  params: z.object({ region: storableText(64) }),
  body: ReasonOnly,
  answers: { 200: z.object({ region: RegionView }) },
  refuses: ['not_found'],
} as const

export const drain = route.operator({
  ...changeParts,
  id: 'drainRegion',
  summary: 'Drain a region',
  description: 'Stops new sessions in a region, while its live sessions run on. Safe to repeat.',
  handle: async ({ params, body, ip }, services) =>
    ok({ region: await changeRegion(params.region, services, 'drain', { ip, ...body }) }),
})

export const resume = route.operator({
  ...changeParts,
  id: 'resumeRegion',
  summary: 'Resume a region',
  description: 'Allows new sessions in a drained region again. Safe to repeat.',
  handle: async ({ params, body, ip }, services) =>
    ok({ region: await changeRegion(params.region, services, 'resume', { ip, ...body }) }),
})

async function changeRegion(
  name: string,
  { sql, config }: Services,
  action: RegionAction,
  act: OperatorAct,
): Promise<z.infer<typeof RegionView>> {
  const region = config.regions.find(({ region: known }) => known === name)
  if (!region) throw new Refusal('not_found')
  return presentRegion(region, await recordRegionChange(sql, name, action, act))
}
