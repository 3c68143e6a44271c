/** What a run does and when, decided before it begins: the same seed gives the same actions and faults. */
import type { Random } from '../support/random.ts'
import type { CutMode } from './link.ts'

export const accountsCount = 10
const connections = ['main', 'second', 'third', 'fourth'] as const
/** In `processes` relays are processes of the local provider, in `simulated` they are simulated by the driver. */
export const regions = ['processes', 'simulated'] as const
export type RegionName = (typeof regions)[number]

/**
 * Billing events of one account. They are dated when they are due; `late` ones are delivered after those that follow.
 */
export type BillingStep = 'subscribe' | 'fail' | 'recover' | 'refund' | 'set_addons' | 'downgrade'

export type Action =
  | { readonly type: 'start'; readonly account: number; readonly connection: string; readonly region: RegionName }
  | { readonly type: 'start_twice'; readonly account: number; readonly connection: string; readonly region: RegionName }
  | {
      readonly type: 'start_and_stop'
      readonly account: number
      readonly connection: string
      readonly region: RegionName
      readonly afterMillis: number
    }
  | { readonly type: 'stop'; readonly account: number; readonly connection: string; readonly isImmediate: boolean }
  | { readonly type: 'read' | 'refresh' | 'sign_in' | 'sign_out' | 'plugin_login'; readonly account: number }
  | { readonly type: 'browse' | 'browser_stop' | 'browser_sign_out'; readonly account: number }
  | {
      readonly type: 'bill'
      readonly account: number
      readonly step: BillingStep
      readonly addons: number
      readonly copies: number
      readonly delayMillis: number
    }
  | { readonly type: 'disconnect'; readonly account: number; readonly connection: string }
  | { readonly type: 'grant' | 'deny_relays'; readonly account: number; readonly forMillis: number }
  | { readonly type: 'disable' }
  | {
      readonly type: 'silence_relay' | 'freeze_relay' | 'cut_relay'
      readonly position: number
      readonly forMillis: number
    }
  | { readonly type: 'lose_relay' | 'kill_relay'; readonly position: number }

export type TimedAction = Action & { readonly atMillis: number }

export const targets = ['api-1', 'api-2', 'worker-1', 'worker-2', 'site', 'temporal', 'postgres'] as const
export type Target = (typeof targets)[number]

/** The way from the workers and the relays to the APIs. It can be cut only, and all processes run meanwhile. */
export const reportPath = 'report-path'
/** That of a stream which lasts for the whole run. Its process is killed or paused, or cut off in both directions. */
export const streamedRelay = 'relay'
export type FaultTarget = Target | typeof reportPath | typeof streamedRelay

export type FaultKind = 'kill' | 'pause' | 'cut'

/** Faults follow one another. On a busy machine they take longer, and the last ones of a plan are left out. */
export interface Fault {
  readonly kind: FaultKind
  readonly target: FaultTarget
  /** From the end of the fault before it; null when it begins during that fault. */
  readonly pauseMillis: number | null
  /** How long it is away, beside the time that it needs to start. */
  readonly forMillis: number
  readonly cutMode: CutMode
}

export interface Plan {
  readonly actions: readonly TimedAction[]
  readonly faults: readonly Fault[]
}

const actionWeights: Readonly<Record<Action['type'], number>> = {
  start: 22,
  start_twice: 4,
  start_and_stop: 8,
  stop: 14,
  read: 10,
  refresh: 6,
  sign_in: 2,
  sign_out: 3,
  plugin_login: 3,
  browse: 6,
  browser_stop: 2,
  browser_sign_out: 1,
  bill: 26,
  disconnect: 2,
  grant: 2,
  deny_relays: 1,
  disable: 1,
  silence_relay: 3,
  lose_relay: 2,
  kill_relay: 2,
  freeze_relay: 2,
  cut_relay: 2,
}

const billingWeights: Readonly<Record<BillingStep, number>> = {
  subscribe: 6,
  fail: 5,
  recover: 5,
  refund: 1,
  set_addons: 6,
  downgrade: 1,
}

const targetWeights: Readonly<Record<FaultTarget, number>> = {
  'api-1': 4,
  'api-2': 4,
  'worker-1': 4,
  'worker-2': 4,
  site: 1,
  temporal: 2,
  postgres: 3,
  'report-path': 3,
  relay: 5,
}

/** What is killed beside a relay, in half of the cases. */
const besideRelayWeights = { 'worker-1': 1, 'worker-2': 1, temporal: 1, postgres: 1 } satisfies Partial<
  Record<Target, number>
>

/** The mean time between two actions, and between two faults. */
const actionMillis = 350
const faultMillis = 6_000

export function createPlan(random: Random, seconds: number): Plan {
  const millis = seconds * 1000
  return { actions: planActions(random, millis), faults: planFaults(random, millis) }
}

function planActions(random: Random, millis: number): TimedAction[] {
  const actions: TimedAction[] = []
  // All but two accounts subscribe at once, so that the first starts are accepted.
  for (let account = 0; account < accountsCount - 2; account++)
    actions.push({ ...billing(random, account, 'subscribe'), delayMillis: 0, atMillis: account * 50 })
  for (let atMillis = 1_000; atMillis < millis; atMillis += random.between(0.2, 1.8) * actionMillis)
    actions.push({ ...planAction(random), atMillis: Math.round(atMillis) })
  return actions
}

function planAction(random: Random): Action {
  const account = Math.floor(random.next() * accountsCount)
  // The first connection is used most, since most accounts may have one relay only.
  const connection = random.chance(0.5) ? connections[0] : random.pick(connections)
  const region = random.chance(0.15) ? 'processes' : 'simulated'
  const position = random.next()
  const forMillis = Math.round(random.between(1_000, 15_000))
  const type = random.weighted(actionWeights)
  switch (type) {
    case 'start':
    case 'start_twice':
      return { type, account, connection, region }
    case 'start_and_stop':
      return { type, account, connection, region, afterMillis: Math.round(random.between(0, 2_500)) }
    case 'stop':
      return { type, account, connection, isImmediate: random.chance(0.4) }
    case 'read':
    case 'refresh':
    case 'sign_in':
    case 'sign_out':
    case 'plugin_login':
    case 'browse':
    case 'browser_stop':
    case 'browser_sign_out':
      return { type, account }
    case 'bill':
      return billing(random, account, random.weighted(billingWeights))
    case 'disconnect':
      return { type, account, connection }
    case 'grant':
    case 'deny_relays':
      return { type, account, forMillis }
    case 'disable':
      return { type }
    case 'silence_relay':
    case 'freeze_relay':
    case 'cut_relay':
      return { type, position, forMillis }
    case 'lose_relay':
    case 'kill_relay':
      return { type, position }
  }
}

const billing = (random: Random, account: number, step: BillingStep): Extract<Action, { type: 'bill' }> => ({
  type: 'bill',
  account,
  step,
  addons: Math.floor(random.next() * 4),
  copies: random.chance(0.25) ? 2 : 1,
  delayMillis: random.chance(0.2) ? Math.round(random.between(500, 4_000)) : 0,
})

/** One fault after another, sometimes two at a time. Enough for a machine on which every process starts at once. */
function planFaults(random: Random, millis: number): Fault[] {
  const faults: Fault[] = []
  for (let atMillis = 0; atMillis < millis; ) {
    const pauseMillis = Math.round(random.between(0.3, 1.7) * faultMillis)
    // Every plan has these two, also a short one: after its first fault, when relays run.
    const due =
      faults.length === 0 ? undefined : ([reportPath, streamedRelay] as const).find((it) => !hasTarget(faults, it))
    const target = due ?? random.weighted(targetWeights)
    const fault = planFault(random, target, pauseMillis)
    faults.push(fault)
    if (target === streamedRelay && random.chance(0.5))
      faults.push({ ...planFault(random, random.weighted(besideRelayWeights), null), kind: 'kill' })
    else if (random.chance(0.15)) faults.push(planFault(random, random.weighted(targetWeights), null))
    atMillis += (fault.pauseMillis ?? 0) + fault.forMillis
  }
  return faults
}

const hasTarget = (faults: readonly Fault[], target: FaultTarget) => faults.some((fault) => fault.target === target)

function planFault(random: Random, target: FaultTarget, pauseMillis: number | null): Fault {
  const kind = random.weighted({ kill: 5, pause: 3, cut: 3 } satisfies Record<FaultKind, number>)
  const cutMode = random.chance(0.5) ? 'refuse' : 'silence'
  // Reports have to be missing for longer than the health timeout.
  if (target === reportPath)
    return { kind: 'cut', target, pauseMillis, forMillis: Math.round(random.between(8_000, 20_000)), cutMode }
  // Shorter and longer than the health timeout.
  if (target === streamedRelay)
    return { kind, target, pauseMillis, forMillis: Math.round(random.between(1_000, 20_000)), cutMode: 'silence' }
  return { kind, target, pauseMillis, forMillis: Math.round(random.between(500, 6_000)), cutMode }
}
