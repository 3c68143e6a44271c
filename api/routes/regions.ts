/** Where relays can run, and whether there is room. */
import { z } from 'zod'
import { countLiveRelaySessions } from '../../db/relay-sessions.ts'
import type { RegionConfig } from '../../platform/config/values.ts'
import { ok, route } from '../http/route.ts'
import { timestamp } from '../http/schemas.ts'
import type { Services } from '../services.ts'

type Room = 'available' | 'limited' | 'full'
const Room = z.enum(['available', 'limited', 'full'])
/** Beyond this share of its capacity a region counts as limited. */
const limitedShare = 0.8

export const manifest = route({
  method: 'GET',
  path: '/relay/manifest',
  summary: 'Regions where relays can be started, and the image that they run',
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
    const rooms = await roomByRegion(services)
    const fallback = services.config.regions.find((one) => one.default) ?? services.config.regions[0]
    return ok({
      regions: rooms.map(({ region, room }) => ({
        region: region.region,
        display_name: region.display_name,
        provider: region.provider,
        default: region === fallback,
        available: room !== 'full',
        image: region.image,
      })),
    })
  },
})

export const capacity = route({
  method: 'GET',
  path: '/capacity/status',
  summary: 'Whether relays can be had just now',
  caller: 'none',
  limit: 'capacity',
  answers: {
    200: z.object({ status: Room, regions: z.array(z.object({ region: z.string(), status: Room })), as_of: timestamp }),
  },
  refuses: [],
  handle: async (_, services) => {
    const rooms = await roomByRegion(services)
    const has = (room: Room) => rooms.some((one) => one.room === room)
    return ok({
      status: has('available') ? 'available' : has('limited') ? 'limited' : 'full',
      regions: rooms.map(({ region, room }) => ({ region: region.region, status: room })),
      as_of: new Date().toISOString(),
    })
  },
})

async function roomByRegion({ config, sql }: Services): Promise<{ region: RegionConfig; room: Room }[]> {
  const counts = await countLiveRelaySessions(sql)
  return config.regions.map((region) => {
    const live = counts.filter((one) => one.region === region.region).reduce((sum, one) => sum + one.sessions, 0)
    const room = live >= region.capacity ? 'full' : live >= region.capacity * limitedShare ? 'limited' : 'available'
    return { region, room }
  })
}
