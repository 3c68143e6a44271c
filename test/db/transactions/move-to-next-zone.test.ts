/** The replacement of an instance that its zone has no room for. */
import { describe, expect, test } from 'vitest'
import { findReservation, insertInstance, listInstancesOfSession } from '../../../db/fleet/instances.ts'
import { moveToNextZone } from '../../../db/transactions/move-to-next-zone.ts'
import { createInstanceId } from '../../../providers/relay/instance-secrets.ts'
import { writeStopped } from '../../support/relay-rows.ts'
import { startTransitions } from '../../support/relay-transitions.ts'

const { sql, insertSession } = await startTransitions()

/** Reserves an instance in the first zone for a new session. */
async function givenReservation() {
  const [sessionId, instanceId] = [await insertSession(), createInstanceId('aws')]
  const placement = { region: 'here', provider: 'aws', image: 'an image', capacity: 10, reportSecondsMax: 60 }
  const reserved = await insertInstance(sql, { instanceId, sessionId, zone: 0 }, placement)
  return { sessionId, reserved, nextId: createInstanceId('aws') }
}

describe('an instance that its zone has no room for', () => {
  test('is replaced by one in the next zone, and is gone', async () => {
    const { sessionId, reserved, nextId } = await givenReservation()
    expect(await moveToNextZone(sql, reserved, nextId)).toMatchObject({ instanceId: nextId, zone: 1 })
    expect(await listInstancesOfSession(sql, sessionId)).toMatchObject([{ instanceId: nextId, zone: 1 }])
  })

  test('is not replaced when another attempt to create it has begun, which may find room', async () => {
    const { sessionId, reserved, nextId } = await givenReservation()
    const again = await findReservation(sql, sessionId)
    expect(await moveToNextZone(sql, reserved, nextId)).toBeUndefined()
    expect(await listInstancesOfSession(sql, sessionId)).toMatchObject([{ instanceId: reserved.instanceId }])
    if (!again) throw new Error('the reservation was not found')
    expect(await moveToNextZone(sql, again, nextId)).toMatchObject({ instanceId: nextId, zone: 1 })
  })

  test('is not replaced when its session has stopped meanwhile, so that nothing is created after the clean-up', async () => {
    const { sessionId, reserved, nextId } = await givenReservation()
    await writeStopped(sql, sessionId)
    expect(await moveToNextZone(sql, reserved, nextId)).toBeUndefined()
    expect(await listInstancesOfSession(sql, sessionId)).toEqual([])
  })
})
