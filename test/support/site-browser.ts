/**
 * A browser as far as HTTP goes: it keeps cookies by their attributes, says by Fetch Metadata who asks, follows redirects and
 * pages that lead on, and sends forms as they stand on a page. It runs no scripts.
 */

import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { CookieJar } from './site-cookies.ts'
import { type Page, readPage } from './site-page.ts'

const stepsMax = 12

interface Asking {
  /** Sent as a form; text and bytes as they are. */
  readonly body?: Readonly<Record<string, string>> | string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  /** Whose page or script asks: ours, another site's, one of a sibling host, or the person at the address bar. */
  readonly from?: 'same-origin' | 'cross-site' | 'same-site' | 'none'
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON. */
  json<Body = Record<string, unknown>>(): Body
}

interface Sent {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | undefined
}

/** Not by `fetch`, which has Fetch Metadata of its own. */
async function exchange(url: URL, { method, headers, body }: Sent): Promise<Reply> {
  const asking = request(url, { method, headers })
  asking.end(body)
  const [answer] = (await once(asking, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString('utf8')
  const entries = Object.entries(answer.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  )
  return { status: answer.statusCode ?? 0, headers: new Headers(entries), text, json: () => JSON.parse(text) }
}

export class Browser {
  readonly cookies = new CookieJar()

  constructor(readonly home: string) {}

  /** One request and its answer, with nothing followed: what a page's script would do. */
  async ask(method: string, path: string, asking: Asking = {}): Promise<Reply> {
    const { body, headers = {}, from = 'same-origin' } = asking
    const url = new URL(path, this.home)
    const isForm = typeof body === 'object' && !(body instanceof Uint8Array)
    const cookie = this.cookies.headerFor(url, { strict: from !== 'cross-site' })
    const reply = await exchange(url, {
      method,
      headers: {
        'Sec-Fetch-Site': from,
        'Sec-Fetch-Mode': 'cors',
        ...(cookie ? { Cookie: cookie } : {}),
        ...(isForm ? { 'Content-Type': 'application/x-www-form-urlencoded' } : {}),
        ...headers,
      },
      body: isForm ? new URLSearchParams(body).toString() : body,
    })
    this.cookies.take(url, reply.headers.getSetCookie())
    return reply
  }

  /** Asks for JSON as a page's script does. */
  askApi(method: string, path: string, body?: object, asking: Omit<Asking, 'body'> = {}): Promise<Reply> {
    const json = body === undefined ? {} : { body: JSON.stringify(body) }
    const headers = { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...asking.headers }
    return this.ask(method, `/api/v1${path}`, { ...asking, ...json, headers })
  }

  /** Goes to the address and on to wherever it leads. Stops before an address that is not the site's. */
  open(path: string, asking: Asking = {}): Promise<Page> {
    return this.#navigate('GET', path, { from: 'none', ...asking })
  }

  /** Sends a form to the address as a page of ours would. */
  post(path: string, fields: Readonly<Record<string, string>>, asking: Omit<Asking, 'body'> = {}): Promise<Page> {
    return this.#navigate('POST', path, { from: 'same-origin', ...asking, body: fields })
  }

  /**
   * Fills in the page's form with this action, keeps what stands in it otherwise, and sends it. Fails when there is none.
   * @param pick which of several forms with that action: one that has all these fields.
   */
  submit(
    page: Page,
    action: string,
    fields: Readonly<Record<string, string>> = {},
    pick: Readonly<Record<string, string>> = {},
  ): Promise<Page> {
    const form = page.form(action, pick)
    return this.#navigate(form.method, form.action, { from: 'same-origin', body: { ...form.fields, ...fields } })
  }

  async #navigate(firstMethod: string, firstPath: string, { from = 'none', body, headers }: Asking): Promise<Page> {
    let [method, path, initiator, sent] = [firstMethod, firstPath, from, body]
    if (method === 'GET' && typeof sent === 'object' && !(sent instanceof Uint8Array)) {
      const url = new URL(path, this.home)
      for (const [name, value] of Object.entries(sent)) url.searchParams.set(name, value)
      ;[path, sent] = [url.pathname + url.search, undefined]
    }
    const visited: string[] = []
    for (let step = 0; step < stepsMax; step += 1) {
      visited.push(`${method} ${path}`)
      const reply = await this.ask(method, path, {
        from: initiator,
        headers: { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document', ...headers },
        ...(sent === undefined ? {} : { body: sent }),
      })
      const page = readPage(reply, path, visited)
      const location = reply.headers.get('location')
      const next = location && reply.status >= 300 && reply.status < 400 ? location : page.leadsTo
      if (!next) return page
      const url = new URL(next, new URL(path, this.home))
      if (url.origin !== this.home) return { ...page, leadsTo: url.href }
      // A page that leads on is itself who asks for the next one; along redirects whoever began it stays the one.
      if (!location) initiator = 'same-origin'
      if (!location || reply.status < 307) [method, sent] = ['GET', undefined]
      path = url.pathname + url.search
    }
    throw new Error(`the browser goes round in circles: ${visited.join(' → ')}`)
  }
}
