import { expect, test } from 'vitest'
import { planWarm, type WarmRegion } from '../../db/warm-instances.ts'
import { createInstanceId } from '../../platform/instance-secrets.ts'
import { startTransitions } from '../support/relay-transitions.ts'
import { insertWarmInstance } from '../support/unbound-relays.ts'

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
  await sql.begin(async (claiming) => {
    await claiming`update instances set assigned_at = now() where instance_id = ${instanceId}`
    expect((await plan()).destroy).toEqual([])
  })
  expect((await plan()).destroy).toEqual([instanceId])
})
