/** The demo account of a new stack, created through the public API. */
import { expectSuccess } from '../client/api-error.ts'
import { createApiClient } from '../client/client.ts'
import { createOperatorClient, findUserByEmail, grantPlan } from './plan-grants.ts'

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
  const existing = await findUserByEmail(operator, account.email)
  if (existing && isReady) return
  if (!existing) {
    const created = await createApiClient({ baseUrl: api, retryMillisMax }).POST('/api/v1/auth/signup', {
      body: account,
    })
    // 409: an earlier attempt created the account, and its answer was lost.
    if (created.response.status !== 409) expectSuccess(created, 'The sign-up of the demo account')
  }
  const user = existing ?? (await findUserByEmail(operator, account.email))
  if (!user) throw new Error('The demo account does not exist after its sign-up')
  await grantPlan(operator, user.id, { plan_tier: 'paid', addons: 3 })
}
