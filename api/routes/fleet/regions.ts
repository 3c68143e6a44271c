/** Regions and their capacity. */
import { z } from 'zod'
import { type CapacityStatus, capacityStatuses, defaultRegionOf } from '../../../domain/fleet/regions.ts'
import type { OperationExamples } from '../../http/operation-text.ts'
import { ok } from '../../http/replies.ts'
import { timestamp } from '../../http/schemas.ts'
import { route } from '../route.ts'

const Status = z.enum(capacityStatuses)

export const Image = z
  .object({ image_id: z.string(), version: z.string(), released_at: timestamp })
  .meta({ id: 'RelayImage' })

export const manifest = route.userOrApp({
  id: 'listRegions',
  summary: 'List the regions',
  description: 'The regions to choose from, whether each takes a relay now, and the image that relays run there.',
  answers: {
    200: z.object({
      regions: z.array(
        z.object({
          region: z.string(),
          display_name: z.string(),
          provider: z.string(),
          default: z.boolean(),
          available: z.boolean().describe('Whether the region takes a new relay now.'),
          ping_url: z
            .string()
            .nullable()
            .describe('An address near the relays of the region, to measure the latency of.'),
          image: Image,
        }),
      ),
    }),
  },
  refuses: [],
  handle: async (_, { config, findRegionStatuses }) => {
    const { regions } = await findRegionStatuses()
    const defaultRegion = defaultRegionOf(config.regions)
    return ok({
      regions: regions.map(({ region, status }) => ({
        region: region.region,
        display_name: region.display_name,
        provider: region.provider,
        default: region === defaultRegion,
        available: status !== 'full',
        ping_url: region.ping_url ?? null,
        image: region.image,
      })),
    })
  },
})

const capacityExamples: OperationExamples = {
  replies: {
    200: {
      limited: {
        summary: 'One region is nearly full',
        value: {
          status: 'available',
          regions: [
            { region: 'eu-central', display_name: 'Frankfurt', status: 'available' },
            { region: 'us-east', display_name: 'Virginia', status: 'limited' },
          ],
          as_of: '2026-08-01T18:30:00.000Z',
        },
      },
    },
  },
}

export const capacity = route.none({
  id: 'getCapacity',
  summary: 'Show whether relays can be started',
  description: 'Public. Whether relays can be started, overall and by region. It is computed once a second at most.',
  answers: {
    200: z.object({
      status: Status,
      regions: z.array(z.object({ region: z.string(), display_name: z.string(), status: Status })),
      as_of: timestamp,
    }),
  },
  refuses: [],
  examples: capacityExamples,
  handle: async (_, { findRegionStatuses }) => {
    const { regions, asOf } = await findRegionStatuses()
    const has = (status: CapacityStatus) => regions.some((region) => region.status === status)
    return ok({
      status: has('available') ? 'available' : has('limited') ? 'limited' : 'full',
      regions: regions.map(({ region, status }) => ({
        region: region.region,
        display_name: region.display_name,
        status,
      })),
      as_of: asOf.toISOString(),
    })
  },
})
