/** A stream over a relay that is a process, for the whole run, and what the faults of its relays do to it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { playNumbered, publishNumbered } from '../support/numbered-stream.ts'
import type { Journal } from './journal.ts'
import type { FaultKind } from './plan.ts'
import type { Plugin, SessionView } from './plugins.ts'
import type { RelayProcesses } from './relay-processes.ts'
import { waitFor } from './server.ts'
import { relayHost, type Service } from './service.ts'

const connection = 'stream'
/** A session is stopped when it loses a fourth relay within an hour. */
const replacementsMax = 3
const secondsMax = 80
const pollMillis = 200

interface StreamedRelayOptions {
  /** Of an account that nothing else uses. */
  readonly plugin: Plugin
  readonly processes: RelayProcesses
  readonly service: Pick<Service, 'sql'>
  readonly journal: Journal
}

/** The end of a fault, and the time from which on its target serves again. */
export interface Healed {
  readonly healedAt: number
  readonly untilReady: Promise<void>
}

export class StreamedRelay {
  readonly #options: StreamedRelayOptions
  #session: SessionView | undefined
  #player: ReturnType<typeof playNumbered> | undefined
  #endPublishing: (() => Promise<void>) | undefined

  constructor(options: StreamedRelayOptions) {
    this.#options = options
  }

  get sessionId(): string | undefined {
    return this.#options.plugin.sessions.get(connection)
  }

  /** Resolves when the player gets the stream. */
  async start(): Promise<void> {
    await this.#startSession()
    // The relay itself is beside the proxy that its reports go through.
    const caller = (url: string | undefined) => `${url?.replace('127.0.0.1', relayHost)}&mode=caller&latency=200`
    this.#endPublishing = publishNumbered(() => caller(this.#session?.connect?.srt_url))
    this.#player = playNumbered(() => caller(this.#session?.connect?.player_url))
    await this.#player.firstSentAfter(Date.now(), secondsMax)
  }

  async end(): Promise<void> {
    await Promise.all([this.#endPublishing?.(), this.#player?.end()])
  }

  /** Resolves when the fault is over. It is ready when the stream is back over a relay that runs. */
  async fail(kind: FaultKind, millis: number): Promise<Healed> {
    if ((await this.#countReplacements()) >= replacementsMax) await this.#restart()
    const before = await this.#untilActive()
    const relay = (await this.#options.processes.list()).find(({ instanceId }) => instanceId === before.instance_id)
    if (!relay) throw new Error(`the relay ${before.instance_id} of the stream has no process`)
    const from = Date.now()
    await this.#options.processes.fail(kind, relay, millis)
    return { healedAt: Date.now(), untilReady: this.#untilBack(kind, before, from) }
  }

  async #untilBack(kind: FaultKind, before: SessionView, from: number): Promise<void> {
    const { journal, processes } = this.#options
    let session: SessionView
    do {
      await this.#player?.firstSentAfter(Date.now(), secondsMax)
      session = await this.#untilActive()
      // A stream that went on over the lost relay has to go on over the one that is bound.
    } while (!(await processes.list()).some(({ instanceId }) => instanceId === session.instance_id))
    await this.#player?.firstSentAfter(Date.now(), secondsMax)
    const isReplaced = session.instance_id !== before.instance_id
    const { connect } = before
    if (session.session_id !== before.session_id || session.connect?.srt_url !== connect?.srt_url)
      throw new Error(`the stream of session ${before.session_id} is at another address after ${kind} of its relay`)
    this.#session = session
    const seconds = (this.#player?.longestSilenceMillis(from) ?? Number.NaN) / 1000
    journal.streamGaps.push({ kind, isReplaced, seconds })
  }

  async #countReplacements(): Promise<number> {
    const rows = await this.#options.service.sql`
      select from relay_replacements where session_id = ${this.sessionId ?? null}`
    return rows.length
  }

  async #restart(): Promise<void> {
    await this.#options.plugin.stop(connection, true)
    while (await this.#options.plugin.live(connection)) await sleep(pollMillis)
    await this.#startSession()
    await this.#player?.firstSentAfter(Date.now(), secondsMax)
  }

  async #startSession(): Promise<void> {
    // Refused until the subscription is applied.
    const start = async () => (await this.#options.plugin.start(connection, 'processes')) !== undefined
    await waitFor('the session of the stream is accepted', start, secondsMax)
    this.#session = await this.#untilActive()
  }

  /** Rejects when the session has ended, since only this stream may end it. */
  async #untilActive(): Promise<SessionView> {
    for (const until = Date.now() + secondsMax * 1000; Date.now() < until; await sleep(pollMillis)) {
      const session = await this.#options.plugin.live(connection)
      if (session?.state === 'active' && session.connect) return session
      if (session === null) break
    }
    const { sessionId } = this
    const rows = await this.#options.service
      .sql`select state, reason from relay_sessions where id = ${sessionId ?? null}`
    throw new Error(`the session ${sessionId} of the stream is not active again: ${JSON.stringify(rows)}`)
  }
}
