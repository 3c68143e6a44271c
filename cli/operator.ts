/** What commands ask of the running service in the operator's name. */
import { ask, basicAuth, expecting } from './http.ts'

/** A start right after several others may meet a limit that lasts a minute. */
const usualPatienceMillis = 70_000

export interface Plan {
  plan_tier: 'free' | 'paid'
  addons: number
}

export interface Operator {
  /** The account's id, or nothing when no account has the address. */
  userIdOf(email: string): Promise<string | undefined>
  /** Gives a complimentary plan, or takes it away. */
  grant(userId: string, plan: Plan): Promise<void>
}

/** Its requests are repeated while the API restarts: repeating them changes nothing. */
export function createOperator(api: string, password: string, patienceMillis = usualPatienceMillis): Operator {
  const headers = { authorization: basicAuth(password) }
  return {
    userIdOf: async (email) => {
      const url = `${api}/api/v1/admin/users?email=${encodeURIComponent(email)}`
      const answer = await ask<{ users: Array<{ id: string }> }>(url, { headers, patienceMillis })
      return expecting(`the search for ${email}`, answer, 200).users[0]?.id
    },
    grant: async (userId, plan) => {
      const request = { method: 'POST', headers, body: plan, patienceMillis } as const
      expecting('the grant of a plan', await ask(`${api}/api/v1/admin/users/${userId}/grant`, request), 200)
    },
  }
}
