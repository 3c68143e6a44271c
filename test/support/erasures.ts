/** Erasure of accounts by an operator, carried out by a worker that runs. */
import type { Answer, GivenUser, TestApi } from './api.ts'
import { runJob } from './jobs.ts'
import { operator } from './relays.ts'

type Account = Pick<GivenUser, 'userId' | 'email'>

export const requestErasure = (
  api: TestApi,
  { userId, email }: Account,
  parts: object = {},
): Promise<Answer<{ state: string }>> =>
  api.post<{ state: string }>(
    `/admin/users/${userId}/erase`,
    { email, reason: 'ticket 4711', ...parts },
    { headers: operator },
  )

/** Lets the job make one attempt after the other until the account is erased. */
export async function untilErased(api: TestApi, user: Account): Promise<Answer<{ state: string }>> {
  for (;;) {
    await api.sql`
      update users set deletion_attempt_at = now() where id = ${user.userId} and deletion_attempt_at is not null`
    await runJob(api.sql, 'delete_accounts')
    const answer = await requestErasure(api, user)
    if (answer.status !== 202) return answer
  }
}

/** Requests the erasure and waits for it. */
export async function eraseAccount(api: TestApi, user: Account): Promise<void> {
  await requestErasure(api, user)
  await untilErased(api, user)
}
