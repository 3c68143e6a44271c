/** The demo account of a local start, also while the API fails. */
import { connect, createServer } from 'node:net'
import { beforeAll, expect, test } from 'vitest'
import { createOperatorClient, ensureDemoAccount, findUserByEmail } from '../../cli/plan-grants.ts'
import type { TestApi } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { startFakeRelayService } from '../support/fake-relays.ts'
import { findFreePort } from '../support/ports.ts'
import { operator, operatorPassword } from '../support/relays.ts'

let api: TestApi
beforeAll(async () => {
  // With a worker: without one, each grant waits for the account's workflow until its time is over.
  api = (await startFakeRelayService()).api
})

const password = 'a few words in a row'
const planOf = async (email: string) => {
  const { body } = await api.get<{ users: { plan_tier: string }[] }>(`/admin/users?email=${email}`, {
    headers: operator,
  })
  return body.users.map((user) => user.plan_tier)
}
const grantsTo = async (email: string) =>
  (
    await api.sql`select from billing_events e join users u on u.id = e.user_id where u.email = ${email} and action = 'grant'`
  ).length

/**
 * A proxy for the API.
 * @param lost the answer to the first request of each of these kinds is dropped.
 * @param refusedConnections so many connections are closed at once.
 */
async function startProxy(lost: readonly string[], refusedConnections = 0): Promise<string> {
  const left = new Set(lost)
  let connections = 0
  const server = createServer((from) => {
    connections += 1
    if (connections <= refusedConnections) return from.resetAndDestroy()
    const to = connect(Number(new URL(api.url).port), '127.0.0.1')
    let isLost = false
    from.on('error', () => to.destroy()).on('close', () => to.destroy())
    to.on('error', () => from.destroy()).on('close', () => from.destroy())
    from.on('data', (chunk) => {
      const found = [...left].find((request) => chunk.toString('latin1').startsWith(request))
      if (found) {
        left.delete(found)
        isLost = true
      }
      to.write(chunk)
    })
    to.on('data', (chunk) => (isLost ? from.resetAndDestroy() : from.write(chunk)))
  })
  const port = await findFreePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  atEnd(() => server.close())
  return `http://127.0.0.1:${port}`
}

test('the demo account is created although the API is unreachable at first', async () => {
  const url = await startProxy([], 2)
  const account = { email: 'outage@example.com', password }
  await ensureDemoAccount(url, operatorPassword, account, false)
  expect(await grantsTo(account.email)).toBe(1)
})

test('the demo account gets its plan although the answer to each request is lost once', async () => {
  const url = await startProxy(['GET /api/v1/admin/users', 'POST /api/v1/auth/signup', 'POST /api/v1/admin/users'])
  const account = { email: 'lost@example.com', password }
  await ensureDemoAccount(url, operatorPassword, account, false)
  expect(await planOf(account.email)).toHaveLength(1)
  expect(await grantsTo(account.email)).toBeGreaterThan(0)
  expect((await api.post('/auth/login', account)).status).toBe(200)
})

test('an existing account with the demo address gets the plan and keeps its password', async () => {
  const account = { email: 'known@example.com', password }
  await api.post('/auth/signup', { ...account, password: 'other words in a row' })
  await ensureDemoAccount(api.url, operatorPassword, account, false)
  expect(await grantsTo(account.email)).toBe(1)
  expect((await api.post('/auth/login', account)).status).toBe(401)
})

test('an error of the API is reported at once, with its code', async () => {
  await expect(
    ensureDemoAccount(api.url, 'not the password', { email: 'x@example.com', password }, false),
  ).rejects.toThrow(/401 invalid_operator/)
})

test('an API that could not be reached is reported with its URL and the cause', async () => {
  const url = `http://127.0.0.1:${await findFreePort()}`
  await expect(findUserByEmail(createOperatorClient(url, operatorPassword, 0), 'x@example.com')).rejects.toThrow(
    `${url}/api/v1/admin/users could not be reached: connect ECONNREFUSED`,
  )
})
