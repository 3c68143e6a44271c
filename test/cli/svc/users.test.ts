/** The commands of svc for accounts and their plans. */
import { beforeAll, expect, test } from 'vitest'
import { type FakeRelayService, startFakeRelayService } from '../../support/fake-relays.ts'
import { eventually } from '../../support/relays.ts'
import { longRelayTimeouts } from '../../support/subscribers.ts'
import { operatorVariables, runSvcHere, svcOf } from '../../support/svc.ts'

let service: FakeRelayService
let svc: ReturnType<typeof svcOf>
beforeAll(async () => {
  service = await startFakeRelayService({ variables: longRelayTimeouts })
  svc = svcOf(service.api.url)
})

const absentId = '5d3f0c62-8a1e-4b7d-9c05-2f6e1a7b4d90'

test('an account is found by its address and by its id', async () => {
  const { email, userId } = await service.user()
  expect(await svc('users', 'find', email)).toContain(userId)
  const { users } = JSON.parse(await svc('users', 'find', userId, '--json'))
  expect(users).toEqual([expect.objectContaining({ id: userId, email })])
})

test.each(['nobody@example.com', absentId])(
  'an account that does not exist ends with exit code 3: %s',
  async (account) => {
    const { code, stdout, stderr } = await runSvcHere(['users', 'show', account], operatorVariables(service.api.url))
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(stderr).toMatch(/^error: /)
  },
)

test('an account is shown with its plan and its live sessions, and as the reply of the API with --json', async () => {
  const user = await service.user({ addons: 1 })
  const { session_id: id } = await service.startActiveRelay(user)
  const text = await svc('users', 'show', user.email)
  expect(text).toMatch(/^plan +paid, active$/m)
  expect(text).toMatch(/^in use +1 of 2$/m)
  expect(text).toMatch(new RegExp(`^${id} +active `, 'm'))
  expect(JSON.parse(await svc('users', 'show', user.email, '--json'))).toMatchObject({
    user: { id: user.userId },
    sessions: [{ session_id: id }],
  })
})

test('a plan is granted with add-ons, an end and a reason, and withdrawn', async () => {
  const { email, userId } = await service.api.given.user()
  const granted = await svc(
    'users',
    'grant',
    email,
    '--addons',
    '2',
    '--until',
    '2099-01-31 00:00:00 UTC',
    '--reason',
    'beta tester',
  )
  expect(granted).toMatch(/^plan +paid, active$/m)
  const plan = await svc('users', 'plan', userId)
  expect(plan).toMatch(/^workflow says +paid, active, add-ons: 2$/m)
  expect(plan).toMatch(/^next deadline +2099-01-31 00:00:00 UTC$/m)
  const audit = await svc('audit', '--user', email, '--action', 'plan_granted')
  expect(audit).toMatch(/operator +plan_granted .*reason=beta tester/)
  expect(await svc('users', 'grant', email, '--plan', 'free')).toMatch(/^plan +free, none$/m)
})

test('an account is disabled with a reason, listed as such, and enabled', async () => {
  const user = await service.user()
  await service.startActiveRelay(user)
  expect(await svc('users', 'disable', user.email, '--reason', 'chargeback')).toMatch(/^disabled +yes$/m)
  expect(await svc('users', 'list', '--disabled', 'true')).toContain(user.userId)
  expect((await service.api.get('/auth/session', { bearer: user.bearer })).status).toBe(401)
  expect(await svc('users', 'enable', user.email)).toMatch(/^disabled +no$/m)
})

test('the relays of an account are ended and refused, and allowed again', async () => {
  const user = await service.user()
  await service.startActiveRelay(user)
  expect(await svc('users', 'disable-relays', user.email, '--reason', 'abuse')).toMatch(/^relays +disabled /m)
  await eventually(
    async () => (await user.active()).sessions,
    (sessions) => sessions.length === 0,
  )
  expect(await svc('users', 'enable-relays', user.email)).toMatch(/^relays +enabled /m)
})

test('what an account pays for is listed', async () => {
  const { email } = await service.api.given.user()
  expect(JSON.parse(await svc('users', 'subscriptions', email, '--json'))).toEqual({
    subscriptions: [],
    next_cursor: null,
  })
})
