/** The plan of warm instances when reports, starts and retirements meet. */
import { expect, test } from 'vitest'
import { beginEpoch } from '../../../db/epochs.ts'
import { isWarmWorkDue, type WarmRegion } from '../../../db/fleet/warm-instances.ts'
import { planWarm } from '../../../db/transactions/plan-warm-instances.ts'
import { createInstanceId } from '../../../providers/relay/instance-secrets.ts'
import { startTransitions } from '../../support/relay-transitions.ts'
import { insertWarmInstance } from '../../support/unbound-relays.ts'

const { sql } = await startTransitions()

const image = 'an image'
const placement = { region: 'local', provider: 'local', image, capacity: 10, reportSecondsMax: 3600 }
const region: WarmRegion = { placement, warm: 1, bootSecondsMax: 3600, healthTimeoutSeconds: 3600 }
const plan = () => planWarm(sql, region, true, () => createInstanceId('local'))

test('a region creates no further instance while the report of one is stored', async () => {
  const instanceId = await insertWarmInstance(sql, { image })
  await sql.begin(async (reporting) => {
    await reporting`update instances set last_report_at = now() where instance_id = ${instanceId}`
    expect(await plan()).toEqual({ create: [], destroy: [], unbound: 1 })
  })
})

test('a region retires no instance that a session claims at the same time', async () => {
  const instanceId = await insertWarmInstance(sql, { image: 'an old image' })
  const drained = { ...region, warm: 0 }
  const plan = () => planWarm(sql, drained, true, () => createInstanceId('local'))
  await sql.begin(async (claiming) => {
    await claiming`update instances set assigned_at = now() where instance_id = ${instanceId}`
    expect((await plan()).destroy).not.toContain(instanceId)
  })
  expect((await plan()).destroy).toContain(instanceId)
})

test('a region without room replaces one ready instance of an old image, and no other before that one is gone', async () => {
  await sql`update instances set gone_at = now()`
  const old = [await insertWarmInstance(sql, { image: 'an old image' }), await insertWarmInstance(sql)]
  await sql`update instances set last_report_at = now() where gone_at is null`
  const full = { ...region, placement: { ...placement, capacity: 2 }, warm: 2 }
  const planFull = () => planWarm(sql, full, true, () => createInstanceId('local'))
  const [oldest = '', other] = old
  const expected = { create: [], destroy: [oldest], unbound: 1 }
  expect([await planFull(), await planFull()]).toEqual([expected, expected])
  await sql`update instances set gone_at = now() where instance_id = ${oldest}`
  const { create, destroy } = await planFull()
  expect([create.length, destroy]).toEqual([1, []])
  await sql`update instances set launched_at = now(), last_report_at = now() where instance_id in ${sql(create)}`
  expect((await planFull()).destroy).toEqual([other])
})

test('a region retires no warm instance that may have got a session since the backup, until it reports without one', async () => {
  await sql`delete from instances`
  const instanceId = await insertWarmInstance(sql, { image })
  await sql`update instances set last_report_at = now() - interval '1 day', created_at = now() - interval '1 day'`
  await sql`update presence set since = now() - interval '1 day' where role = 'api'`
  await beginEpoch(sql, 'restored')
  expect((await plan()).destroy).toEqual([])
  // A start gets another one, and nothing more is to be done.
  await sql`update instances set launched_at = now(), last_report_at = now() where instance_id <> ${instanceId}`
  expect(await isWarmWorkDue(sql, region)).toBe(false)

  await sql`update instances set last_report_at = now()`
  expect((await plan()).destroy).toHaveLength(1)
})
