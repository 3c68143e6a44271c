/** The account that a new stack comes with, made through the public API like any other. */
import { ask, expecting } from './http.ts'
import { createOperator } from './operator.ts'

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
  const operator = createOperator(api, operatorPassword)
  const known = await operator.userIdOf(account.email)
  if (known !== undefined && isReady) return
  if (known === undefined) {
    const request = { method: 'POST', body: account, patienceMillis } as const
    const answer = await ask(`${api}/api/v1/auth/signup`, request)
    // No account had the address a moment ago: an earlier attempt made this one, and its reply got lost.
    if (answer.status !== 409) expecting('the sign-up of the demo account', answer, 201, 202)
  }
  const id = known ?? (await operator.userIdOf(account.email))
  if (id === undefined) throw new Error('the demo account is gone right after its sign-up')
  await operator.grant(id, { plan_tier: 'paid', addons: 3 })
}
