/** The simulated relays: programs on the instances of the cloud, which report their health over HTTP. */
import { setTimeout as sleep } from 'node:timers/promises'
import { withSignal } from '../../platform/timeout.ts'
import { interpretReply } from '../../relay-node/health-report.ts'
import type { Cloud, CloudInstance } from './cloud.ts'
import type { Journal, RelayFault } from './journal.ts'
import { times } from './service-times.ts'

/** As the limit of a relay is to the default timeout: 12 s of 20 s. */
const requestMillisMax = 0.6 * times.healthTimeoutSeconds * 1000
const intervalMillis = 1_000
const waitSeconds = 1
const pauseMillisMin = 50
/** How long a relay needs from its creation to its first report. */
const bootMillis = 200

interface Relay {
  readonly instance: CloudInstance
  isRunning: boolean
  silentUntil: number
  /** Closes the connection of its open report, as when its machine fails. */
  readonly end: AbortController
}

export class SimulatedRelays {
  readonly #relays = new Map<string, Relay>()

  constructor(
    readonly journal: Journal,
    readonly signal: AbortSignal,
  ) {}

  /** Starts the program of a new instance. */
  boot(instance: CloudInstance): void {
    const relay = { instance, isRunning: true, silentUntil: 0, end: new AbortController() }
    this.#relays.set(instance.instanceId, relay)
    void this.#run(relay)
  }

  end({ instanceId }: CloudInstance): void {
    const relay = this.#relays.get(instanceId)
    if (relay) relay.isRunning = false
    relay?.end.abort()
    this.#relays.delete(instanceId)
  }

  /** @param position from 0 to 1 among the running relays. */
  silence(position: number, millis: number): void {
    const relay = this.#pick(position)
    if (!relay) return
    relay.silentUntil = Date.now() + millis
    this.#record('silence', relay, relay.silentUntil)
  }

  /** Ends an instance, as when its machine fails. */
  lose(position: number, cloud: Cloud): void {
    const relay = this.#pick(position)
    if (!relay) return
    this.#record('lose', relay)
    cloud.lose(relay.instance.instanceId)
  }

  #record(type: RelayFault['type'], { instance: { instanceId, sessionId } }: Relay, until?: number): void {
    this.journal.relayFaults.push({ type, instanceId, sessionId, at: Date.now(), ...(until ? { until } : {}) })
  }

  get count(): number {
    return this.#relays.size
  }

  #pick(position: number): Relay | undefined {
    const relays = [...this.#relays.values()]
    return relays[Math.floor(position * relays.length)]
  }

  async #run(relay: Relay): Promise<void> {
    await sleep(bootMillis)
    while (relay.isRunning && !this.signal.aborted) {
      const waitMillis = relay.silentUntil - Date.now()
      if (waitMillis > 0) await sleep(Math.min(waitMillis, intervalMillis))
      else await sleep(await this.#report(relay))
    }
  }

  /** @returns the milliseconds until the next report. */
  async #report(relay: Relay): Promise<number> {
    const { instanceId, sessionId, apiUrl, relayAuthSecret } = relay.instance
    if (sessionId === null) throw new Error(`${instanceId} was created without a session`)
    const sentAt = Date.now()
    try {
      const report = { session_id: sessionId, instance_id: instanceId, stats: { publishing: true } }
      const { status, body } = await withSignal(requestMillisMax, relay.end.signal, async (signal) => {
        const reply = await fetch(`${apiUrl}/api/v1/relay/health`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-relay-auth': relayAuthSecret },
          body: JSON.stringify({ ...report, wait_seconds: waitSeconds }),
          signal,
        })
        return { status: reply.status, body: (await reply.json().catch(() => ({}))) as { state?: string } }
      })
      if (status === 200 && body.state) {
        this.journal.accept('report')
        this.journal.see(sessionId, body.state, sentAt)
        this.journal.reports.push({ sessionId, instanceId, sentAt, answeredAt: Date.now() })
      }
      const outcome = interpretReply(status, body, intervalMillis / 1000)
      if (outcome.type === 'ended') relay.isRunning = false
      if (outcome.type !== 'accepted') this.journal.refuse('report', outcome.type === 'assigned' ? '' : outcome.reason)
      if (status >= 500 && status !== 502 && status !== 503)
        this.journal.unexpected.set(`report got ${status}`, Date.now())
      return outcome.type === 'accepted' ? Math.max(outcome.nextSeconds * 1000, pauseMillisMin) : intervalMillis
    } catch {
      this.journal.refuse('report', 'no answer')
      return intervalMillis
    }
  }
}
