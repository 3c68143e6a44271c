/** The operators' list of regions, and how they drain and resume one. */
import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { type ErrorBody, statusAndCode } from '../../../support/api.ts'
import { writeActive, writeStopped } from '../../../support/relay-rows.ts'
import { operator, startService, type TestService } from '../../../support/relays.ts'

const image = { image_id: 'ami-1', version: '2.0.0', released_at: '2026-01-02T03:04:05Z' }
const regions = JSON.stringify([
  { region: 'eu', display_name: 'Europe', provider: 'local', capacity: 5, warm: 2, image },
  { region: 'us', display_name: 'America', provider: 'local', capacity: 7 },
])

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false, variables: { SVC_REGIONS: regions } })
})
beforeEach(async () => {
  await service.api.sql`delete from regions`
})

interface Region {
  readonly region: string
  readonly drained_at: string | null
}

const list = async () =>
  (await service.api.get<{ regions: readonly Region[] }>('/admin/regions', { headers: operator })).body.regions
const post = (path: string) =>
  service.api.post<{ region: Region } & Partial<ErrorBody>>(`/admin/regions/${path}`, {}, { headers: operator })
const listAudit = async () =>
  (
    await service.api.sql<{ action: string; detail: { region: string } }[]>`
      select action, detail from audit_entries where action like 'region_%' order by id`
  ).map(({ action, detail }) => [action, detail.region])

test('the regions are listed with their sessions and instances', async () => {
  const { sql } = service.api
  const user = await service.user()
  const bound = (await user.start({ region: 'eu' })).body.session.session_id
  const starting = (await user.start({ region: 'eu', connection_id: 'b' })).body.session.session_id
  const ended = (await user.start({ region: 'eu', connection_id: 'c' })).body.session.session_id
  await writeActive(sql, bound)
  await writeStopped(sql, ended)
  await sql`
    insert into instances (instance_id, region, session_id, is_warm, last_report_at, launched_at, retired_at, gone_at) values
      ('i-1', 'eu', ${bound}, false, null, null, null, null),
      ('replaced', 'eu', ${bound}, false, null, null, null, null),
      ('created', 'eu', ${starting}, false, null, null, null, null),
      ('of-ended', 'eu', ${ended}, false, null, null, null, null),
      ('destroyed', 'eu', ${ended}, false, null, null, null, now()),
      ('ready', 'eu', null, true, now(), now(), null, null),
      ('booting', 'eu', null, true, null, null, null, null),
      ('launched', 'eu', null, true, null, now(), null, null),
      ('retired', 'eu', null, true, now(), now(), now(), null),
      ('orphan', 'eu', null, false, null, null, null, null),
      ('elsewhere', 'mars', null, false, null, null, null, null)`
  expect(await list()).toEqual([
    {
      region: 'eu',
      display_name: 'Europe',
      provider: 'local',
      capacity: 5,
      warm: 2,
      drained_at: null,
      image,
      sessions: 2,
      instances: { bound: 2, warm_ready: 1, warm_booting: 2, leftover: 4 },
    },
    expect.objectContaining({
      region: 'us',
      sessions: 0,
      instances: { bound: 0, warm_ready: 0, warm_booting: 0, leftover: 0 },
    }),
  ])
})

test('a drain keeps its time when it is repeated, and ends with a resume; each is audited', async () => {
  const before = await listAudit()
  const first = await post('us/drain')
  expect([first.status, first.body.region]).toEqual([
    200,
    expect.objectContaining({ region: 'us', drained_at: expect.stringMatching(/Z$/) }),
  ])
  const second = await post('us/drain')
  expect(second.body.region).toEqual(first.body.region)
  expect((await list()).map(({ drained_at }) => drained_at)).toEqual([null, first.body.region.drained_at])
  for (let times = 0; times < 2; times += 1)
    expect((await post('us/resume')).body.region).toMatchObject({ region: 'us', drained_at: null })
  expect((await list()).map(({ drained_at }) => drained_at)).toEqual([null, null])
  expect((await listAudit()).slice(before.length)).toEqual([
    ['region_drained', 'us'],
    ['region_drained', 'us'],
    ['region_resumed', 'us'],
    ['region_resumed', 'us'],
  ])
})

test('a drained region takes no new relay while its live relays run on, until it is resumed', async () => {
  const [user, other] = [await service.user(), await service.user()]
  const { session_id } = (await user.start({ region: 'us' })).body.session
  await post('us/drain')
  expect(statusAndCode(await other.start({ region: 'us' }))).toEqual([503, 'capacity_exhausted'])
  expect((await user.active()).session).toMatchObject({ session_id, state: 'provisioning' })
  await post('us/resume')
  expect((await other.start({ region: 'us' })).status).toBe(201)
})

test('an unknown region is not found, and is not stored', async () => {
  for (const path of ['mars/drain', 'mars/resume', `${randomUUID().slice(0, 32)}/drain`, 'auto/drain'])
    expect(statusAndCode(await post(path))).toEqual([404, 'not_found'])
  expect(await service.api.sql`select region from regions`).toHaveLength(0)
})

test('regions are listed and changed by operators only', async () => {
  const { bearer } = await service.api.given.user()
  expect(statusAndCode(await service.api.get('/admin/regions', { bearer }))).toEqual([401, 'invalid_operator'])
  expect(statusAndCode(await service.api.post('/admin/regions/us/drain', {}, { bearer }))).toEqual([
    401,
    'invalid_operator',
  ])
})
