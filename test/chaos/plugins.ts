/** The accounts and their plugins: sign-in, refresh, start and stop, with the repetitions of a real plugin. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TokenSet } from '../support/api.ts'
import type { PluginLogin } from '../support/plugin-logins.ts'
import type { OneSession } from '../support/relays.ts'
import type { RegionName } from './plan.ts'
import type { Call, Reply, Requests } from './requests.ts'

const password = 'correct horse battery'
const startRefusals = ['relay_access_denied', 'relay_limit_reached', 'usage_exhausted', 'capacity_exhausted']
/** Ended sign-ins are used again at random until the end; older ones are used at the end only. */
const probesMax = 3

interface SignIn {
  access: string
  refresh: string
}

interface EndedSignIn {
  readonly access: string
  readonly ended: string
  readonly endedAt: number
}

export type SessionView = OneSession['session']

/** One account with its plugin. Its requests are sent as they are due, also several at once. */
export class Plugin {
  readonly email = `${randomUUID()}@example.com`
  userId = ''
  /** True once the account is disabled for good: its requests are refused. */
  isDisabled = false
  #signIn: SignIn | undefined
  #signingIn: Promise<SignIn | undefined> | undefined
  readonly #ended: EndedSignIn[] = []
  /** The last session of each connection. */
  readonly sessions = new Map<string, string>()

  constructor(readonly requests: Requests) {}

  /** Creates the account. After a lost reply the address is taken, and the plugin signs in. Rejects when that fails. */
  async signUp(): Promise<void> {
    const body = { email: this.email, password }
    const call: Call = { kind: 'sign_up', method: 'post', path: '/auth/signup', body, refusals: ['email_taken'] }
    const reply = await this.requests.until<TokenSet>(call)
    const signIn = reply?.status === 201 ? this.#adopt(reply.body) : await this.signIn()
    if (!signIn) throw new Error(`the sign-up got ${reply?.status}`)
    const session = await this.requests.until<{ user: { id: string } }>({
      kind: 'session',
      method: 'get',
      path: '/auth/session',
      bearer: signIn.access,
    })
    this.userId = session?.body.user.id ?? ''
  }

  #adopt({ cp_access_jwt: access, refresh_token: refresh }: TokenSet): SignIn {
    this.#signIn = { access, refresh }
    return this.#signIn
  }

  /** Signs in with the password. A lost reply leaves a sign-in that is never used. */
  async signIn(): Promise<SignIn | undefined> {
    const body = { email: this.email, password }
    const refusals = this.isDisabled ? ['account_disabled', 'invalid_credentials'] : []
    const call: Call = { kind: 'sign_in', method: 'post', path: '/auth/login', body, refusals }
    const reply = await this.requests.until<TokenSet>(call)
    if (reply?.status !== 200) return undefined
    return this.#adopt(reply.body)
  }

  /** The present sign-in, or a new one; concurrent callers share it. */
  async #ready(): Promise<SignIn | undefined> {
    if (this.#signIn) return this.#signIn
    this.#signingIn ??= this.signIn().finally(() => {
      this.#signingIn = undefined
    })
    return this.#signingIn
  }

  /** Sends a request with the present access token, and once more with a new one when it is refused. */
  async #send<Body>(call: Omit<Call, 'bearer'>): Promise<Reply<Body>> {
    for (let attempt = 0; attempt < 2; attempt++) {
      const signIn = await this.#ready()
      if (!signIn) return undefined
      const refusals = [...(call.refusals ?? []), 'unauthorized', ...(this.isDisabled ? ['account_disabled'] : [])]
      const reply = await this.requests.until<Body>({ ...call, refusals, bearer: signIn.access })
      if (reply?.status !== 401) return reply
      if (this.#signIn === signIn) await this.refresh()
    }
    return undefined
  }

  /**
   * Exchanges the refresh token, as often as necessary with the same one. A plugin whose token is refused signs in
   * again.
   */
  async refresh(): Promise<void> {
    const signIn = this.#signIn
    if (!signIn) return
    const call: Call = {
      kind: 'refresh',
      method: 'post',
      path: '/auth/refresh',
      body: { refresh_token: signIn.refresh },
      refusals: ['invalid_refresh_token', 'account_disabled'],
    }
    const reply = await this.requests.until<TokenSet>(call)
    // Another request may have replaced the sign-in meanwhile.
    if (this.#signIn !== signIn) return
    if (reply?.status === 200) this.#adopt(reply.body)
    else if (reply) this.#signIn = undefined
  }

  async signOut(): Promise<void> {
    const signIn = await this.#ready()
    if (!signIn) return
    this.#signIn = undefined
    const call: Call = { kind: 'sign_out', method: 'post', path: '/auth/logout', bearer: signIn.access }
    const reply = await this.requests.until({ ...call, refusals: ['unauthorized', 'account_disabled'] })
    if (reply?.status === 204) this.recordEnd(signIn.access, 'signed out')
  }

  /** Remembers an access token that must be refused from now on. */
  recordEnd(access: string, ended: string): void {
    this.#ended.push({ access, ended, endedAt: Date.now() })
  }

  /** The present access token, for its use after the account was disabled. */
  get access(): string | undefined {
    return this.#signIn?.access
  }

  /** Uses access tokens of ended sign-ins. @param count the last ones; all by default. */
  async probeEnded(count = Number.POSITIVE_INFINITY): Promise<void> {
    for (const { access, ended, endedAt } of this.#ended.slice(-count)) {
      const reply = await this.requests.until({
        kind: 'ended_sign_in',
        method: 'get',
        path: '/auth/session',
        bearer: access,
        refusals: ['unauthorized', 'account_disabled'],
      })
      if (!reply) continue
      const { status, sentAt } = reply
      this.requests.journal.revokedUses.push({ userId: this.userId, ended, endedAt, sentAt, status })
    }
  }

  #see(sessions: readonly SessionView[], sentAt: number): void {
    for (const { session_id, state } of sessions) this.requests.journal.see(session_id, state, sentAt)
  }

  /** @param key the same in each repetition. */
  async start(connectionId: string, region: RegionName, key: string = randomUUID()): Promise<string | undefined> {
    const body = { connection_id: connectionId, region }
    const headers = { 'Idempotency-Key': key }
    const reply = await this.#send<OneSession>({
      kind: 'start',
      method: 'post',
      path: '/relay/start',
      body,
      headers,
      refusals: startRefusals,
    })
    if (!reply || reply.status >= 300) return undefined
    const { session_id: sessionId } = reply.body.session
    const { status } = reply
    const { userId } = this
    this.requests.journal.starts.push({ userId, connectionId, key, answeredAt: Date.now(), status, sessionId })
    this.#see([reply.body.session], reply.sentAt)
    this.sessions.set(connectionId, sessionId)
    return sessionId
  }

  /** Sends the same start twice at once, as a plugin whose user clicks twice. */
  async startTwice(connectionId: string, region: RegionName): Promise<void> {
    const key = randomUUID()
    await Promise.all([this.start(connectionId, region, key), this.start(connectionId, region, key)])
  }

  async stop(connectionId: string, isImmediate: boolean): Promise<void> {
    const body = { connection_id: connectionId, immediate: isImmediate }
    const call = { kind: 'stop', method: 'post', path: '/relay/stop', body, refusals: ['not_found'] } as const
    const reply = await this.#send<OneSession>(call)
    if (reply?.status !== 200) return
    const { sentAt } = reply
    const { session_id: sessionId } = reply.body.session
    this.requests.journal.stops.push({ sessionId, by: 'user', sentAt, answeredAt: Date.now() })
    this.#see([reply.body.session], sentAt)
  }

  async read(): Promise<void> {
    await this.#listLive()
    await this.probeEnded(probesMax)
  }

  /** The live session of a connection; null when it has none, and undefined without an answer. */
  async live(connectionId: string): Promise<SessionView | null | undefined> {
    const sessions = await this.#listLive()
    return sessions && (sessions.find(({ connection_id }) => connection_id === connectionId) ?? null)
  }

  /** Stops all live relays. */
  async stopAll(): Promise<void> {
    const sessions = (await this.#listLive()) ?? []
    await Promise.all(sessions.map(({ connection_id }) => this.stop(connection_id, true)))
  }

  async #listLive(): Promise<readonly SessionView[] | undefined> {
    const call = { kind: 'active', method: 'get', path: '/relay/active' } as const
    const reply = await this.#send<{ sessions: SessionView[] }>(call)
    if (reply?.status !== 200) return undefined
    this.#see(reply.body.sessions, reply.sentAt)
    return reply.body.sessions
  }

  /** Signs another plugin in by approving it, collects its tokens once, and signs it out. */
  async pluginLogin(): Promise<void> {
    const path = '/auth/plugin/login'
    const started = await this.requests.once<PluginLogin>({
      kind: 'plugin_start',
      method: 'post',
      path: `${path}/start`,
    })
    if (started?.status !== 201) return
    const { login_attempt_id, poll_token } = started.body
    const approval = `${path}/attempts/${login_attempt_id}/approve`
    const approved = await this.#send({ kind: 'plugin_approve', method: 'post', path: approval })
    if (approved?.status !== 204) return
    const poll: Call = {
      kind: 'plugin_poll',
      method: 'post',
      path: `${path}/poll`,
      body: { login_attempt_id, poll_token },
      // After a lost reply the tokens are gone.
      refusals: ['attempt_consumed', 'rate_limited', 'attempt_denied'],
    }
    const polled = await this.requests.until<{ status: string } & Partial<TokenSet>>(poll)
    const access = polled?.body.cp_access_jwt
    if (!access) return
    await sleep(1_000)
    const again = await this.requests.until(poll)
    if (again?.status === 200) this.requests.journal.unexpected.set('a plugin login gave its tokens twice', Date.now())
    const call: Call = { kind: 'sign_out', method: 'post', path: '/auth/logout', bearer: access }
    const signedOut = await this.requests.until({ ...call, refusals: ['unauthorized', 'account_disabled'] })
    if (signedOut?.status === 204) this.recordEnd(access, 'signed out')
  }
}
