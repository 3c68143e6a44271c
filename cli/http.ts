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
  /** For how long to ask again while the answer is 503 or 429. */
  patienceMillis?: number
}

export const basicAuth = (operatorPassword: string): string =>
  `Basic ${Buffer.from(`operator:${operatorPassword}`).toString('base64')}`

/** Rejects when nothing answers or what does isn't JSON. */
export async function ask<T = unknown>(url: string, request: Request = {}): Promise<Answer<T>> {
  const { method = 'GET', body, headers, patienceMillis = 0 } = request
  const deadline = Date.now() + patienceMillis
  for (;;) {
    const response = await fetch(url, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(15_000),
    })
    const text = await response.text()
    const waitMillis = Number(response.headers.get('retry-after') ?? 1) * 1000
    if ((response.status !== 503 && response.status !== 429) || Date.now() + waitMillis > deadline) {
      return { status: response.status, body: (text === '' ? undefined : JSON.parse(text)) as T }
    }
    await sleep(waitMillis)
  }
}

/** The body of an answer with one of these statuses. Throws what the service said instead, naming `what`. */
export function expecting<T>(what: string, answer: Answer<T>, ...statuses: number[]): T {
  if (statuses.includes(answer.status)) return answer.body
  const { error } = (answer.body ?? {}) as { error?: { code?: string; message?: string } }
  throw new Error(`${what} was answered with ${answer.status} ${error?.code ?? ''}: ${error?.message ?? ''}`)
}
