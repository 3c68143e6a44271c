/** The replacement of an instance that its zone has no room for. */
import { describe, expect, test } from 'vitest'
import { listInstancesOfSession } from '../../../db/fleet/instances.ts'
import { moveToNextZone } from '../../../db/transactions/move-to-next-zone.ts'
import { createInstanceId } from '../../../providers/relay/instance-secrets.ts'
import { writeStopped } from '../../support/relay-rows.ts'
import { startTransitions } from '../../support/relay-transitions.ts'

const { sql, insertSession } = await startTransitions()

/** Reserves an instance in the first zone for a new session. */
async function givenReservation() {
  const [sessionId, instanceId] = [await insertSession(), createInstanceId('aws')]
  await sql`
    insert into instances (instance_id, session_id, region, provider, zone)
    values (${instanceId}, ${sessionId}, 'here', 'aws', 0)`
  return { sessionId, instanceId, nextId: createInstanceId('aws') }
}

describe('an instance that its zone has no room for', () => {
  test('is replaced by one in the next zone, and is gone', async () => {
    const { sessionId, instanceId, nextId } = await givenReservation()
    expect(await moveToNextZone(sql, instanceId, nextId)).toEqual({ instanceId: nextId, zone: 1 })
    expect(await listInstancesOfSession(sql, sessionId)).toMatchObject([{ instanceId: nextId, zone: 1 }])
  })

  test('is not replaced when its session has stopped meanwhile, so that nothing is created after the clean-up', async () => {
    const { sessionId, instanceId, nextId } = await givenReservation()
    await writeStopped(sql, sessionId)
    expect(await moveToNextZone(sql, instanceId, nextId)).toBeUndefined()
    expect(await listInstancesOfSession(sql, sessionId)).toEqual([])
  })
})
