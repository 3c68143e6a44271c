/** The choice of a region, with its capacity. `region-latency.js` adds the latency from the visitor's browser. */

import type { Reply } from '../../client/reply.ts'
import { autoRegion } from '../../platform/config/regions.ts'
import type { Region } from '../api-replies.ts'

export type RegionCapacity = Reply<'get', '/capacity/status'>['regions'][number]

interface RegionChoiceProps {
  readonly regions: readonly Region[]
  /** Without an entry for each region when the API did not reply. */
  readonly capacities: readonly RegionCapacity[]
  /** The selected region, or an empty string for none. */
  readonly selected: string
}

export function RegionChoice({ regions, capacities, selected }: RegionChoiceProps) {
  const isOffered = (name: string) => regions.some(({ region }) => region === name)
  const preselected = regions.length > 1 ? autoRegion : regions[0]?.region
  const checked = isOffered(selected) ? selected : preselected
  return (
    <fieldset class="option-cards">
      <legend>Region</legend>
      {regions.length > 1 ? (
        <label>
          <input type="radio" name="region" value={autoRegion} checked={checked === autoRegion} />
          <span>Automatic</span>
          <span class="muted">The region with the most free places</span>
        </label>
      ) : null}
      {regions.map((region) => (
        <RegionOption
          key={region.region}
          region={region}
          capacity={capacities.find((capacity) => capacity.region === region.region)?.status}
          isChecked={checked === region.region}
        />
      ))}
    </fieldset>
  )
}

interface RegionOptionProps {
  readonly region: Region
  readonly capacity: RegionCapacity['status'] | undefined
  readonly isChecked: boolean
}

function RegionOption({ region, capacity = 'available', isChecked }: RegionOptionProps) {
  const status = region.available ? capacity : 'full'
  return (
    <label data-capacity={status}>
      <input type="radio" name="region" value={region.region} checked={isChecked} disabled={!region.available} />
      <span>{region.display_name}</span>
      <span class="muted">
        {capacityTexts[status]}
        {region.ping_url ? <span data-ping={region.ping_url} /> : null}
      </span>
    </label>
  )
}

const capacityTexts: Readonly<Record<RegionCapacity['status'], string>> = {
  available: 'Places are free',
  limited: 'Few places are left',
  full: 'Full',
}

/**
 * The origins of the regions' ping addresses, which `region-latency.js` sends requests to. Browsers block addresses
 * without TLS on a site with TLS.
 */
export const pingOriginsOf = (regions: readonly Region[], siteOrigin: string): readonly string[] => {
  const protocols = siteOrigin.startsWith('https:') ? ['https:'] : ['https:', 'http:']
  const urls = regions.flatMap(({ ping_url: url }) => (url && URL.canParse(url) ? [new URL(url)] : []))
  return [...new Set(urls.filter(({ protocol }) => protocols.includes(protocol)).map(({ origin }) => origin))]
}
