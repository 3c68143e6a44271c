/**
 * A simulated provider of one region: instances exist in memory only, and its calls fail as those of a cloud do. It
 * records the life of each instance, from which the test finds out whether the control plane kept its rules.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type RelayInstance,
  type RelayProvider,
  RelayProviderError,
  type RelaySpec,
} from '../../providers/relay/provider.ts'
import type { Random } from '../support/random.ts'
import { createSimulatedAddresses } from './fleet-addresses.ts'

export interface SimulatedInstance extends RelayInstance {
  readonly zone: number
  /** When a list shows it, in milliseconds since 1970. */
  readonly listedFrom: number
  /** When its relay begins to report. */
  readonly bootedAt: number
  /** Null as long as it exists. */
  endedAt: number | null
}

/** Trouble of a whole region for some time. */
export type Trouble = 'failing' | 'throttling' | 'no_room' | 'no_lists' | 'no_destroys'

export interface SimulatedRegion {
  readonly region: string
  readonly capacity: number
  readonly zones: number
  /** The longest time that a list lacks a new instance, in seconds. */
  readonly lagSecondsMax: number
  /** Whether a second creation with the id of an ended instance is refused, as with the client tokens of EC2. */
  readonly hasClientTokens: boolean
  /** Whether a stable address can move to another running instance. */
  readonly canMoveAddresses: boolean
}

export interface SimulatedProvider extends RelayProvider, Omit<SimulatedRegion, 'zones'> {
  /** All instances that ever existed, in the order of their creation. */
  readonly instances: readonly SimulatedInstance[]
  listExisting(): SimulatedInstance[]
  /** The stable addresses that exist, with the instance that each leads to. */
  hosts(): ReadonlyMap<string, string>
  /** Ends an instance without a call of the control plane. */
  loseInstance(instanceId: string): void
  startTrouble(trouble: Trouble, seconds: number): void
  /** No call fails from now on. */
  endFaults(): void
  /** How often each fault was injected. */
  readonly faults: ReadonlyMap<string, number>
  /** Broken rules that the provider noticed. */
  readonly objections: readonly string[]
}

/** Above the longest call together with the longest lag of a list, and what a busy worker takes before a call. */
const listLagSeconds = 15
const hangSecondsMax = 4
/** A creation that a busy machine would perform later is not performed. */
const createSecondsMax = hangSecondsMax + 1

/** How often a call of `create` has this outcome. */
const createOutcomes = { created: 72, lost_reply: 5, retry: 5, throttled: 3, no_room: 10, hanging: 4, quota: 1 }

export function createSimulatedProvider(region: SimulatedRegion, random: Random): SimulatedProvider {
  const instances: SimulatedInstance[] = []
  const troubles = new Map<Trouble, number>()
  const faults = new Map<string, number>()
  const objections: string[] = []
  /** Instances whose creation hangs. Another call for one of them does not state that there is no room. */
  const hanging = new Set<string>()
  let hasFaults = true

  const find = (instanceId: string) =>
    instances.find((instance) => instance.instanceId === instanceId && instance.endedAt === null)
  const listExisting = () => instances.filter(({ endedAt }) => endedAt === null)
  const isVisible = ({ endedAt, listedFrom }: SimulatedInstance) => endedAt === null && listedFrom <= Date.now()
  const hasTrouble = (trouble: Trouble) => hasFaults && (troubles.get(trouble) ?? 0) > Date.now()
  const chance = (probability: number) => random.chance(probability) && hasFaults
  const answerTime = (signal?: AbortSignal) => sleep(random.between(5, 150), undefined, signal ? { signal } : {})
  function fail(fault: string, ...details: ConstructorParameters<typeof RelayProviderError>): never {
    countFault(fault)
    throw new RelayProviderError(...details)
  }
  const countFault = (fault: string) => void faults.set(fault, (faults.get(fault) ?? 0) + 1)

  const addresses = createSimulatedAddresses({
    network: region.canMoveAddresses ? 18 : 19,
    canMove: region.canMoveAddresses,
    instances,
    chance: (probability) => chance(probability) || hasTrouble('no_destroys'),
    fail,
    answerTime,
  })

  const insert = ({ instanceId, sessionId, zone, addressId: wantedId }: RelaySpec): SimulatedInstance => {
    const existing = find(instanceId)
    if (existing) return existing
    const now = Date.now()
    const { addressId, host } = addresses.reserve(instanceId, wantedId)
    const instance: SimulatedInstance = {
      instanceId,
      providerId: `${region.region}-${instances.length}`,
      sessionId,
      region: region.region,
      addressId,
      endpoint: { host, srtlaPort: 5000, publishPort: 4001, playPort: 4000, statsPort: 5080 },
      createdAt: new Date(now),
      zone,
      listedFrom: now + random.between(0, region.lagSecondsMax) * 1000,
      bootedAt: now + random.between(100, 1500),
      endedAt: null,
    }
    instances.push(instance)
    const existingCount = listExisting().length
    if (existingCount > region.capacity)
      objections.push(`${existingCount} instances exist in ${region.region}, which has room for ${region.capacity}`)
    return instance
  }

  const drawOutcome = (zone: number): keyof typeof createOutcomes => {
    const outcome = random.weighted(createOutcomes)
    const isHit = random.chance(0.8)
    if (!hasFaults) return 'created'
    if (hasTrouble('failing') && isHit) return 'retry'
    if (hasTrouble('throttling') && isHit) return 'throttled'
    if (hasTrouble('no_room') && (zone === 0 || isHit)) return 'no_room'
    return outcome
  }

  /** The call hangs. Its instance may be created all the same, also after the call was abandoned. */
  const hang = async (spec: RelaySpec, signal: AbortSignal, isLate: () => boolean): Promise<SimulatedInstance> => {
    countFault('hanging create')
    hanging.add(spec.instanceId)
    const [millis, isCreated] = [random.between(1, hangSecondsMax) * 1000, random.chance(0.6)]
    const late = sleep(millis).then(() => {
      hanging.delete(spec.instanceId)
      return isCreated && !isLate() ? insert(spec) : undefined
    })
    await Promise.race([late, sleep(millis, undefined, { signal })])
    return (await late) ?? fail('hanging create without a result', 'the provider did not answer')
  }

  const create = async (spec: RelaySpec, signal: AbortSignal): Promise<SimulatedInstance> => {
    const outcome = drawOutcome(spec.zone)
    const from = Date.now()
    const isLate = () => Date.now() - from > createSecondsMax * 1000
    await answerTime(signal)
    if (isLate()) return fail('late create', 'the provider did not answer')
    if (outcome === 'throttled') return fail('throttled create', 'slow down', 'throttled', { retryAfterSeconds: 0.5 })
    if (outcome === 'retry') return fail('failed create', 'the provider failed')
    const existing = find(spec.instanceId)
    if (existing) return existing
    if (region.hasClientTokens && instances.some(({ instanceId }) => instanceId === spec.instanceId))
      return fail('create of an ended instance', 'the instance has ended', 'give_up')
    if (hanging.has(spec.instanceId)) return fail('concurrent create', 'another call is in progress')
    if (outcome === 'no_room') return fail('no room in a zone', 'no room', 'try_other_zone', { detail: 'capacity' })
    if (outcome === 'quota') return fail('quota', 'the quota is used up', 'give_up', { detail: 'quota' })
    if (outcome === 'hanging') return hang(spec, signal, isLate)
    const instance = insert(spec)
    if (outcome === 'lost_reply') return fail('lost reply', 'the connection was reset')
    return instance
  }

  const destroy = async (instanceId: string, providerId?: string | null): Promise<void> => {
    const isRefused = chance(0.08) || hasTrouble('no_destroys')
    const [isReplyLost, isUnknown] = [chance(0.05), find(instanceId) === undefined]
    await answerTime()
    if (isUnknown) countFault('destroy of an unknown instance')
    if (isRefused) fail('failed destroy', 'the provider failed')
    const instance = find(instanceId)
    if (instance && (isVisible(instance) || instance.providerId === providerId)) instance.endedAt = Date.now()
    if (isReplyLost) fail('lost reply of a destroy', 'the connection was reset')
  }

  /** The reply shows the instances as they were when the call began. */
  const list: RelayProvider['list'] = async (filter) => {
    const isRefused = chance(0.05) || hasTrouble('no_lists')
    const listed = instances.filter(isVisible).filter((instance) => !filter || instance.sessionId === filter.sessionId)
    await answerTime()
    if (isRefused) fail('failed list', 'the list is not complete')
    return listed
  }

  return {
    ...region,
    listLagSeconds,
    instances,
    faults,
    objections,
    listExisting,
    hosts: addresses.hosts,
    addresses,
    create,
    destroy,
    list,
    describe: async (instanceId) =>
      instances.find((instance) => instance.instanceId === instanceId && isVisible(instance)) ?? null,
    hasEnded: async (instanceId) =>
      instances.some((instance) => instance.instanceId === instanceId && instance.endedAt !== null),
    check: async () => {},
    loseInstance: (instanceId) => {
      const instance = find(instanceId)
      if (instance) instance.endedAt = Date.now()
    },
    startTrouble: (trouble, seconds) => {
      countFault(`trouble: ${trouble}`)
      troubles.set(trouble, Date.now() + seconds * 1000)
    },
    endFaults: () => {
      hasFaults = false
    },
  }
}
