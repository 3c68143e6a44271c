/** The activity page of an account, in a browser without scripts. */
import { expect, test } from 'vitest'
import { recordAuditEntry } from '../../../db/audit.ts'
import type { GivenUser } from '../../support/api.ts'
import { writeProvisionFailed } from '../../support/relay-rows.ts'
import { startApiAndSite } from '../../support/site.ts'
import type { Browser } from '../../support/site-browser.ts'

const { api, site } = await startApiAndSite()

function browserOf({ bearer }: Pick<GivenUser, 'bearer'>): Browser {
  const browser = site.browser()
  browser.cookies.set('svc_session', bearer)
  return browser
}

test('repeated sign-up attempts with the address of the account are shown once with their count', async () => {
  const user = await api.given.user()
  const signUp = () =>
    api.post('/auth/signup', { email: user.email, password: 'a password of mine' }, { ip: '198.51.100.1' })
  await signUp()
  const once = await browserOf(user).open('/account/activity')
  expect([once.data('action').filter((action) => action === 'signup_refused'), once.data('times')]).toEqual([
    ['signup_refused'],
    [],
  ])
  expect(once.text).toContain('198.51.100.1')
  await signUp()
  for (const n of [2, 3, 4, 5])
    await api.post('/auth/password/forgot', { email: user.email }, { ip: `198.51.100.${n}` })
  const page = await browserOf(user).open('/account/activity')
  expect(page.data('times')).toEqual(['2', '2'])
  expect(page.data('action').filter((action) => action === 'signup_refused')).toHaveLength(1)
  // The entry for several addresses names none of them.
  expect(page.text).not.toContain('198.51.100.5')
})

test('activity is listed newest first, and names of plugins are escaped', async () => {
  const user = await api.given.user()
  await api.given.signIn(user, '<img src=x onerror=alert(1)>')
  await api.post('/auth/login', { email: user.email, password: 'wrong, all of it' })
  await recordAuditEntry(api.sql, { initiator: 'operator', action: 'plan_granted', userId: user.userId })
  const page = await browserOf(user).open('/account/activity')
  expect(page.data('action').toSorted()).toEqual(['plan_granted', 'sign_in_failed', 'signed_in', 'signed_in'])
  expect(page.text).toContain('<img src=x onerror=alert(1)>')
  expect(page.html).not.toContain('<img')
})

/** Adds an ended session of the account that could not be created. */
const addEndedSession = ({ userId }: GivenUser, connectionId = 'main') => api.sql`
  insert into relay_sessions (user_id, connection_id, region, command_initiator)
  values (${userId}, ${connectionId}, 'local', 'user') returning id`

test('starts and ends of relays are listed with the reason', async () => {
  const user = await api.given.user()
  const [session] = await addEndedSession(user)
  await writeProvisionFailed(api.sql, session?.id, 'capacity')
  const page = await browserOf(user).open('/account/activity')
  expect(page.data('action')).toEqual(expect.arrayContaining(['relay_stopped', 'relay_started', 'signed_in']))
  expect(page.data('reason')).toEqual(['provision_failed'])
  expect(page.text).toContain('main · local')
})

test('the activity is filtered by its kind, and unknown kinds show all', async () => {
  const user = await api.given.user()
  await recordAuditEntry(api.sql, { initiator: 'user', action: 'email_changed', userId: user.userId })
  await addEndedSession(user)
  const browser = browserOf(user)
  const shown = async (query: string) => (await browser.open(`/account/activity${query}`)).data('action').toSorted()
  expect(await shown('')).toEqual(['email_changed', 'relay_started', 'signed_in'])
  expect(await shown('?group=security')).toEqual(['email_changed'])
  expect(await shown('?group=relays')).toEqual(['relay_started'])
  expect(await shown('?group=constructor')).toEqual(['email_changed', 'relay_started', 'signed_in'])
  const empty = await browser.open('/account/activity?group=plan')
  expect([empty.data('action'), empty.data('empty')]).toEqual([[], ['yes']])
})

test('older activity is on further pages of the same kind', async () => {
  const user = await api.given.user()
  await api.sql`
    insert into audit_entries (initiator, action, user_id)
    select 'user', 'email_verified', ${user.userId} from generate_series(1, 60)`
  const browser = browserOf(user)
  const first = await browser.open('/account/activity?group=security')
  expect(first.data('action')).toHaveLength(50)
  const older = first.links.find((link) => link.includes('cursor=')) ?? ''
  const second = await browser.open(older.replaceAll('&amp;', '&'))
  expect(second.data('action')).toHaveLength(10)
  expect(second.links.some((link) => link.includes('cursor='))).toBe(false)
})

test('a cursor that does not exist leads to the first page', async () => {
  const page = await browserOf(await api.given.user()).open('/account/activity?group=sign_in&cursor=nonsense')
  expect([page.status, page.path]).toEqual([200, '/account/activity?group=sign_in'])
})
