/** Regions and their capacity. */
import { z } from 'zod'
import { countLiveRelaySessions } from '../../db/relay-sessions.ts'
import type { RegionConfig } from '../../platform/config/regions.ts'
import { ok, route } from '../http/route.ts'
import { timestamp } from '../http/schemas.ts'
import type { Services } from '../services.ts'

const CapacityStatus = z.enum(['available', 'limited', 'full'])
type CapacityStatus = z.infer<typeof CapacityStatus>
/** A region is limited from this share of its capacity on. */
const limitedShare = 0.8

export const manifest = route({
  method: 'GET',
  path: '/relay/manifest',
  summary: 'List the regions with their availability and relay image',
  caller: 'user',
  limit: 'manifest',
  answers: {
    200: z.object({
      regions: z.array(
        z.object({
          region: z.string(),
          display_name: z.string(),
          provider: z.string(),
          default: z.boolean(),
          available: z.boolean(),
          image: z.object({ image_id: z.string(), version: z.string(), released_at: timestamp }),
        }),
      ),
    }),
  },
  refuses: [],
  handle: async (_, services) => {
    const regions = await listRegionStatuses(services)
    const defaultRegion = services.config.regions.find((one) => one.default) ?? services.config.regions[0]
    return ok({
      regions: regions.map(({ region, status }) => ({
        region: region.region,
        display_name: region.display_name,
        provider: region.provider,
        default: region === defaultRegion,
        available: status !== 'full',
        image: region.image,
      })),
    })
  },
})

export const capacity = route({
  method: 'GET',
  path: '/capacity/status',
  summary: 'Show whether relays can be started at present, overall and by region',
  caller: 'none',
  limit: 'capacity',
  answers: {
    200: z.object({
      status: CapacityStatus,
      regions: z.array(z.object({ region: z.string(), status: CapacityStatus })),
      as_of: timestamp,
    }),
  },
  refuses: [],
  handle: async (_, services) => {
    const regions = await listRegionStatuses(services)
    const has = (status: CapacityStatus) => regions.some((one) => one.status === status)
    return ok({
      status: has('available') ? 'available' : has('limited') ? 'limited' : 'full',
      regions: regions.map(({ region, status }) => ({ region: region.region, status })),
      as_of: new Date().toISOString(),
    })
  },
})

async function listRegionStatuses({
  config,
  sql,
}: Services): Promise<{ region: RegionConfig; status: CapacityStatus }[]> {
  const counts = await countLiveRelaySessions(sql)
  return config.regions.map((region) => {
    const live = counts.filter((one) => one.region === region.region).reduce((sum, one) => sum + one.sessions, 0)
    const status = live >= region.capacity ? 'full' : live >= region.capacity * limitedShare ? 'limited' : 'available'
    return { region, status }
  })
}
