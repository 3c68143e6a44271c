/** Requests of the driver: each has a limit of time, and is repeated as its client would repeat it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ErrorBody } from '../support/api.ts'
import type { Journal } from './journal.ts'

/** Longer than the service takes for an answer while one of its stores hangs. */
const requestMillisMax = 8_000
/** The pause before a request is repeated for the first time; it doubles with each repetition up to the maximum. */
const retryMillis = 500
const retryMillisMax = 8_000

export interface Call {
  /** Names the request in the counts. */
  readonly kind: string
  readonly method: 'get' | 'post'
  readonly path: string
  readonly body?: object
  readonly bearer?: string
  readonly headers?: Readonly<Record<string, string>>
  /** A body that is sent unchanged, in place of `body`. */
  readonly text?: string
  /** Error codes that the client has to expect, beside those of outages. */
  readonly refusals?: readonly string[]
}

/** A reply, and when its request was sent. Undefined when no reply came, or only that of an outage. */
export type Reply<Body> = { readonly status: number; readonly body: Body; readonly sentAt: number } | undefined

export class Requests {
  constructor(
    /** The address of the load balancer. */
    readonly url: string,
    readonly journal: Journal,
    /** Aborted at the end of the run, and then nothing is repeated. */
    readonly signal: AbortSignal,
  ) {}

  /** Sends a request once. */
  async once<Body>(call: Call): Promise<Reply<Body & Partial<ErrorBody>>> {
    const { kind, refusals = [] } = call
    const sentAt = Date.now()
    let answer: { status: number; body: Body & Partial<ErrorBody> }
    try {
      answer = await this.#send(call)
    } catch (error) {
      this.journal.refuse(kind, (error as Error).name === 'TimeoutError' ? 'no answer' : 'no connection')
      return undefined
    }
    if (answer.status < 300) {
      this.journal.accept(kind)
      return { ...answer, sentAt }
    }
    const code = answer.body.error?.code ?? ''
    this.journal.refuse(kind, `${answer.status} ${code}`.trim())
    if (isOutage(answer.status, code)) return undefined
    if (!refusals.includes(code)) this.journal.unexpected.set(`${kind} got ${answer.status} ${code}`, Date.now())
    return { ...answer, sentAt }
  }

  /** An empty body of a reply counts as `{}`. */
  async #send<Body>({ method, path, body, text = JSON.stringify(body), bearer, headers }: Call) {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method: method.toUpperCase(),
      headers: {
        ...(text === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(bearer ? { Authorization: `Bearer ${bearer}` } : {}),
        ...headers,
      },
      signal: AbortSignal.timeout(requestMillisMax),
      ...(text === undefined ? {} : { body: text }),
    })
    const replied = await response.text()
    return { status: response.status, body: (replied === '' ? {} : JSON.parse(replied)) as Body & Partial<ErrorBody> }
  }

  /** Repeats the same request until it gets an answer that is no outage, or the run ends. */
  async until<Body>(call: Call): Promise<Reply<Body & Partial<ErrorBody>>> {
    for (let pauseMillis = retryMillis; !this.signal.aborted; pauseMillis = Math.min(2 * pauseMillis, retryMillisMax)) {
      const reply = await this.once<Body>(call)
      if (reply) return reply
      await sleep(pauseMillis, undefined, { signal: this.signal }).catch(() => {})
    }
    return undefined
  }
}

/** The load balancer answers 502 and 503 without a code. `internal_error` is never an answer to an outage. */
const isOutage = (status: number, code: string): boolean =>
  code === 'temporarily_unavailable' || ((status === 502 || status === 503) && code === '')
