/** How the commands talk to the running service: over its public API, like any client. */
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
   * For how long to ask again while nothing answers, or the answer is 503 or 429. A request whose reply got lost is repeated
   * too: the caller has to accept the outcome of a repetition.
   */
  patienceMillis?: number
}

const pauseMillis = 500

export const basicAuth = (operatorPassword: string): string =>
  `Basic ${Buffer.from(`operator:${operatorPassword}`).toString('base64')}`

/** Rejects when nothing answers or what does isn't JSON. */
export async function ask<T = unknown>(url: string, request: Request = {}): Promise<Answer<T>> {
  const { patienceMillis = 0 } = request
  const deadline = Date.now() + patienceMillis
  for (;;) {
    const reply = await askOnce(url, request)
    const waitMillis = reply instanceof Error ? pauseMillis : reply.retryAfterMillis
    const isLast = Date.now() + waitMillis > deadline
    if (reply instanceof Error) {
      if (isLast) throw reply
    } else if (isLast || (reply.status !== 503 && reply.status !== 429)) {
      return { status: reply.status, body: (reply.text === '' ? undefined : JSON.parse(reply.text)) as T }
    }
    await sleep(waitMillis)
  }
}

interface Reply {
  status: number
  text: string
  retryAfterMillis: number
}

/** One reply, or the error with its cause when there was none or it broke off. */
async function askOnce(url: string, { method = 'GET', body, headers }: Request): Promise<Reply | Error> {
  try {
    const response = await fetch(url, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(15_000),
    })
    const retryAfterMillis = Number(response.headers.get('retry-after') ?? 1) * 1000
    return { status: response.status, text: await response.text(), retryAfterMillis }
  } catch (error) {
    const { message, cause } = error as Error
    return new Error(`${url} can not be reached: ${cause instanceof Error ? cause.message : message}`, { cause: error })
  }
}

/** The body of an answer with one of these statuses. Throws what the service said instead, naming `what`. */
export function expecting<T>(what: string, answer: Answer<T>, ...statuses: number[]): T {
  if (statuses.includes(answer.status)) return answer.body
  const { error } = (answer.body ?? {}) as { error?: { code?: string; message?: string } }
  throw new Error(`${what} was answered with ${answer.status} ${error?.code ?? ''}: ${error?.message ?? ''}`)
}
