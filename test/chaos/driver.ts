/** Carries out a plan against the service, heals it, and lets it settle. */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { AccountBrowser } from './browsers.ts'
import type { Cloud } from './cloud.ts'
import { Faults } from './faults.ts'
import type { Journal } from './journal.ts'
import { Operators } from './operators.ts'
import { type Action, accountsCount, type FaultKind, type Plan } from './plan.ts'
import { Plugin } from './plugins.ts'
import { RelayProcesses } from './relay-processes.ts'
import type { SimulatedRelays } from './relays.ts'
import { Requests } from './requests.ts'
import type { Service } from './service.ts'
import { StreamedRelay } from './streamed-relay.ts'
import { BillingProvider } from './webhooks.ts'

interface DriverOptions {
  readonly service: Service
  readonly cloud: Cloud
  readonly relays: SimulatedRelays
  readonly journal: Journal
  /** Aborted when the run is interrupted. */
  readonly signal: AbortSignal
}

/** One account more than the plan names for each disabling, since those accounts are lost to the run. */
const sacrificedMax = 40

export class Driver {
  readonly #options: DriverOptions
  readonly #end = new AbortController()
  readonly #requests: Requests
  readonly #faults: Faults
  readonly #processes: RelayProcesses
  readonly #stream: StreamedRelay
  readonly #streamer: Plugin
  readonly #billing: BillingProvider
  readonly #operators: Operators
  readonly #running = new Set<Promise<void>>()
  #plugins: Plugin[] = []
  #browsers: AccountBrowser[] = []
  #disabled = 0
  /** Failures of the driver itself, which make a run worthless. */
  readonly failures: string[] = []

  constructor(options: DriverOptions) {
    const { service, journal } = options
    this.#options = options
    // Every repeated request listens for the end.
    setMaxListeners(0, this.#end.signal)
    this.#requests = new Requests(service.apiUrl, journal, this.#end.signal)
    this.#processes = new RelayProcesses(service, journal)
    this.#streamer = new Plugin(this.#requests)
    this.#stream = new StreamedRelay({ plugin: this.#streamer, processes: this.#processes, service, journal })
    this.#faults = new Faults(service, this.#stream, journal)
    this.#billing = new BillingProvider(this.#requests, service.webhookSecret)
    this.#operators = new Operators(this.#requests, service.operatorPassword)
  }

  /** Creates the accounts. Passwords are hashed slowly, so a few at a time. */
  async prepare(): Promise<void> {
    const { service } = this.#options
    this.#plugins = Array.from({ length: accountsCount }, () => new Plugin(this.#requests))
    for (const plugin of this.#plugins) await plugin.signUp()
    this.#browsers = this.#plugins.map((plugin) => new AccountBrowser(service.siteUrl, plugin, this.#requests))
    this.#plugins.push(this.#streamer)
    await this.#streamer.signUp()
    await this.#billing.bill(this.#streamer, 'subscribe', 0, { copies: 1, delayMillis: 0 })
    await this.#stream.start()
  }

  /** Resolves after the last action and the last fault. */
  async run(plan: Plan): Promise<void> {
    const { signal } = this.#options
    const startedAt = Date.now()
    const end = startedAt + (plan.actions.at(-1)?.atMillis ?? 0)
    this.#track(this.#injectFaults(plan.faults, end))
    for (const action of plan.actions) {
      const ahead = startedAt + action.atMillis - Date.now()
      if (ahead > 0) await sleep(ahead, undefined, { signal }).catch(() => {})
      if (signal.aborted || this.failures.length > 0) return
      this.#track(this.#execute(action))
    }
  }

  /** Begins no fault after `end`. */
  async #injectFaults(faults: Plan['faults'], end: number): Promise<void> {
    const { signal } = this.#options
    let running: Promise<unknown> = Promise.resolve()
    for (const fault of faults) {
      if (fault.pauseMillis !== null) {
        await running
        await sleep(fault.pauseMillis, undefined, { signal }).catch(() => {})
      }
      if (signal.aborted || Date.now() >= end) break
      running = Promise.all([running, this.#faults.inject(fault)])
      // Awaited later, where its failure counts.
      running.catch(() => {})
    }
    await running
  }

  #track(step: Promise<void>): void {
    const tracked = step
      .catch((error: Error) => void this.failures.push(error.stack ?? error.message))
      .finally(() => this.#running.delete(tracked))
    this.#running.add(tracked)
  }

  /** Resolves when every action and fault has ended. The service is whole then, so all of them do. */
  async finish(secondsMax: number): Promise<void> {
    const deadline = Date.now() + secondsMax * 1000
    while (this.#running.size > 0 && Date.now() < deadline) await sleep(200)
    if (this.#running.size > 0) this.failures.push(`${this.#running.size} actions have not ended after ${secondsMax} s`)
  }

  /** Ends all relays as their users, and uses the tokens of all ended sign-ins. */
  async stopAll(): Promise<void> {
    await Promise.all(this.#plugins.map((plugin) => plugin.stopAll()))
    await Promise.all(this.#plugins.map((plugin) => plugin.probeEnded()))
  }

  /** Ends what is repeated, and the stream. */
  async end(): Promise<void> {
    this.#end.abort()
    await this.#stream.end()
  }

  async #execute(action: Action): Promise<void> {
    if (!('account' in action)) return this.#executeShared(action)
    const plugin = this.#plugins[action.account]
    const browser = this.#browsers[action.account]
    if (!plugin || !browser) throw new Error(`there is no account ${action.account}`)
    switch (action.type) {
      case 'start':
        return void (await plugin.start(action.connection, action.region))
      case 'start_twice':
        return plugin.startTwice(action.connection, action.region)
      case 'start_and_stop':
        await plugin.start(action.connection, action.region)
        await sleep(action.afterMillis)
        return plugin.stop(action.connection, true)
      case 'stop':
        return plugin.stop(action.connection, action.isImmediate)
      case 'read':
        return plugin.read()
      case 'refresh':
        return plugin.refresh()
      case 'sign_in':
        return void (await plugin.signIn())
      case 'sign_out':
        return plugin.signOut()
      case 'plugin_login':
        return plugin.pluginLogin()
      case 'browse':
        return browser.browse()
      case 'browser_stop':
        return browser.stop()
      case 'browser_sign_out':
        return browser.signOut()
      case 'bill':
        return this.#billing.bill(plugin, action.step, action.addons, action)
      case 'disconnect': {
        const sessionId = plugin.sessions.get(action.connection)
        return sessionId === undefined ? undefined : this.#operators.disconnect(sessionId)
      }
      case 'grant':
        return this.#operators.grant(plugin, action.forMillis)
      case 'deny_relays':
        await this.#operators.setRelayAccess(plugin, false)
        await sleep(action.forMillis)
        return this.#operators.setRelayAccess(plugin, true)
    }
  }

  async #executeShared(action: Exclude<Action, { account: number }>): Promise<void> {
    const { relays, cloud } = this.#options
    switch (action.type) {
      case 'silence_relay':
        return relays.silence(action.position, action.forMillis)
      case 'lose_relay':
        return relays.lose(action.position, cloud)
      case 'kill_relay':
        return this.#failProcess('kill', action.position)
      case 'freeze_relay':
        return this.#failProcess('pause', action.position, action.forMillis)
      case 'cut_relay':
        return this.#failProcess('cut', action.position, action.forMillis)
      case 'disable':
        return this.#disableNewAccount()
    }
  }

  async #failProcess(kind: FaultKind, position: number, millis = 0): Promise<void> {
    const processes = (await this.#processes.list()).filter(({ sessionId }) => sessionId !== this.#stream.sessionId)
    const relay = processes[Math.floor(position * processes.length)]
    if (relay) await this.#processes.fail(kind, relay, millis)
  }

  /** A new account subscribes, starts a relay, and is disabled. */
  async #disableNewAccount(): Promise<void> {
    if (this.#disabled >= sacrificedMax) return
    this.#disabled += 1
    const plugin = new Plugin(this.#requests)
    await plugin.signUp()
    this.#plugins.push(plugin)
    await this.#billing.bill(plugin, 'subscribe', 0, { copies: 1, delayMillis: 0 })
    await plugin.start('main', 'simulated')
    await this.#operators.disable(plugin)
  }
}
