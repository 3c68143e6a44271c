/** Plans the warm instances of a region: which are to be created, and which to be destroyed. */
import type { Database } from '../connection.ts'
import { insertInstance, lockPlaces, retireInstances } from '../fleet/instances.ts'
import { lockUnbound, readWarmPlan, readWork, type WarmRegion, type WarmWork } from '../fleet/warm-instances.ts'

/**
 * Retires and reserves warm instances of a region, so that as many as configured are ready, and returns the provider
 * calls that are due. Safe to repeat.
 * @param mayCreate see {@link readWarmPlan}.
 * @param newInstanceId creates the id of each reserved instance.
 */
export const planWarm = (
  sql: Database,
  region: WarmRegion,
  mayCreate: boolean,
  newInstanceId: () => string,
): Promise<WarmWork> =>
  sql.begin(async (tx): Promise<WarmWork> => {
    const { placement } = region
    // Serialised with reservations for sessions, so that both together stay within the capacity.
    await lockPlaces(tx, placement.region)
    const { retire, create } = await readWarmPlan(tx, region, mayCreate)
    await retireInstances(tx, await lockUnbound(tx, retire))
    for (let count = 0; count < create; count += 1)
      await insertInstance(tx, { instanceId: newInstanceId(), sessionId: null, zone: 0 }, placement)
    return readWork(tx, placement.region)
  }) as Promise<WarmWork>
