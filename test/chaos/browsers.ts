/** The browsers of the accounts: pages and scripts' requests through the site, with its cookies. */

import type { OneSession } from '../support/relays.ts'
import { Browser, type Reply } from '../support/site-browser.ts'
import type { Plugin } from './plugins.ts'
import type { Requests } from './requests.ts'

const password = 'correct horse battery'
const requestMillisMax = 10_000

type Sessions = { readonly sessions?: readonly OneSession['session'][] }

export class AccountBrowser {
  readonly #browser: Browser
  #isSignedIn = false

  constructor(
    siteUrl: string,
    readonly plugin: Plugin,
    readonly requests: Requests,
  ) {
    this.#browser = new Browser(siteUrl)
  }

  /** Opens the list of relays, after signing in where necessary. */
  async browse(): Promise<void> {
    if (!(await this.#ensureSignedIn())) return
    const page = await this.#limited('page', () => this.#browser.request('GET', '/relays'))
    if (page && page.status >= 500 && page.status !== 503)
      this.requests.journal.unexpected.set(`a page of the site got ${page.status}`, Date.now())
    await this.#readSessions()
  }

  /** Stops a relay as the script of a page does. */
  async stop(): Promise<void> {
    if (!(await this.#ensureSignedIn())) return
    const [session] = (await this.#readSessions()) ?? []
    if (!session) return
    const body = { session_id: session.session_id }
    const sentAt = Date.now()
    const reply = await this.#limited('browser_stop', () => this.#browser.requestApi('POST', '/relay/stop', body))
    if (reply?.status !== 200) return
    const { session_id: sessionId } = session
    this.requests.journal.stops.push({ sessionId, by: 'user', sentAt, answeredAt: Date.now() })
  }

  /** Signs out, after which the browser has no access. */
  async signOut(): Promise<void> {
    if (!this.#isSignedIn) return
    const body = { next: '/login' }
    const reply = await this.#limited('browser_sign_out', () => this.#browser.request('POST', '/sign-out', { body }))
    if (reply === undefined || reply.status >= 400) return
    this.#isSignedIn = false
    const again = await this.#limited('signed_out', () => this.#browser.requestApi('GET', '/auth/session'))
    if (again?.status === 200) this.requests.journal.unexpected.set('a browser that signed out has access', Date.now())
  }

  async #readSessions(): Promise<Sessions['sessions']> {
    const sentAt = Date.now()
    const reply = await this.#limited('browser_active', () => this.#browser.requestApi('GET', '/relay/active'))
    if (reply?.status === 401) this.#isSignedIn = false
    if (reply?.status !== 200) return undefined
    const { sessions = [] } = reply.json<Sessions>()
    for (const { session_id, state } of sessions) this.requests.journal.see(session_id, state, sentAt)
    return sessions
  }

  async #ensureSignedIn(): Promise<boolean> {
    if (this.#isSignedIn || this.plugin.isDisabled) return this.#isSignedIn
    const body = { email: this.plugin.email, password, next: '/relays' }
    const reply = await this.#limited('browser_sign_in', () => this.#browser.request('POST', '/login', { body }))
    this.#isSignedIn = reply !== undefined && reply.status < 400
    return this.#isSignedIn
  }

  async #limited(kind: string, send: () => Promise<Reply>): Promise<Reply | undefined> {
    const timeout = AbortSignal.timeout(requestMillisMax)
    const aborted = new Promise<never>((_, reject) =>
      timeout.addEventListener('abort', () => reject(timeout.reason as Error)),
    )
    try {
      const reply = await Promise.race([send(), aborted])
      if (reply.status < 400) this.requests.journal.accept(kind)
      else this.requests.journal.refuse(kind, String(reply.status))
      return reply
    } catch {
      this.requests.journal.refuse(kind, 'no answer')
      return undefined
    }
  }
}
