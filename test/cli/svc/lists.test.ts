/** The lists of svc, page by page, and how they reach a terminal. */
import { beforeAll, expect, test } from 'vitest'
import { recordGrant } from '../../../db/billing/events.ts'
import { recordObservations } from '../../../db/fleet/orphans.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createListedAccount } from '../../support/listed-account.ts'
import { operatorPassword } from '../../support/relays.ts'
import { operatorVariables, runSvcHere, startSvc, svcOf } from '../../support/svc.ts'

/** Without a worker, so that rows stay as they are written. */
let api: TestApi
let svc: ReturnType<typeof svcOf>
beforeAll(async () => {
  api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword })
  svc = svcOf(api.url)
})

const linesOf = (text: string) => text.trimEnd().split('\n')

async function writeSessions(userId: string, count: number): Promise<void> {
  await api.sql`
    insert into relay_sessions (user_id, connection_id, region, command_initiator)
    select ${userId}, 'c' || n, 'local', 'user' from generate_series(1, ${count}::int) n`
}

test('more sessions than a page has are listed page by page, and all at once with --all', async () => {
  const { userId } = await api.given.user()
  await writeSessions(userId, 150)
  const first = await runSvcHere(['sessions', 'list', '--user', userId], operatorVariables(api.url))
  expect(linesOf(first.stdout)).toHaveLength(101)
  const [, cursor = ''] = /--cursor (\S+)/.exec(first.stderr) ?? []
  const second = await runSvcHere(
    ['sessions', 'list', '--user', userId, '--cursor', cursor],
    operatorVariables(api.url),
  )
  expect(linesOf(second.stdout)).toHaveLength(51)
  expect(second.stderr).toBe('')
  const { sessions, next_cursor } = JSON.parse(await svc('sessions', 'list', '--user', userId, '--all', '--json'))
  expect(new Set(sessions.map(({ session_id }: { session_id: string }) => session_id)).size).toBe(150)
  expect(next_cursor).toBeNull()
})

test('a reader that ends early ends the command without an error', async () => {
  const { userId } = await api.given.user()
  await writeSessions(userId, 250)
  const words = ['sessions', 'list', '--user', userId, '--all', '--json']
  const { child, ended } = await startSvc(words, operatorVariables(api.url))
  child.stdout.once('data', () => child.stdout.destroy())
  expect(await ended).toMatchObject({ code: 0, stderr: '' })
})

test('billing events are listed by status, shown and replayed', async () => {
  const { userId, email } = await api.given.user()
  const id = await recordGrant(api.sql, { userId, planTier: 'paid', addons: 1, until: null })
  expect(await svc('billing', 'events', 'list', '--status', 'pending', '--user', email)).toMatch(
    new RegExp(`^EVENT .*\\n${id} .* pending +operator `),
  )
  expect(await svc('billing', 'events', 'show', id)).toMatch(/^Normalised$[\s\S]*^quantity +1$/m)
  expect(await svc('billing', 'events', 'replay', id, '--reason', 'after an upgrade')).toMatch(/^status +pending$/m)
  const refused = await runSvcHere(
    ['billing', 'events', 'dismiss', id, '--reason', 'no longer needed'],
    operatorVariables(api.url),
  )
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('Only a parked or dead event') })
})

test('accounts that pay for nothing are listed', async () => {
  expect(linesOf(await svc('billing', 'unused', '--billed', 'twice'))).toHaveLength(1)
})

test('instances and orphans are listed', async () => {
  await recordObservations(api.sql, {
    region: 'local',
    listed: [{ instanceId: 'i-orphan', sessionId: null }],
    listLagSeconds: 0,
  })
  expect(await svc('orphans')).toMatch(/^INSTANCE .*\ni-orphan +local +- +no /)
  const { instances } = JSON.parse(await svc('instances', 'list', '--instance', 'i-orphan', '--json'))
  expect(instances).toEqual([expect.objectContaining({ instance_id: 'i-orphan', owned: false })])
})

test('the lists have the masked address beside the id of the account', async () => {
  const { userId, maskedEmail, sessionId, eventId, instanceId } = await createListedAccount(api)
  const cells = `${userId} +${maskedEmail}`
  const rowOf = (id: string) => new RegExp(`^${id} .*${cells}`, 'm')
  expect(await svc('sessions', 'list', '--user', userId)).toMatch(rowOf(sessionId))
  expect(await svc('sessions', 'show', sessionId)).toMatch(new RegExp(`^email +${maskedEmail}$`, 'm'))
  expect(await svc('billing', 'events', 'list', '--user', userId)).toMatch(rowOf(eventId))
  expect(await svc('billing', 'events', 'show', eventId)).toMatch(new RegExp(`^email +${maskedEmail}$`, 'm'))
  expect(await svc('billing', 'unused', '--billed', 'without_plan')).toMatch(new RegExp(`^${cells} `, 'm'))
  expect(await svc('instances', 'list', '--instance', instanceId)).toMatch(rowOf(instanceId))
  expect(await svc('audit', '--user', userId, '--action', 'did_something')).toMatch(new RegExp(cells))
  const { entries } = JSON.parse(await svc('audit', '--user', userId, '--json'))
  expect(entries[0]).toMatchObject({ user_id: userId, masked_email: maskedEmail })
})

test('a region is drained and resumed with reasons, which are audited', async () => {
  const operator = operatorVariables(api.url)
  const drained = await runSvcHere(['regions', 'drain', 'local', '--reason', 'maintenance'], operator)
  expect(drained.stdout).toMatch(/ \d{4}-\d\d-\d\d [\d:]+ UTC\n$/)
  expect([drained.code, drained.stderr]).toEqual([0, expect.stringContaining('svc regions resume local --reason')])
  expect(await svc('regions', 'resume', 'local', '--reason', 'it is over')).toMatch(/ -\n$/)
  expect(await svc('audit', '--action', 'region_drained')).toMatch(/ reason=maintenance region=local$/m)
  expect(await svc('audit', '--action', 'region_resumed')).toMatch(/ reason=it is over region=local$/m)
  const missing = await runSvcHere(['regions', 'resume', 'nowhere', '--reason', 'test'], operator)
  expect(missing.code).toBe(3)
})

test('jobs and the overview are shown', async () => {
  await api.sql`insert into jobs (name) values ('a_job') on conflict do nothing`
  expect(await svc('jobs', 'list')).toMatch(/^a_job +0 +0 +-/m)
  expect(await svc('overview')).toMatch(/^workers +0$[\s\S]*^Regions\n/m)
})

test('control characters in texts of users do not reach the terminal', async () => {
  const { userId, email } = await api.given.user()
  await api.sql`
    insert into audit_entries (user_id, initiator, action, client)
    values (${userId}, 'user', 'signed_in', ${'evil\u001b]0;title\u0007'})`
  const text = await svc('audit', '--user', email)
  expect(text).toContain('evil ]0;title ')
  expect(text.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
})
