/** The masked address of the account in the lists of operators. */
import { beforeAll, expect, test } from 'vitest'
import { eraseAccount } from '../../../support/erasures.ts'
import { type FakeRelayService, startFakeRelayService } from '../../../support/fake-relays.ts'
import { createListedAccount, type ListedAccount } from '../../../support/listed-account.ts'
import { operator } from '../../../support/relays.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService()
})

interface Row {
  readonly user_id: string | null
  readonly masked_email: string | null
}

const get = async <Body extends object>(path: string) =>
  (await service.api.get<Body>(`/admin${path}`, { headers: operator })).body
const rowsOf = async (path: string): Promise<readonly Row[]> =>
  Object.values(await get<Record<string, unknown>>(path)).flatMap((part) => (Array.isArray(part) ? part : []))

const lists: readonly (readonly [string, (account: ListedAccount) => string])[] = [
  ['relay sessions', ({ userId }) => `/sessions?user_id=${userId}`],
  ['billing events', ({ userId }) => `/billing/events?user_id=${userId}`],
  ['billed accounts', () => '/billing/accounts?billed=without_plan'],
  ['audit entries', ({ userId }) => `/audit?user_id=${userId}`],
  ['instances', ({ instanceId }) => `/instances?instance_id=${instanceId}`],
]

test.each(lists)('each row of the list of %s has the masked address of its account only', async (_, pathOf) => {
  const account = await createListedAccount(service.api)
  const rows = (await rowsOf(pathOf(account))).filter(({ user_id }) => user_id === account.userId)
  expect(rows.length).toBeGreaterThan(0)
  expect(new Set(rows.map((row) => row.masked_email))).toEqual(new Set([account.maskedEmail]))
  expect(JSON.stringify(rows)).not.toContain('streamer')
})

test.each(lists)('a row of the list of %s has none for an account without an address', async (_, pathOf) => {
  const account = await createListedAccount(service.api)
  await service.api.sql`update users set email = null where id = ${account.userId}`
  const rows = (await rowsOf(pathOf(account))).filter(({ user_id }) => user_id === account.userId)
  expect(new Set(rows.map((row) => row.masked_email))).toEqual(new Set([null]))
})

test('a live session of an account, a session and a billing event have the masked address', async () => {
  const user = await service.user()
  const { session_id: id } = (await user.start()).body.session
  const { eventId, maskedEmail, ...listed } = await createListedAccount(service.api)
  const expected = `${user.email.charAt(0)}•••@e•••.com`
  const { sessions } = await get<{ sessions: readonly Row[] }>(`/users/${user.userId}`)
  expect(sessions).toMatchObject([{ session_id: id, masked_email: expected }])
  expect(await get(`/sessions/${listed.sessionId}`)).toMatchObject({ session: { masked_email: maskedEmail } })
  expect(await get(`/billing/events/${eventId}`)).toMatchObject({ event: { masked_email: maskedEmail } })
})

test('what stays of an erased account has no masked address', async () => {
  const account = await createListedAccount(service.api)
  await eraseAccount(service.api, account)
  const none = { user_id: null, masked_email: null }
  expect((await get<{ event: Row }>(`/billing/events/${account.eventId}`)).event).toMatchObject(none)
  expect(await rowsOf(`/instances?instance_id=${account.instanceId}`)).toMatchObject([none])
  expect(await rowsOf(`/sessions?user_id=${account.userId}`)).toEqual([])
  expect(await rowsOf(`/audit?user_id=${account.userId}`)).toEqual([])
  const kept = (await rowsOf('/audit')).filter((entry) => JSON.stringify(entry).includes(account.userId))
  expect(kept).toMatchObject([
    { action: 'account_erased', ...none },
    { action: 'account_erasure_requested', ...none },
  ])
})
