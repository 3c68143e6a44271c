/** Requests whose account is erased while they are answered. */
import { expect, test } from 'vitest'
import { type Answer, type GivenUser, startApi, statusAndCode } from '../../support/api.ts'
import { eventually, operator, operatorPassword } from '../../support/relays.ts'

const api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword })
const { sql } = api

/** Sends requests that have found the account, and commits its erasure while they wait for its row. */
async function eraseMeanwhile({ userId }: GivenUser, send: () => readonly Promise<Answer<object>>[]) {
  const sent = await sql.begin(async (tx) => {
    await tx`delete from users where id = ${userId}`
    const requests = send()
    await eventually(
      () => sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      (waiting) => waiting.length === requests.length,
    )
    return { requests }
  })
  return Promise.all(sent.requests)
}

test('a read is answered as it is afterwards', async () => {
  const user = await api.given.user()
  const replies = await eraseMeanwhile(user, () => [
    api.get(`/admin/users/${user.userId}/export`, { headers: operator }),
    api.get('/auth/account/export', { bearer: user.bearer }),
  ])
  expect(replies.map(statusAndCode)).toEqual([
    [404, 'not_found'],
    [401, 'unauthorized'],
  ])
})

test('a change is refused for now, and answered as it is afterwards when it is sent again', async () => {
  const user = await api.given.user()
  const change = () =>
    api.post(
      '/auth/password/change',
      { current_password: 'a wrong password', new_password: 'another long password' },
      { bearer: user.bearer },
    )
  const [reply] = await eraseMeanwhile(user, () => [change()])
  expect(reply && statusAndCode(reply)).toEqual([503, 'temporarily_unavailable'])
  expect(reply?.headers.get('retry-after')).toBe('2')
  expect(statusAndCode(await change())).toEqual([401, 'unauthorized'])
})
