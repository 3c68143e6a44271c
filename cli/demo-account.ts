/** The demo account of a new stack, created through the public API. */
import { createOperatorClient, expectStatus, request } from './api-client.ts'

export interface DemoAccount {
  email: string
  password: string
}

/** Rate limits last a minute, and several starts in a row may reach them. */
const retryMillisMax = 70_000

/**
 * Creates the account when it does not exist, with a paid plan and three add-ons.
 * @param isReady whether an earlier start has done so. Later changes, for example a downgrade, are kept then.
 */
export async function ensureDemoAccount(
  api: string,
  operatorPassword: string,
  account: DemoAccount,
  isReady: boolean,
): Promise<void> {
  const operator = createOperatorClient(api, operatorPassword)
  const existingId = await operator.findUserId(account.email)
  if (existingId !== undefined && isReady) return
  if (existingId === undefined) {
    const answer = await request(`${api}/api/v1/auth/signup`, { method: 'POST', body: account, retryMillisMax })
    // 409: an earlier attempt created the account, and its answer was lost.
    if (answer.status !== 409) expectStatus('The sign-up of the demo account', answer, 201, 202)
  }
  const id = existingId ?? (await operator.findUserId(account.email))
  if (id === undefined) throw new Error('The demo account does not exist after its sign-up')
  await operator.grantPlan(id, { plan_tier: 'paid', addons: 3 })
}
