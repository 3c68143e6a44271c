/** Accounts and their complimentary plans, through the API for operators; and the demo account of a new stack. */
import { expectSuccess } from '../client/api-error.ts'
import { type ApiClient, createApiClient, operatorCredentials } from '../client/client.ts'
import type { Reply } from '../client/reply.ts'

export type User = Reply<'get', '/admin/users'>['users'][number]
type Grant = Reply<'post', '/admin/users/{id}/grant'>

export interface Plan {
  readonly plan_tier: 'free' | 'paid'
  readonly addons: number
  /** ISO 8601; without it the grant does not end. */
  readonly until?: string
  /** For the audit trail. */
  readonly reason?: string
}

/** Rate limits last a minute, and several starts in a row may reach them. */
const retryMillisMax = 70_000

/**
 * A client with the operator's rights. It repeats requests while the API restarts: use it only for those that are safe
 * to repeat.
 */
export const createOperatorClient = (api: string, operatorPassword: string, retryMillis = retryMillisMax): ApiClient =>
  createApiClient({ baseUrl: api, headers: operatorCredentials(operatorPassword), retryMillisMax: retryMillis })

/** The account with an email address; undefined when there is none. */
export async function findUserByEmail(operator: ApiClient, email: string): Promise<User | undefined> {
  const found = await operator.GET('/api/v1/admin/users', { params: { query: { email } } })
  return expectSuccess(found, `The search for ${email}`).users[0]
}

/** Grants a complimentary plan, or withdraws it with the tier `free`. Safe to repeat. */
export async function grantPlan(operator: ApiClient, userId: string, plan: Plan): Promise<Grant> {
  const params = { path: { id: userId } }
  return expectSuccess(await operator.POST('/api/v1/admin/users/{id}/grant', { params, body: plan }), 'The grant')
}

export interface DemoAccount {
  email: string
  password: string
}

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
