/** The account that a new stack comes with, made through the public API like any other. */
import { ask, basicAuth, expecting } from './http.ts'

export interface DemoAccount {
  email: string
  password: string
}

/** A start right after several others may meet a limit that lasts a minute. */
const patienceMillis = 70_000

/**
 * Makes sure that it exists and, at its making, gives it a paid plan with three add-ons. Later starts only look: what
 * somebody did to the account since, a downgrade for instance, stays.
 */
export async function ensureDemoAccount(
  api: string,
  operatorPassword: string,
  account: DemoAccount,
  isReady: boolean,
): Promise<void> {
  const headers = { authorization: basicAuth(operatorPassword) }
  const find = async () => {
    const url = `${api}/api/v1/admin/users?email=${encodeURIComponent(account.email)}`
    const answer = await ask<{ users: Array<{ id: string }> }>(url, { headers, patienceMillis })
    return expecting('the search for the demo account', answer, 200).users[0]?.id
  }
  const known = await find()
  if (known !== undefined && isReady) return
  if (known === undefined) {
    const request = { method: 'POST', body: account, patienceMillis } as const
    expecting('the sign-up of the demo account', await ask(`${api}/api/v1/auth/signup`, request), 201, 202)
  }
  const id = known ?? (await find())
  const request = { method: 'POST', headers, body: { plan_tier: 'paid', addons: 3 }, patienceMillis } as const
  expecting("the grant of the demo account's plan", await ask(`${api}/api/v1/admin/users/${id}/grant`, request), 200)
}
