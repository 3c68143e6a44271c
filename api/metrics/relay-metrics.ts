/** Metrics of live relay sessions and of what they receive, read from Postgres. */
import { Gauge, type Registry } from 'prom-client'
import type { Sql } from '../../db/connection.ts'
import { failingAddressSeconds } from '../../db/fleet/relay-addresses.ts'
import { failingNameSeconds } from '../../db/fleet/relay-names.ts'
import { countUndeliveredCommands } from '../../db/relay/commands.ts'
import { readLiveFigures } from '../../db/relay/figures.ts'
import { countQuiet } from '../../domain/relay/health.ts'
import { relayStates } from '../../domain/relay/session.ts'
import type { Config } from '../../platform/config/config.ts'

const liveStates = relayStates.filter((state) => state !== 'stopped')
const statesWithLimit = ['provisioning', 'grace'] as const

/** Reads the figures. @returns a function that adds them to a registry. */
export async function readRelayGauges(
  sql: Sql,
  { regions, relay }: Pick<Config, 'regions' | 'relay'>,
): Promise<(registry: Registry) => void> {
  const [figures, undelivered, namesFailing, addressesFailing] = await Promise.all([
    readLiveFigures(sql, relay),
    countUndeliveredCommands(sql),
    failingNameSeconds(sql),
    failingAddressSeconds(sql),
  ])
  return (registry) => {
    const gauge = (name: string, help: string, labelNames: string[] = []) =>
      new Gauge({ name, help, labelNames, registers: [registry] })
    const names = regions.map(({ region }) => region)

    const live = gauge('svc_relay_sessions', 'Live relay sessions by state and region.', ['state', 'region'])
    for (const region of names) for (const state of liveStates) live.set({ state, region }, 0)
    for (const figure of figures)
      for (const state of liveStates) live.set({ state, region: figure.region }, figure[state])
    const late = gauge('svc_relay_sessions_stuck', 'Sessions two minutes behind the deadline of their state.', [
      'state',
      'region',
    ])
    for (const region of names) for (const state of statesWithLimit) late.set({ state, region }, 0)
    for (const { region, stuckProvisioning, stuckGrace } of figures) {
      late.set({ state: 'provisioning', region }, stuckProvisioning)
      late.set({ state: 'grace', region }, stuckGrace)
    }
    const quiet = gauge(
      'svc_relay_sessions_quiet',
      'Active sessions that did not report for half the health timeout.',
      ['region'],
    )
    for (const region of names) {
      const observed = figures.find((figure) => figure.region === region)
      quiet.set({ region }, observed ? countQuiet(observed, relay.healthTimeoutSeconds) : 0)
    }
    gauge('svc_relay_sessions_overlong', 'Live sessions older than the maximum duration.').set(
      figures.reduce((total, { overlong }) => total + overlong, 0),
    )
    gauge('svc_relay_commands_undelivered', 'Accepted commands that are not delivered to their workflow.').set(
      undelivered.commands,
    )
    gauge('svc_relay_commands_undelivered_age_seconds', 'Age of the oldest undelivered command.').set(
      undelivered.oldestSeconds,
    )

    gauge('svc_relay_names_failing_seconds', 'Since the name of a relay could not be written; 0 while all are.').set(
      namesFailing,
    )
    gauge(
      'svc_relay_addresses_failing_seconds',
      'Since a stable address could not be moved or released; 0 while all can.',
    ).set(addressesFailing)

    const ofRegion = (name: string, help: string) => gauge(name, help, ['region'])
    const streams = ofRegion('svc_relay_streams', 'Relays that receive a stream.')
    const bits = ofRegion('svc_relay_ingest_bits_per_second', 'Bitrate of all received streams.')
    const links = ofRegion('svc_relay_ingest_links', 'Links of all received streams.')
    const players = ofRegion('svc_relay_players', 'Connected players of all relays.')
    const roundTrip = ofRegion('svc_relay_ingest_round_trip_seconds', 'Mean round-trip time to the encoders.')
    const loss = ofRegion('svc_relay_ingest_loss_ratio', 'Mean share of packets that were lost, from 0 to 1.')
    for (const region of names) for (const metric of [streams, bits, links, players]) metric.set({ region }, 0)
    for (const { region, ...ingest } of figures) {
      streams.set({ region }, ingest.streams)
      bits.set({ region }, ingest.bitrateKbps * 1000)
      links.set({ region }, ingest.links)
      players.set({ region }, ingest.players)
      if (ingest.meanRttMs !== null) roundTrip.set({ region }, ingest.meanRttMs / 1000)
      if (ingest.meanLossPct !== null) loss.set({ region }, ingest.meanLossPct / 100)
    }
  }
}
