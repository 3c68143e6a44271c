/** The capacity of the regions. */

import { isApiFailure } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import type { Visit } from '../page.ts'

export type CapacityStatus = Reply<'get', '/capacity/status'>['status']

const badges = {
  available: ['good', 'Available'],
  limited: ['warn', 'Few relays left'],
  full: ['bad', 'Full'],
} as const satisfies Record<CapacityStatus, readonly [className: string, label: string]>

export function CapacityBadge({ status }: { readonly status: CapacityStatus }) {
  const [className, label] = badges[status]
  return (
    <span class={`badge ${className}`} data-capacity={status}>
      {label}
    </span>
  )
}

export type Capacity = Reply<'get', '/capacity/status'>

/** The capacity of all regions; undefined while the API is unavailable, which must not take a public page with it. */
export async function findCapacity({ anonymousApi }: Pick<Visit, 'anonymousApi'>): Promise<Capacity | undefined> {
  try {
    return (await anonymousApi.GET('/api/v1/capacity/status')).data
  } catch (error) {
    if (isApiFailure(error)) return undefined
    throw error
  }
}
