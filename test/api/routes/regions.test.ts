import { beforeAll, describe, expect, test } from 'vitest'
import type { ErrorBody } from '../../support/api.ts'
import { startService, type TestService } from '../../support/relays.ts'

const image = { image_id: 'ami-1', version: '2.0.0', released_at: '2026-01-02T03:04:05Z' }
const regions = JSON.stringify([
  { region: 'eu', display_name: 'Europe', provider: 'local', capacity: 5, image },
  { region: 'us', display_name: 'America', provider: 'local', capacity: 1 },
  { region: 'closed', display_name: 'Closed', provider: 'local', capacity: 0 },
])

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false, variables: { SVC_REGIONS: regions } })
})

interface Manifest {
  readonly regions: readonly { readonly region: string; readonly available: boolean; readonly default: boolean }[]
}
interface Capacity {
  readonly status: string
  readonly regions: readonly { readonly region: string; readonly status: string }[]
  readonly as_of: string
}

const capacity = async () => (await service.api.get<Capacity>('/capacity/status')).body
const rooms = async () => (await capacity()).regions.map((one) => one.status)

describe('the manifest', () => {
  test('lists each region with its image; the first is the default unless one is configured', async () => {
    const { bearer } = await service.api.given.user()
    const { status, body } = await service.api.get<Manifest>('/relay/manifest', { bearer })
    expect(status).toBe(200)
    expect(body.regions[0]).toEqual({
      region: 'eu',
      display_name: 'Europe',
      provider: 'local',
      default: true,
      available: true,
      image,
    })
    expect(body.regions.map((one) => [one.region, one.default, one.available])).toEqual([
      ['eu', true, true],
      ['us', false, true],
      ['closed', false, false],
    ])
  })

  test('requires a sign-in', async () => {
    const answer = await service.api.get<ErrorBody>('/relay/manifest')
    expect([answer.status, answer.body.error.code]).toEqual([401, 'unauthorized'])
  })
})

test('the capacity status is public and follows the number of live relays', async () => {
  expect(await capacity()).toEqual({
    status: 'available',
    regions: [
      { region: 'eu', status: 'available' },
      { region: 'us', status: 'available' },
      { region: 'closed', status: 'full' },
    ],
    as_of: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  })
  const [one, other] = [await service.user(), await service.user()]
  await other.start({ region: 'us' })
  expect(await rooms()).toEqual(['available', 'full', 'full'])
  for (const name of ['a', 'b', 'c']) await one.start({ connection_id: name })
  expect(await rooms()).toEqual(['available', 'full', 'full'])
  await one.start({ connection_id: 'd' })
  expect(await rooms()).toEqual(['limited', 'full', 'full'])
  expect((await capacity()).status).toBe('limited')
  await other.start({ connection_id: 'e' })
  expect(await capacity()).toMatchObject({ status: 'full', regions: [{ status: 'full' }, { status: 'full' }, {}] })
  const { body } = await service.api.get<Manifest>('/relay/manifest', { bearer: one.bearer })
  expect(body.regions.map((each) => each.available)).toEqual([false, false, false])

  await service.api.sql`
    update relay_sessions set state = 'stopped', reason = 'stop_requested', stopped_at = now(), pair_token_sealed = null,
      pair_token_hash = null, relay_ws_token_sealed = null, relay_ws_token_hash = null
    where region = 'us'`
  expect((await capacity()).status).toBe('available')
})
