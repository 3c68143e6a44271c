/** Accounts without a plan whose address a mail of ours has proved, and the relay time of their trials. */
import { expect } from 'vitest'
import type { GivenUser, TestApi } from './api.ts'
import { mailsTo } from './mails.ts'
import type { RelayUser, TestService } from './relays.ts'

/** Follows the link that is mailed to the account. */
export async function proveAddress(api: TestApi, { email, bearer }: GivenUser): Promise<void> {
  expect((await api.post('/auth/email/resend', undefined, { bearer })).status).toBe(202)
  const { token } = mailsTo(api, email).at(-1) ?? {}
  expect((await api.post('/auth/email/verify', { token })).status).toBe(204)
}

/** An account on the free tier, whose address nothing has verified. */
export async function givenStranger(service: TestService): Promise<RelayUser> {
  const user = await service.user()
  await service.api.sql`update users set plan_tier = 'free', plan_status = 'none', addons = 0 where id = ${user.userId}`
  return user
}

/** An account on the free tier with a proved address. */
export async function givenNewcomer(service: TestService): Promise<RelayUser> {
  const user = await givenStranger(service)
  await proveAddress(service.api, user)
  return user
}

/** Lets the relay time of the account's trial, and of its running relay, have begun so many seconds earlier. */
export async function ageTrial({ sql }: TestApi, { userId }: GivenUser, seconds: number): Promise<void> {
  await sql`update trials set started_at = started_at - make_interval(secs => ${seconds}) where user_id = ${userId}`
  await sql`
    update usage_intervals set started_at = started_at - make_interval(secs => ${seconds})
    where user_id = ${userId} and ended_at is null`
}

export interface ShownTrial {
  readonly reason_code: string
  readonly relay_access_status: string
  readonly max_concurrent_conns: number
  readonly trial?: { readonly state: string; readonly remaining_seconds: number; readonly total_seconds: number }
}

/** What the account summary says. */
export const entitlementOf = async (api: TestApi, { bearer }: GivenUser): Promise<ShownTrial> =>
  (await api.get<{ entitlement: ShownTrial }>('/auth/session', { bearer })).body.entitlement
