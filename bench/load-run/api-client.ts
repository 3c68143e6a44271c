/** Sends the requests of the load run, and records each answer. */
import { Agent, type IncomingMessage, request } from 'node:http'
import type { Operation, Recorder } from './recorder.ts'

export interface ApiRequest {
  readonly method: 'GET' | 'POST'
  /** Below `/api/v1`. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: object
}

export interface ApiAnswer {
  readonly status: number
  readonly body: string
}

const answerMillisMax = 30_000

export class ApiClient {
  readonly #agent = new Agent({ keepAlive: true })
  readonly #urls: readonly string[]
  readonly #recorder: Recorder
  #sent = 0

  /** @param urls of the api's processes, which share the requests as behind a load balancer. */
  constructor(urls: readonly string[], recorder: Recorder) {
    this.#urls = urls
    this.#recorder = recorder
  }

  /** That of the process which serves the next request. */
  get nextUrl(): string {
    return this.#urls[this.#sent++ % this.#urls.length] ?? ''
  }

  /** Never rejects. Resolves with undefined when there was no answer. */
  async send(operation: Operation, each: ApiRequest): Promise<ApiAnswer | undefined> {
    const url = `${this.nextUrl}/api/v1${each.path}`
    const startedAt = performance.now()
    try {
      const answer = await this.#exchange(url, each)
      this.#recorder.recordAnswer(operation, answer.status, performance.now() - startedAt, answer.body)
      return answer
    } catch (error) {
      this.#recorder.recordFailure(operation, (error as Error).message)
      return undefined
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  #exchange(url: string, { method, headers, body }: ApiRequest): Promise<ApiAnswer> {
    return new Promise((resolve, reject) => {
      const content = body === undefined ? {} : { 'Content-Type': 'application/json' }
      const options = { method, agent: this.#agent, headers: { ...content, ...headers }, timeout: answerMillisMax }
      const sent = request(url, options, (answer) => readAnswer(answer).then(resolve, reject))
      sent.on('timeout', () => sent.destroy(new Error(`no answer within ${answerMillisMax / 1000} s`)))
      sent.on('error', reject)
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}

async function readAnswer(answer: IncomingMessage): Promise<ApiAnswer> {
  let body = ''
  for await (const part of answer.setEncoding('utf8')) body += part
  return { status: answer.statusCode ?? 0, body }
}
