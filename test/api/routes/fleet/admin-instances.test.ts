/** The operators' lists of instances and orphans. */
import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { markInstanceGone } from '../../../../db/fleet/instances.ts'
import { recordObservations } from '../../../../db/fleet/orphans.ts'
import { maskEmail } from '../../../../domain/identity/masked-email.ts'
import { startApi, statusAndCode, type TestApi } from '../../../support/api.ts'
import { fakeInstanceId } from '../../../support/fake-relay-provider.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { eventually, operator, operatorPassword, type TestService } from '../../../support/relays.ts'

interface Instances {
  readonly instances: readonly Record<string, unknown>[]
  readonly next_cursor: string | null
}

let service: TestService
let api: TestApi
beforeAll(async () => {
  service = await startFakeRelayService({ variables: { SVC_RELAY_STOP_GRACE_SECONDS: '300' } })
  api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword })
})

const list = async (on: TestApi, query = '') =>
  (await on.get<Instances>(`/admin/instances${query}`, { headers: operator })).body
const findInstance = async (on: TestApi, instanceId: string) =>
  (await list(on)).instances.find(({ instance_id }) => instance_id === instanceId)

const observe = (region: string, ...instanceIds: string[]) =>
  recordObservations(api.sql, {
    region,
    listed: instanceIds.map((instanceId) => ({ instanceId, sessionId: null })),
    listLagSeconds: 0,
  })

test('the instance of a live session is listed as owned, and as gone once its session has ended', async () => {
  const user = await service.user()
  const { session_id } = (await user.start()).body.session
  const instanceId = fakeInstanceId(session_id)
  const owned = await eventually(
    () => findInstance(service.api, instanceId),
    (instance) => instance !== undefined,
  )
  expect(owned).toEqual({
    instance_id: instanceId,
    session_id,
    user_id: user.userId,
    masked_email: maskEmail(user.email),
    region: 'local',
    created_at: expect.stringMatching(/Z$/),
    gone_at: null,
    unowned_since: null,
    owned: true,
    provider: expect.any(String),
    provider_id: null,
    zone: 0,
    image: expect.any(String),
    warm: false,
    retired_at: null,
    last_report_at: null,
    host: expect.any(String),
  })
  await user.stop({ session_id, immediate: true })
  await eventually(
    () => findInstance(service.api, instanceId),
    (instance) => instance?.gone_at !== null && instance?.owned === false,
  )
})

test('an instance without an owner is listed with the time of the first sweep that found it', async () => {
  const instanceId = `orphan-${randomUUID()}`
  await observe('local', instanceId)
  expect(await findInstance(api, instanceId)).toMatchObject({
    session_id: null,
    user_id: null,
    masked_email: null,
    owned: false,
    gone_at: null,
    unowned_since: expect.stringMatching(/Z$/),
  })
})

test('instances are filtered by region and by whether they are gone', async () => {
  const [here, there, gone] = ['here', 'there', 'gone'].map((name) => `${name}-${randomUUID()}`) as [
    string,
    string,
    string,
  ]
  await observe('region-1', here, gone)
  await observe('region-2', there)
  await markInstanceGone(api.sql, gone)
  const idsOf = async (query: string) => (await list(api, query)).instances.map(({ instance_id }) => instance_id)
  expect((await idsOf('?region=region-1')).toSorted()).toEqual([here, gone].toSorted())
  expect(await idsOf('?region=region-1&gone=false')).toEqual([here])
  expect(await idsOf(`?instance_id=${there}`)).toEqual([there])
  expect(await idsOf('?region=region-1&gone=true')).toEqual([gone])
  expect(statusAndCode(await api.get('/admin/instances?gone=maybe', { headers: operator }))).toEqual([
    400,
    'invalid_request',
  ])
})

test('instances are listed in pages, the newest first', async () => {
  await api.sql`
    insert into instances (instance_id, region, created_at)
    select 'page-' || n, 'paged', now() - make_interval(secs => n) from generate_series(1, 150) n`
  const first = await list(api, '?region=paged')
  const second = await list(api, `?region=paged&cursor=${first.next_cursor}`)
  expect([first.instances.length, second.instances.length, second.next_cursor]).toEqual([100, 50, null])
  expect([...first.instances, ...second.instances].map(({ instance_id }) => instance_id)).toEqual(
    Array.from({ length: 150 }, (_, index) => `page-${index + 1}`),
  )
})

test('instances are listed for operators only', async () => {
  expect(statusAndCode(await api.get('/admin/instances'))).toEqual([401, 'invalid_operator'])
})

test('only existing instances without an owner are listed as orphans', async () => {
  await observe('orphans', 'orphan-1', 'orphan-2', 'orphan-gone')
  await markInstanceGone(api.sql, 'orphan-gone')
  await api.sql`insert into instances (instance_id, region) values ('not-observed', 'orphans')`
  const { instances } = await list(api, '?region=orphans&orphans=true')
  expect(instances.map(({ instance_id }) => instance_id).toSorted()).toEqual(['orphan-1', 'orphan-2'])
})
