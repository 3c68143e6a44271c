/** The masked address of the account in the lists of the operator console. */
import { expect, test } from 'vitest'
import { eraseAccount } from '../../support/erasures.ts'
import { createListedAccount, type ListedAccount } from '../../support/listed-account.ts'
import { startOperatorConsole } from '../../support/operator-console.ts'

const { service, browser } = await startOperatorConsole()
const { api } = service

const lists: readonly (readonly [string, (account: ListedAccount) => string])[] = [
  ['relay sessions', ({ userId }) => `/operator/sessions?user_id=${userId}`],
  ['billing events', ({ userId }) => `/operator/billing?user_id=${userId}`],
  ['billed accounts', () => '/operator/billing/accounts?billed=without_plan'],
  ['audit entries', ({ userId }) => `/operator/audit?user_id=${userId}&action=did_something`],
  ['instances', ({ instanceId }) => `/operator/instances?show=all&instance_id=${instanceId}`],
]

test.each(lists)('the list of %s shows the masked address above the link to its account', async (_, pathOf) => {
  const account = await createListedAccount(api)
  const page = await browser.open(pathOf(account))
  expect(page.data('masked-email')).toEqual([account.maskedEmail])
  expect(page.links).toContain(`/operator/users/${account.userId}`)
  expect(page.text).toContain(`${account.maskedEmail} ${account.userId}`)
  expect(page.html).not.toContain('streamer')
  await api.sql`update users set addons_without_plan = 0 where id = ${account.userId}`
})

test.each(lists)('the list of %s shows the id alone of an account without an address', async (_, pathOf) => {
  const account = await createListedAccount(api)
  await api.sql`update users set email = null where id = ${account.userId}`
  const page = await browser.open(pathOf(account))
  expect(page.data('masked-email')).toEqual([])
  expect(page.links).toContain(`/operator/users/${account.userId}`)
  await api.sql`update users set addons_without_plan = 0 where id = ${account.userId}`
})

test('the pages of a session and a billing event show the masked address', async () => {
  const { sessionId, eventId, maskedEmail } = await createListedAccount(api)
  for (const path of [`/operator/sessions/${sessionId}`, `/operator/billing/events/${eventId}`])
    expect((await browser.open(path)).data('masked-email')).toEqual([maskedEmail])
})

test('the lists show no address of an erased account', async () => {
  const account = await createListedAccount(api)
  await eraseAccount(api, account)
  for (const path of [
    `/operator/billing/events/${account.eventId}`,
    '/operator/billing?status=parked&provider=stripe',
    `/operator/instances?show=all&instance_id=${account.instanceId}`,
    '/operator/audit?action=account_erased',
    `/operator/sessions?user_id=${account.userId}`,
  ]) {
    const page = await browser.open(path)
    expect([path, page.status]).toEqual([path, 200])
    expect(page.links).not.toContain(`/operator/users/${account.userId}`)
  }
  const instances = await browser.open(`/operator/instances?show=all&instance_id=${account.instanceId}`)
  expect([instances.data('instance'), instances.data('masked-email')]).toEqual([[account.instanceId], []])
  const erasures = await browser.open('/operator/audit?action=account_erased')
  expect([erasures.data('action'), erasures.data('masked-email')]).toEqual([['account_erased'], []])
})
