/**
 * Metrics of a worker. Its heartbeat stores them in Postgres, and the API's `/metrics` shows the sum over all workers.
 */
import { AggregatorRegistry, Counter, Histogram, type Registry } from 'prom-client'
import type { TransitionsRequest } from '../../db/transactions/write-transitions.ts'
import type { RelayState } from '../../domain/relay/session.ts'
import type { RegionConfig } from '../../platform/config/regions.ts'
import { type ProviderFailure, providerFailures } from '../../providers/relay/provider.ts'
import { type ReconciledDifference, reconciliationOutcomes } from '../billing/reconciliation.ts'

/** A request for transitions, with the values of their metric labels. */
export interface CountedTransitionsRequest extends TransitionsRequest {
  readonly from: RelayState
  readonly region: string
  readonly createdAt: number
}

export interface WorkerMetrics {
  readonly registry: Registry
  /** Counts the transitions of a request, and the outcome of provisioning when they end it. */
  countTransitions(request: CountedTransitionsRequest, now: number): void
  /** Counts a relay that was proved to be gone, by what proved it. */
  countGoneRelay(relay: { region: string; proof: 'provider' | 'refused' }): void
  /** Counts a relay that another one has replaced, with the time without a relay. */
  countReplacement(replacement: { region: string; awaySeconds: number }): void
  /** Counts subscriptions that differed from the billing provider's list, by outcome. */
  countDifferences(differences: readonly Pick<ReconciledDifference, 'outcome'>[]): void
  countOperation(operation: { provider: string; operation: string; outcome: 'ok' | 'failed'; seconds: number }): void
  /** Counts a failed call to a relay provider by its class. */
  countFailure(call: { provider: string; region: string; failure: ProviderFailure }): void
  /** Counts a comparison with a provider's list when too many instances seemed to have no owner. */
  countOrphanSweep(region: string, isBlocked: boolean): void
  /** Counts rows that were deleted because their retention period is over. */
  countExpiredRows(table: string, rows: number): void
}

/**
 * @param regions those that the worker serves. Their counters of failures begin at 0, since Prometheus does not see the
 * increase to the first value of a counter.
 */
export function createWorkerMetrics(
  registry: Registry,
  regions: readonly Pick<RegionConfig, 'region' | 'provider'>[] = [],
): WorkerMetrics {
  const registers = [registry]
  const transitions = new Counter({
    name: 'svc_relay_transitions_total',
    help: 'Transitions of relay sessions, by reason.',
    labelNames: ['from', 'to', 'reason', 'region'],
    registers,
  })
  const provisioning = new Counter({
    name: 'svc_relay_provisioning_total',
    help: 'Sessions whose provisioning ended, by outcome.',
    labelNames: ['region', 'outcome'],
    registers,
  })
  const provisioningSeconds = new Histogram({
    name: 'svc_relay_provisioning_duration_seconds',
    help: 'Time from an accepted start until the relay is active.',
    labelNames: ['region'],
    buckets: [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300],
    registers,
  })
  const goneRelays = new Counter({
    name: 'svc_relays_gone_total',
    help: 'Relays that were proved to be gone during a session, by what proved it.',
    labelNames: ['region', 'proof'],
    registers,
  })
  const replacements = new Histogram({
    name: 'svc_relay_replacement_away_seconds',
    help: 'Time from the failure of a relay until another one has replaced it.',
    labelNames: ['region'],
    buckets: [1, 2, 5, 10, 20, 30, 60, 120, 300],
    registers,
  })
  const differences = new Counter({
    name: 'svc_billing_reconciliation_differences_total',
    help: 'Subscriptions that differed from the billing provider, in each reconciliation, by outcome.',
    labelNames: ['outcome'],
    registers,
  })
  for (const outcome of reconciliationOutcomes) differences.inc({ outcome }, 0)
  const operations = new Counter({
    name: 'svc_provider_operations_total',
    help: 'Calls to relay providers, by outcome.',
    labelNames: ['provider', 'operation', 'outcome'],
    registers,
  })
  const operationSeconds = new Histogram({
    name: 'svc_provider_operation_duration_seconds',
    help: 'Duration of calls to relay providers.',
    labelNames: ['provider', 'operation'],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60],
    registers,
  })
  const failures = new Counter({
    name: 'svc_provider_failures_total',
    help: 'Failed calls to relay providers, by what the failure means.',
    labelNames: ['provider', 'region', 'failure'],
    registers,
  })
  const blockedSweeps = new Counter({
    name: 'svc_relay_orphan_sweeps_blocked_total',
    help: 'Sweeps that destroyed nothing since most instances of the region seemed to have no owner.',
    labelNames: ['region'],
    registers,
  })
  const expiredRows = new Counter({
    name: 'svc_retention_deleted_rows_total',
    help: 'Rows that were deleted because their retention period is over.',
    labelNames: ['table'],
    registers,
  })

  for (const { region, provider } of regions) {
    for (const outcome of ['relay_ready', 'provision_failed', 'provision_timeout'])
      provisioning.inc({ region, outcome }, 0)
    for (const failure of providerFailures) failures.inc({ provider, region, failure }, 0)
    blockedSweeps.inc({ region }, 0)
    for (const proof of ['provider', 'refused']) goneRelays.inc({ region, proof }, 0)
    replacements.zero({ region })
  }

  return {
    registry,
    countTransitions: ({ region, createdAt, transitions: written, from }, now) => {
      let state: string = from
      for (const { to, reason } of written) {
        transitions.inc({ from: state, to, reason, region })
        if (state === 'provisioning') provisioning.inc({ region, outcome: reason })
        if (reason === 'relay_ready') provisioningSeconds.observe({ region }, (now - createdAt) / 1000)
        state = to
      }
    },
    countGoneRelay: (relay) => goneRelays.inc(relay),
    countReplacement: ({ region, awaySeconds }) => replacements.observe({ region }, awaySeconds),
    countDifferences: (found) => {
      for (const { outcome } of found) differences.inc({ outcome })
    },
    countOperation: ({ provider, operation, outcome, seconds }) => {
      operations.inc({ provider, operation, outcome })
      operationSeconds.observe({ provider, operation }, seconds)
    },
    countFailure: (call) => failures.inc(call),
    countExpiredRows: (table, rows) => expiredRows.inc({ table }, rows),
    countOrphanSweep: (region, isBlocked) => blockedSweeps.inc({ region }, isBlocked ? 1 : 0),
  }
}

/** Adds up the metrics of several workers, each as prom-client exports them. */
export const sumWorkerMetrics = (metrics: readonly (readonly object[])[]): Promise<object[]> =>
  AggregatorRegistry.aggregate(metrics as never).getMetricsAsJSON()
