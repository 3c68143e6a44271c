/**
 * An HTTP client that behaves as a browser without scripts: it stores cookies by their attributes, sends Fetch
 * Metadata, follows redirects and pages that refresh to another address, and submits the forms of a page.
 */
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { CookieJar } from './site-cookies.ts'
import { type Page, readPage } from './site-page.ts'

const stepsMax = 12

interface RequestOptions {
  /** Sent as a form, with files as `multipart/form-data`; text and bytes are sent unchanged. */
  readonly body?: Readonly<Record<string, string>> | FormData | string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  /** `Sec-Fetch-Site`: a page of the site, of another site, of a sibling host, or the address bar (`none`). */
  readonly from?: 'same-origin' | 'cross-site' | 'same-site' | 'none'
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON. */
  json<Body = Record<string, unknown>>(): Body
}

interface RawRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | undefined
}

/** Uses `node:http`, since `fetch` sets Fetch Metadata itself. */
async function exchange(url: URL, { method, headers, body }: RawRequest): Promise<Reply> {
  const outgoing = httpRequest(url, { method, headers })
  outgoing.end(body)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString('utf8')
  const entries = Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  )
  return { status: response.statusCode ?? 0, headers: new Headers(entries), text, json: () => JSON.parse(text) }
}

/** The bytes of a body, and the content type of a form. */
async function encodeBody(body: RequestOptions['body']): Promise<{ bytes?: string | Uint8Array; type?: string }> {
  if (body === undefined) return {}
  if (typeof body === 'string' || body instanceof Uint8Array) return { bytes: body }
  if (!(body instanceof FormData))
    return { bytes: new URLSearchParams(body).toString(), type: 'application/x-www-form-urlencoded' }
  const encoded = new Response(body)
  return { bytes: new Uint8Array(await encoded.arrayBuffer()), type: encoded.headers.get('content-type') ?? '' }
}

export class Browser {
  readonly cookies = new CookieJar()

  constructor(readonly home: string) {}

  /** One request as a page's script would send it. Follows nothing. */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<Reply> {
    const { body, headers = {}, from = 'same-origin' } = options
    const url = new URL(path, this.home)
    const { bytes, type } = await encodeBody(body)
    const cookie = this.cookies.headerFor(url, { strict: from !== 'cross-site' })
    const reply = await exchange(url, {
      method,
      headers: {
        'Sec-Fetch-Site': from,
        'Sec-Fetch-Mode': 'cors',
        ...(cookie ? { Cookie: cookie } : {}),
        ...(type ? { 'Content-Type': type } : {}),
        ...headers,
      },
      body: bytes,
    })
    this.cookies.store(url, reply.headers.getSetCookie())
    return reply
  }

  /** A JSON request to `/api/v1` as a page's script would send it. */
  requestApi(method: string, path: string, body?: object, options: Omit<RequestOptions, 'body'> = {}): Promise<Reply> {
    const json = body === undefined ? {} : { body: JSON.stringify(body) }
    const headers = { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...options.headers }
    return this.request(method, `/api/v1${path}`, { ...options, ...json, headers })
  }

  /** Opens the address and follows redirects. Stops before an address of another origin. */
  open(path: string, options: RequestOptions = {}): Promise<Page> {
    return this.#navigate('GET', path, { from: 'none', ...options })
  }

  /** Posts a form to the address as a page of the site would. */
  post(
    path: string,
    fields: Readonly<Record<string, string>> | FormData,
    options: Omit<RequestOptions, 'body'> = {},
  ): Promise<Page> {
    return this.#navigate('POST', path, { from: 'same-origin', ...options, body: fields })
  }

  /**
   * Submits the page's form with this action, with these fields filled in. Throws when the page has no such form.
   * @param having selects one of several forms with the same action by the values of its fields.
   */
  submit(
    page: Page,
    action: string,
    fields: Readonly<Record<string, string>> = {},
    having: Readonly<Record<string, string>> = {},
  ): Promise<Page> {
    const form = page.form(action, having)
    return this.#navigate(form.method, form.action, { from: 'same-origin', body: { ...form.fields, ...fields } })
  }

  async #navigate(firstMethod: string, firstPath: string, options: RequestOptions): Promise<Page> {
    const { from = 'none', body: firstBody, headers } = options
    let [method, path, site, body] = [firstMethod, firstPath, from, firstBody]
    if (method === 'GET' && typeof body === 'object' && !(body instanceof Uint8Array || body instanceof FormData)) {
      const url = new URL(path, this.home)
      for (const [name, value] of Object.entries(body)) url.searchParams.set(name, value)
      ;[path, body] = [url.pathname + url.search, undefined]
    }
    const visited: string[] = []
    for (let step = 0; step < stepsMax; step += 1) {
      visited.push(`${method} ${path}`)
      const reply = await this.request(method, path, {
        from: site,
        headers: { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document', ...headers },
        ...(body === undefined ? {} : { body }),
      })
      const page = readPage(reply, path, visited)
      const location = reply.headers.get('location')
      const next = location && reply.status >= 300 && reply.status < 400 ? location : page.continuesTo
      if (!next) return page
      const url = new URL(next, new URL(path, this.home))
      if (url.origin !== this.home) return { ...page, continuesTo: url.href }
      // A page that refreshes initiates the next request itself; a redirect keeps the initiator of the first one.
      if (!location) site = 'same-origin'
      if (!location || reply.status < 307) [method, body] = ['GET', undefined]
      path = url.pathname + url.search
    }
    throw new Error(`redirect loop: ${visited.join(' → ')}`)
  }
}
