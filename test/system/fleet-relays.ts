/**
 * Simulated relays: the programs on the instances of the simulated providers, which send their health reports over
 * HTTP.
 */
import { instanceSecret } from '../../providers/relay/instance-secrets.ts'
import type { Answer, Client, ErrorBody } from '../support/api.ts'
import type { UnboundReply } from '../support/unbound-relays.ts'
import type { SimulatedInstance, SimulatedProvider } from './fleet-provider.ts'

interface SimulatedRelay {
  readonly instance: SimulatedInstance
  readonly provider: SimulatedProvider
  /** Null before its first assignment, and after a restart of the program. */
  sessionId: string | null
  /** A program that has ended reports nothing, while its instance may still exist. */
  isRunning: boolean
  silentUntil: number
  nextReportAt: number
  /** Ends the present report together with its connection. */
  report: AbortController | null
}

export interface SimulatedRelays {
  /** Sends a report of the relay that has been due for the longest time, or of the next one. */
  reportNext(): Promise<void>
  /** Sends a report of one relay, due or not. @param position from 0 to 1 among the relays that can report. */
  reportAt(position: number): Promise<void>
  /** Sends the reports of all relays that are due. */
  reportDue(): void
  silence(position: number, seconds: number): void
  /** Ends the instance, as when its machine fails. */
  lose(position: number): void
  /** Ends the program and keeps its instance. */
  hang(position: number): void
  /** Starts the program of a relay that is silent or has ended again. */
  restart(position: number): void
  restartAll(): void
  readonly counts: { reports: number; assignments: number; stops: number; refusals: number }
}

interface Options {
  readonly client: Client
  readonly masterSecret: string
  readonly providers: readonly SimulatedProvider[]
  /** Called with each reply that is none of the documented ones. */
  readonly onUnexpected: (text: string) => void
}

/** Replies to a report that a relay has to expect; the last one on a busy machine only. */
const refusals: readonly (string | undefined)[] = [
  'not_found',
  'instance_mismatch',
  'relay_replaced',
  'invalid_transition',
  'temporarily_unavailable',
]

export function createSimulatedRelays({ client, masterSecret, providers, onUnexpected }: Options): SimulatedRelays {
  const relays = new Map<string, SimulatedRelay>()
  const counts = { reports: 0, assignments: 0, stops: 0, refusals: 0 }

  /** Relays of the instances that exist, in the order of their creation. */
  const existing = (): SimulatedRelay[] =>
    providers.flatMap((provider) =>
      provider.listExisting().map((instance) => {
        const known = relays.get(instance.instanceId)
        if (known) return known
        const relay = bootRelay(provider, instance)
        relays.set(instance.instanceId, relay)
        return relay
      }),
    )
  const canReport = ({ isRunning, silentUntil, instance, report }: SimulatedRelay) =>
    isRunning && report === null && silentUntil <= Date.now() && instance.bootedAt <= Date.now()

  const end = (relay: SimulatedRelay) => {
    relay.isRunning = false
    relay.report?.abort()
  }

  const send = async (relay: SimulatedRelay): Promise<void> => {
    const { instanceId } = relay.instance
    const sessionId = relay.sessionId
    const report = new AbortController()
    relay.report = report
    counts.reports += 1
    try {
      const body = { session_id: sessionId, instance_id: instanceId, wait_seconds: 15, stats: { publishing: true } }
      const headers = { 'X-Relay-Auth': instanceSecret(masterSecret, instanceId) }
      const answer = await client.post<UnboundReply & Partial<ErrorBody>>('/relay/health', body, {
        headers,
        signal: report.signal,
      })
      if (!report.signal.aborted) take(relay, answer)
    } catch (error) {
      if (!report.signal.aborted) onUnexpected(`a health report failed: ${error}`)
    } finally {
      if (relay.report === report) relay.report = null
    }
  }

  const take = (relay: SimulatedRelay, { status, body }: Answer<UnboundReply & Partial<ErrorBody>>): void => {
    relay.nextReportAt = Date.now() + 1000
    if (status !== 200) {
      counts.refusals += 1
      if (!refusals.includes(body.error?.code)) onUnexpected(`a health report got ${status} ${JSON.stringify(body)}`)
      if (body.error?.code === 'invalid_transition' || body.error?.code === 'relay_replaced') end(relay)
      return
    }
    if (body.desired === 'stop') {
      counts.stops += 1
      end(relay)
      return
    }
    relay.nextReportAt = Date.now() + body.report_in_seconds * 1000
    if (!body.assignment) return
    counts.assignments += 1
    relay.sessionId = body.assignment.session_id
    relay.nextReportAt = Date.now()
  }

  /** Does something with one of the relays that satisfy the predicate. */
  const actAt = (
    position: number,
    isMeant: (relay: SimulatedRelay) => boolean,
    act: (relay: SimulatedRelay) => void,
  ) => {
    const meant = existing().filter(isMeant)
    const relay = meant[Math.floor(position * meant.length)]
    if (relay) act(relay)
  }
  const boot = (relay: SimulatedRelay) => {
    if (!relay.isRunning) relay.sessionId = sessionAtBoot(relay.provider, relay.instance)
    Object.assign(relay, { isRunning: true, silentUntil: 0, nextReportAt: Date.now() })
  }
  const isAway = ({ isRunning, silentUntil }: SimulatedRelay) => !isRunning || silentUntil > Date.now()

  return {
    counts,
    reportNext: async () => {
      const [first, ...others] = existing().filter(canReport)
      if (!first) return
      await send(
        others.reduce((earliest, relay) => (relay.nextReportAt < earliest.nextReportAt ? relay : earliest), first),
      )
    },
    reportAt: async (position) => {
      const able = existing().filter(canReport)
      const relay = able[Math.floor(position * able.length)]
      if (relay) await send(relay)
    },
    reportDue: () => {
      for (const relay of existing()) if (canReport(relay) && relay.nextReportAt <= Date.now()) void send(relay)
    },
    silence: (position, seconds) =>
      actAt(position, canReport, (relay) => {
        relay.silentUntil = Date.now() + seconds * 1000
      }),
    lose: (position) =>
      actAt(
        position,
        () => true,
        (relay) => {
          end(relay)
          relay.provider.loseInstance(relay.instance.instanceId)
        },
      ),
    hang: (position) => actAt(position, canReport, end),
    restart: (position) => actAt(position, isAway, boot),
    restartAll: () => existing().filter(isAway).forEach(boot),
  }
}

const bootRelay = (provider: SimulatedProvider, instance: SimulatedInstance): SimulatedRelay => ({
  provider,
  instance,
  sessionId: sessionAtBoot(provider, instance),
  isRunning: true,
  silentUntil: 0,
  nextReportAt: 0,
  report: null,
})

/** Machines of a cloud boot without a session. Processes of a machine get it with their start. */
const sessionAtBoot = ({ hasClientTokens }: SimulatedProvider, { sessionId }: SimulatedInstance): string | null =>
  hasClientTokens ? null : sessionId
