/** The metrics of regions: warm instances, orphans, drains and checks. */
import { expect, test } from 'vitest'
import { recordRegionChange } from '../../../db/transactions/change-region.ts'
import { startApi } from '../../support/api.ts'
import { readMetrics } from '../../support/metrics.ts'

const api = await startApi({
  SVC_REGIONS: JSON.stringify([
    { region: 'eu', display_name: 'Europe', provider: 'local', capacity: 7, warm: 3 },
    { region: 'us', display_name: 'America', provider: 'local' },
  ]),
})

const names = [
  'svc_relay_instances',
  'svc_relay_capacity',
  'svc_relay_orphans',
  'svc_relay_warm_instances_wanted',
  'svc_region_drained',
]
const readRegion = async (region: string) => {
  const metric = await readMetrics(api)
  const read = (name: string, state = '') => metric(`${name}{region="${region}"${state}}`)
  return {
    ...Object.fromEntries(names.map((name) => [name, read(name)])),
    ready: read('svc_relay_warm_instances', ',state="ready"'),
    booting: read('svc_relay_warm_instances', ',state="booting"'),
    age: read('svc_relay_orphan_age_seconds'),
    check: read('svc_provider_credentials_ok'),
  }
}

test('a region without instances has all metrics, except for the result of a check that was not made', async () => {
  expect(await readRegion('us')).toEqual({
    svc_relay_instances: undefined,
    svc_relay_capacity: 50,
    svc_relay_orphans: 0,
    svc_relay_warm_instances_wanted: 0,
    svc_region_drained: 0,
    ready: 0,
    booting: 0,
    age: 0,
    check: undefined,
  })
})

test('warm instances, orphans and the drain of a region are shown', async () => {
  await api.sql`
    insert into instances (instance_id, region, is_warm, launched_at, last_report_at, unowned_since, retired_at, gone_at) values
      ('ready', 'eu', true, now(), now(), null, null, null), ('booting', 'eu', true, null, null, null, null, null),
      ('orphan', 'eu', false, null, null, now() - interval '5 minutes', null, null),
      ('retired', 'eu', true, now(), now(), now() - interval '1 minute', now(), null),
      ('destroyed', 'eu', false, null, null, now() - interval '9 hours', null, now()),
      ('elsewhere', 'mars', false, null, null, now() - interval '2 minutes', null, null)`
  const shown = { svc_relay_instances: 4, svc_relay_capacity: 7, svc_relay_orphans: 2, ready: 1, booting: 1 }
  const region = await readRegion('eu')
  expect(region).toMatchObject({ ...shown, svc_relay_warm_instances_wanted: 3, svc_region_drained: 0 })
  expect(Math.round((region.age ?? 0) / 10)).toBe(30)
  expect(await readRegion('mars')).toMatchObject({ svc_relay_orphans: 1, svc_relay_capacity: undefined })
  await recordRegionChange(api.sql, 'eu', 'drain')
  expect(await readRegion('eu')).toMatchObject({ ...shown, svc_relay_warm_instances_wanted: 0, svc_region_drained: 1 })
})
