/** The account that a new stack comes with, made through the public API like any other. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface DemoAccount {
  email: string
  password: string
}

const patienceMillis = 60_000

interface Answer {
  status: number
  body: unknown
}

/** Asks again while the service says that it can't answer at the moment. */
async function ask(url: string, init: RequestInit): Promise<Answer> {
  const deadline = Date.now() + patienceMillis
  for (;;) {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(15_000) })
    const text = await response.text()
    const waitMillis = Number(response.headers.get('retry-after') ?? 1) * 1000
    if ((response.status !== 503 && response.status !== 429) || Date.now() + waitMillis > deadline) {
      return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
    }
    await sleep(waitMillis)
  }
}

const expecting = (what: string, { status, body }: Answer, ...statuses: number[]): unknown => {
  if (statuses.includes(status)) return body
  throw new Error(`${what} was answered with ${status}: ${JSON.stringify(body)}`)
}

/**
 * Makes sure that it exists and, at its making, gives it a paid plan with three add-ons. Later starts only look: what
 * somebody did to the account since, a downgrade for instance, stays.
 */
export async function ensureDemoAccount(
  api: string,
  operatorPassword: string,
  { email, password }: DemoAccount,
  isReady: boolean,
): Promise<void> {
  const operator = { authorization: `Basic ${Buffer.from(`operator:${operatorPassword}`).toString('base64')}` }
  const json = { 'content-type': 'application/json' }
  const find = async () => {
    const answer = await ask(`${api}/api/v1/admin/users?email=${encodeURIComponent(email)}`, { headers: operator })
    const { users } = expecting('the search for the demo account', answer, 200) as { users: Array<{ id: string }> }
    return users[0]?.id
  }
  const known = await find()
  if (known !== undefined && isReady) return
  if (known === undefined) {
    const body = JSON.stringify({ email, password })
    const answer = await ask(`${api}/api/v1/auth/signup`, { method: 'POST', headers: json, body })
    expecting('the sign-up of the demo account', answer, 201, 202)
  }
  const id = known ?? (await find())
  const grant = await ask(`${api}/api/v1/admin/users/${id}/grant`, {
    method: 'POST',
    headers: { ...json, ...operator },
    body: JSON.stringify({ plan_tier: 'paid', addons: 3 }),
  })
  expecting("the grant of the demo account's plan", grant, 200)
}
