/** Gives up the creation of an instance in a zone without room. */
import { type Database, first, hasRow } from '../connection.ts'
import type { ReservedInstance } from '../fleet/instances.ts'

/**
 * Replaces an instance that was certainly not created by one in the next zone. The session is locked, so that the
 * clean-up after its end finds all of its instances.
 * @returns undefined when it is no longer wanted, or another attempt to create it has begun, which may succeed.
 */
export const moveToNextZone = (
  sql: Database,
  { instanceId, attemptedAt }: Pick<ReservedInstance, 'instanceId' | 'attemptedAt'>,
  newInstanceId: string,
): Promise<ReservedInstance | undefined> =>
  sql.begin(async (tx): Promise<ReservedInstance | undefined> => {
    await tx`
      select from relay_sessions where id = (select session_id from instances where instance_id = ${instanceId}) for share`
    const isPresent = await hasRow(tx`
      select from instances where instance_id = ${instanceId} and create_attempted_at::text = ${attemptedAt} for update`)
    if (!isPresent) return undefined
    const moved = await first(tx<ReservedInstance[]>`
      insert into instances (instance_id, session_id, region, provider, image, zone, is_warm, binding, create_attempted_at)
      select ${newInstanceId}, session_id, region, provider, image, zone + 1, is_warm, binding, now() from instances i
      where instance_id = ${instanceId} and gone_at is null and retired_at is null and (session_id is null or exists (
        select from relay_sessions s where s.id = i.session_id and s.state <> 'stopped'))
      returning instance_id, zone, create_attempted_at::text as attempted_at`)
    await tx`update instances set gone_at = now(), retired_at = now() where instance_id = ${instanceId}`
    return moved
  }) as Promise<ReservedInstance | undefined>
