/**
 * A signed-in plugin: polls its relays and its account, refreshes its token, and stops and starts relays now and then.
 */
import { randomUUID } from 'node:crypto'
import { WebSocket } from 'ws'
import type { ApiAnswer, ApiClient } from './api-client.ts'
import type { Operation } from './recorder.ts'
import { type Schedule, spread } from './schedule.ts'
import { runSimulatedRelay } from './simulated-relay.ts'

const activeMillis = 5000
const sessionMillis = 60_000
/** Of each plugin, from one stop of a relay to the next. */
const restartMillis = 600_000
/** Below and above the grace of a stopped relay, so that some starts resume a session and others begin a new one. */
const pauseMillis = 30_000
/** A plugin starts at most 6 relays a minute. */
const retryMillis = 12_000

export interface PluginOptions {
  readonly client: ApiClient
  readonly relayAuthSecret: string
  readonly refreshToken: string
  readonly connectionIds: readonly string[]
  readonly schedule: Schedule
  /** Whether it has a socket, so that its relays report often. */
  readonly isWatching: boolean
}

interface LiveSession {
  readonly session_id: string
  readonly state: string
  readonly instance_id: string | null
}

export class Plugin {
  readonly #options: PluginOptions
  #refreshToken: string
  #bearer = ''
  #tokenEndsAt = 0
  /** The relays that report, by session. */
  readonly #relays = new Map<string, Promise<void>>()
  #activeRelays = 0

  constructor(options: PluginOptions) {
    this.#options = options
    this.#refreshToken = options.refreshToken
  }

  /** Sessions in the state `active` at the last poll. */
  get activeRelays(): number {
    return this.#activeRelays
  }

  /** Signs in, starts all relays, and runs until the end. */
  async run(): Promise<void> {
    const { schedule, connectionIds } = this.#options
    while (this.#bearer === '' && !schedule.isOver) await this.#refresh()
    for (const connectionId of connectionIds) await this.#start(connectionId)
    await Promise.all([
      schedule.repeatEvery(activeMillis, () => this.#pollRelays()),
      schedule.repeatEvery(sessionMillis, () => this.#get('session', '/auth/session')),
      schedule.repeatEvery(restartMillis, () => this.#restartRelay()),
      this.#keepSignedIn(),
      this.#options.isWatching ? this.#watch() : undefined,
    ])
    await Promise.all(this.#relays.values())
  }

  /** A socket ends with its access token at the latest. */
  async #watch(): Promise<void> {
    const { client, schedule } = this.#options
    while (!schedule.isOver) {
      const url = `${client.nextUrl.replace(/^http/, 'ws')}/api/v1/relay/ws`
      const socket = new WebSocket(url, 'svc.relay.v1', { headers: { authorization: this.#bearer } })
      socket.on('error', () => {})
      socket.on('message', () => {})
      await schedule.sleepUntil(this.#tokenEndsAt)
      socket.terminate()
    }
  }

  async #keepSignedIn(): Promise<void> {
    const { schedule } = this.#options
    for (;;) {
      await schedule.sleepUntil(this.#tokenEndsAt)
      if (schedule.isOver) return
      await this.#refresh()
    }
  }

  async #refresh(): Promise<void> {
    const answer = await this.#options.client.send('refresh', {
      method: 'POST',
      path: '/auth/refresh',
      headers: {},
      body: { refresh_token: this.#refreshToken },
    })
    // Before the token ends, and not with all other plugins at once.
    this.#tokenEndsAt = performance.now() + spread(400_000)
    if (answer?.status !== 200) return
    const tokens = JSON.parse(answer.body) as { cp_access_jwt: string; refresh_token: string }
    this.#refreshToken = tokens.refresh_token
    this.#bearer = `Bearer ${tokens.cp_access_jwt}`
  }

  #get(operation: Operation, path: string): Promise<ApiAnswer | undefined> {
    return this.#options.client.send(operation, { method: 'GET', path, headers: { authorization: this.#bearer } })
  }

  #post(operation: Operation, path: string, body: object, key = randomUUID()): Promise<ApiAnswer | undefined> {
    const headers = { authorization: this.#bearer, 'idempotency-key': key }
    return this.#options.client.send(operation, { method: 'POST', path, headers, body })
  }

  /** Repeats the request with the same key until it is accepted. */
  async #start(connectionId: string): Promise<void> {
    const { schedule } = this.#options
    const key = randomUUID()
    while (!schedule.isOver) {
      const answer = await this.#post('start', '/relay/start', { connection_id: connectionId }, key)
      if (answer && answer.status < 300) return
      await schedule.sleepUntil(performance.now() + retryMillis)
    }
  }

  async #restartRelay(): Promise<void> {
    const { connectionIds, schedule } = this.#options
    const connectionId = connectionIds[Math.floor(Math.random() * connectionIds.length)]
    if (connectionId === undefined) return
    const immediate = Math.random() < 0.5
    await this.#post('stop', '/relay/stop', { connection_id: connectionId, immediate })
    await schedule.sleepUntil(performance.now() + spread(pauseMillis))
    if (!schedule.isOver) await this.#start(connectionId)
  }

  async #pollRelays(): Promise<void> {
    const answer = await this.#get('active', '/relay/active')
    if (answer?.status !== 200) return
    const { sessions } = JSON.parse(answer.body) as { sessions: readonly LiveSession[] }
    this.#activeRelays = sessions.filter(({ state }) => state === 'active').length
    for (const { session_id: sessionId, instance_id: instanceId } of sessions) {
      if (instanceId === null || this.#relays.has(sessionId)) continue
      const { client, relayAuthSecret: authSecret, schedule } = this.#options
      const relay = runSimulatedRelay({ client, authSecret, sessionId, instanceId, schedule })
      this.#relays.set(
        sessionId,
        relay.finally(() => this.#relays.delete(sessionId)),
      )
    }
  }
}
