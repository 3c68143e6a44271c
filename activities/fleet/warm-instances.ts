/** The activities of the workflow that keeps a region's warm instances. */
import type { Database } from '../../db/connection.ts'
import { findInstance, recordAttempt } from '../../db/fleet/instances.ts'
import {
  markWarmInstanceGone,
  retireUnboundInstance,
  type WarmRegion,
  type WarmWork,
} from '../../db/fleet/warm-instances.ts'
import { planWarm } from '../../db/transactions/plan-warm-instances.ts'
import type { Config } from '../../platform/config/config.ts'
import { createInstanceId } from '../../providers/relay/instance-secrets.ts'
import {
  destroyProven,
  failCreation,
  launchInstance,
  placementOf,
  providerOf,
  regionOf,
  withHeartbeat,
} from './instances.ts'
import type { RelayProviders } from './relay-providers.ts'

export type { WarmWork }

export interface WarmInstanceActivities {
  /** See {@link planWarm}. Safe to repeat. */
  planWarmInstances(request: { region: string; mayCreate: boolean }): Promise<WarmWork>
  /** Creates or adopts a reserved instance. Does nothing when it is retired or has been created. Safe to repeat. */
  createWarmInstance(request: { instanceId: string }): Promise<void>
  /** Retires an instance without a session and resolves when its provider shows it no more. Safe to repeat. */
  destroyWarmInstance(request: { instanceId: string }): Promise<void>
}

interface Deps {
  readonly config: Config
  readonly sql: Database
  readonly providers: RelayProviders
}

export function createWarmInstanceActivities(deps: Deps): WarmInstanceActivities {
  const { config, sql, providers } = deps
  return {
    planWarmInstances: ({ region, mayCreate }) => {
      const warmRegion = warmRegionOf(config, region)
      const { provider } = warmRegion.placement
      return planWarm(sql, warmRegion, mayCreate, () => createInstanceId(provider))
    },

    createWarmInstance: async ({ instanceId }) => {
      const instance = await findInstance(sql, instanceId)
      // A session may have claimed it since its launch, and a repeated call that fails would retire it.
      if (!instance || instance.isRetired || instance.isGone || instance.isLaunched) return
      const attempt = await recordAttempt(sql, instanceId)
      if (!attempt) return
      const target = { region: instance.region, sessionId: null, streamTokenHash: null }
      await launchInstance(deps, attempt, target).catch(failCreation)
    },

    destroyWarmInstance: async ({ instanceId }) => {
      await retireUnboundInstance(sql, instanceId)
      const instance = await findInstance(sql, instanceId)
      if (!instance || instance.sessionId !== null) return
      await withHeartbeat(() => destroyProven(providerOf(providers, instance.region), instance))
      await markWarmInstanceGone(sql, instanceId)
    },
  }
}

/** Throws for a region that is not in `SVC_REGIONS`. */
export function warmRegionOf(config: Config, name: string): WarmRegion {
  const { provisionTimeoutSeconds, healthTimeoutSeconds } = config.relay
  return {
    placement: placementOf(config, name),
    warm: regionOf(config, name).warm,
    bootSecondsMax: provisionTimeoutSeconds,
    healthTimeoutSeconds,
  }
}
