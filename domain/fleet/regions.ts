/** Which regions a start tries, and how full a region is. */

export interface RegionLimit {
  readonly region: string
  /** The maximum number of instances. */
  readonly capacity: number
  readonly default?: boolean
}

export interface RegionUse {
  readonly region: string
  /** Live sessions, and instances that still exist without one. */
  readonly placesTaken: number
  /** A drained region takes no new sessions. */
  readonly isDrained: boolean
}

export const capacityStatuses = ['available', 'limited', 'full'] as const
export type CapacityStatus = (typeof capacityStatuses)[number]

/** A region is limited from this share of its capacity on. */
const limitedShare = 0.8

export function capacityStatusOf({ capacity }: RegionLimit, { placesTaken, isDrained }: RegionUse): CapacityStatus {
  if (isDrained || placesTaken >= capacity) return 'full'
  return placesTaken >= capacity * limitedShare ? 'limited' : 'available'
}

/** The region as starts of trials see it: full from the share of its capacity on from which it is limited. */
export const forTrials = <Region extends RegionLimit>(region: Region): Region => ({
  ...region,
  capacity: Math.ceil(region.capacity * limitedShare),
})

/** The region of a start that names none: the one that is configured as default, or else the first. */
export const defaultRegionOf = <Region extends RegionLimit>(regions: readonly Region[]): Region | undefined =>
  regions.find((region) => region.default) ?? regions[0]

/** `auto`: any region with a free place. */
export type RequestedRegion = { readonly named: string } | 'default' | 'auto'

/**
 * The regions that a start may use: the named or the default one alone, or all. A drained default region is replaced by
 * any region.
 */
export function candidateRegions<Region extends RegionLimit>(
  requested: RequestedRegion,
  regions: readonly Region[],
): readonly Region[] {
  if (requested === 'auto') return regions
  const name = requested === 'default' ? defaultRegionOf(regions)?.region : requested.named
  return regions.filter(({ region }) => region === name)
}

/**
 * Regions with free places that are not drained: those with the most free places first, otherwise in the given order.
 */
export function orderByRoom<Region extends RegionLimit>(
  regions: readonly Region[],
  uses: readonly RegionUse[],
): readonly Region[] {
  const byRegion = new Map(uses.map((use) => [use.region, use]))
  return regions
    .map((region) => ({ region, freePlaces: countFreePlaces(region, byRegion.get(region.region)) }))
    .filter(({ freePlaces }) => freePlaces > 0)
    .toSorted((a, b) => b.freePlaces - a.freePlaces)
    .map(({ region }) => region)
}

/** None in a drained region, and in one whose places are not counted. */
export const countFreePlaces = ({ capacity }: RegionLimit, use: RegionUse | undefined): number =>
  use === undefined || use.isDrained ? 0 : Math.max(0, capacity - use.placesTaken)
