/** The commands' client of the running service, which uses the public API like any other client. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface Answer<T = unknown> {
  status: number
  body: T
}

export interface Request {
  method?: 'GET' | 'POST'
  /** Sent as JSON. */
  body?: unknown
  headers?: Readonly<Record<string, string>>
  /**
   * How long to repeat the request while there is no answer, or the answer is 503 or 429. 0 by default. A request whose answer
   * was lost is repeated too, so it must be safe to repeat.
   */
  retryMillisMax?: number
}

const retryMillis = 500
const requestMillisMax = 15_000
/** Rate limits last a minute, and several starts in a row may reach them. */
const operatorRetryMillisMax = 70_000
const healthyMillisMax = 120_000

export const basicAuth = (operatorPassword: string): string =>
  `Basic ${Buffer.from(`operator:${operatorPassword}`).toString('base64')}`

/** Sends a request. Rejects when there is no answer, or its body is not JSON. */
export async function request<T = unknown>(url: string, options: Request = {}): Promise<Answer<T>> {
  const deadline = Date.now() + (options.retryMillisMax ?? 0)
  for (;;) {
    const answer = await requestOnce(url, options)
    const waitMillis = answer instanceof Error ? retryMillis : answer.retryAfterMillis
    const isLast = Date.now() + waitMillis > deadline
    if (answer instanceof Error) {
      if (isLast) throw answer
    } else if (isLast || (answer.status !== 503 && answer.status !== 429)) {
      return { status: answer.status, body: (answer.text === '' ? undefined : JSON.parse(answer.text)) as T }
    }
    await sleep(waitMillis)
  }
}

interface RawAnswer {
  status: number
  text: string
  retryAfterMillis: number
}

/** The answer, or the error with its cause when there is none. */
async function requestOnce(url: string, { method = 'GET', body, headers }: Request): Promise<RawAnswer | Error> {
  try {
    const response = await fetch(url, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(requestMillisMax),
    })
    const retryAfterMillis = Number(response.headers.get('retry-after') ?? 1) * 1000
    return { status: response.status, text: await response.text(), retryAfterMillis }
  } catch (error) {
    const { message, cause } = error as Error
    return new Error(`${url} could not be reached: ${cause instanceof Error ? cause.message : message}`, {
      cause: error,
    })
  }
}

/** The body of an answer with one of the statuses. Throws an error with the API's error code for any other. */
export function expectStatus<T>(action: string, answer: Answer<T>, ...statuses: number[]): T {
  if (statuses.includes(answer.status)) return answer.body
  const { error } = (answer.body ?? {}) as { error?: { code?: string; message?: string } }
  throw new Error(`${action} failed: ${answer.status} ${error?.code ?? ''}: ${error?.message ?? ''}`)
}

export interface Plan {
  plan_tier: 'free' | 'paid'
  addons: number
}

export interface OperatorClient {
  /** The id of the account with an email address; undefined when there is none. */
  findUserId(email: string): Promise<string | undefined>
  /** Grants a complimentary plan, or revokes it with the tier `free`. */
  grantPlan(userId: string, plan: Plan): Promise<void>
}

/** A client with the operator's rights. It repeats requests while the API restarts, which is safe for all of them. */
export function createOperatorClient(
  api: string,
  operatorPassword: string,
  retryMillisMax = operatorRetryMillisMax,
): OperatorClient {
  const headers = { authorization: basicAuth(operatorPassword) }
  return {
    findUserId: async (email) => {
      const url = `${api}/api/v1/admin/users?email=${encodeURIComponent(email)}`
      const answer = await request<{ users: Array<{ id: string }> }>(url, { headers, retryMillisMax })
      return expectStatus(`The search for ${email}`, answer, 200).users[0]?.id
    },
    grantPlan: async (userId, plan) => {
      const url = `${api}/api/v1/admin/users/${userId}/grant`
      expectStatus('The grant', await request(url, { method: 'POST', headers, body: plan, retryMillisMax }), 200)
    },
  }
}

/**
 * Waits until a health check answers 200. Rejects after two minutes with the last answer.
 * @param findFailure returns a reason to reject before that.
 */
export async function waitUntilHealthy(url: string, findFailure: () => string | undefined): Promise<void> {
  const deadline = Date.now() + healthyMillisMax
  let lastAnswer = 'no answer'
  while (Date.now() < deadline) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(5000) })
      const text = await response.text()
      if (response.status === 200) return
      lastAnswer = `${response.status} ${text}`
    } catch (error) {
      lastAnswer = (error as Error).message
    }
    const failure = findFailure()
    if (failure !== undefined) throw new Error(failure)
    await sleep(100)
  }
  throw new Error(`${url} is not healthy after ${healthyMillisMax / 1000} s: ${lastAnswer}`)
}
