/**
 * The steps of the simulation. All of them are decided before the first one is carried out, so a seed always gives the
 * same ones.
 */

import type { Random } from '../support/random.ts'
import type { Trouble } from './fleet-provider.ts'

export const usersCount = 60
/** As many as the plan of the users includes. */
export const connectionsCount = 4

export const coldRegion = 'cold'
export const warmRegion = 'warm'
const regions = [warmRegion, coldRegion] as const

/** A position is a number from 0 to 1 among whatever can take the step when it is carried out. */
export type Step =
  | { readonly type: 'report' }
  | { readonly type: 'report_early' | 'lose' | 'hang' | 'restart'; readonly position: number }
  | { readonly type: 'silence'; readonly position: number; readonly seconds: number }
  | { readonly type: 'start' | 'start_twice'; readonly slot: Slot; readonly region: string | undefined }
  /** A user who starts a relay and stops it again after so many seconds. */
  | { readonly type: 'start_and_stop'; readonly slot: Slot; readonly region: string; readonly seconds: number }
  | { readonly type: 'stop' | 'stop_now'; readonly slot: Slot }
  | { readonly type: 'start_again' | 'disconnect'; readonly position: number }
  | { readonly type: 'drain' | 'resume'; readonly region: string }
  | { readonly type: 'trouble'; readonly region: string; readonly trouble: Trouble; readonly seconds: number }
  | { readonly type: 'sweep' | 'restart_worker' }

/** A connection of a user. */
export interface Slot {
  readonly user: number
  readonly connection: number
}

const weights: Readonly<Record<Step['type'], number>> = {
  report: 6200,
  report_early: 350,
  silence: 220,
  lose: 100,
  hang: 60,
  restart: 150,
  start: 1400,
  start_twice: 120,
  start_and_stop: 400,
  stop: 350,
  stop_now: 450,
  start_again: 150,
  disconnect: 80,
  drain: 6,
  resume: 0,
  trouble: 30,
  sweep: 30,
  restart_worker: 0,
}
/** A region is drained for so many steps. */
const drainedSteps = 250
/** The worker is stopped and started again this often, in equal distances. */
const workerRestarts = 2

export function decideSteps(random: Random, count: number): Step[] {
  const decided = Array.from({ length: count }, () => decideStep(random))
  const steps = [...decided]
  for (const [index, step] of decided.entries())
    if (step.type === 'drain') steps[index + drainedSteps] = { type: 'resume', region: step.region }
  for (let restart = 1; restart <= workerRestarts; restart += 1)
    steps[Math.floor((count * restart) / (workerRestarts + 1))] = { type: 'restart_worker' }
  return steps.slice(0, count)
}

function decideStep(random: Random): Step {
  const type = random.weighted(weights)
  switch (type) {
    case 'report':
    case 'sweep':
    case 'restart_worker':
      return { type }
    case 'silence':
      // Most are shorter than the health timeout, and some are longer than the grace.
      return { type, position: random.next(), seconds: random.chance(0.8) ? random.between(0.5, 12) : 90 }
    case 'start':
    case 'start_twice':
      return { type, slot: decideSlot(random), region: random.pick([warmRegion, coldRegion, 'auto', undefined]) }
    case 'start_and_stop':
      return { type, slot: decideSlot(random), region: random.pick(regions), seconds: random.between(0, 1.2) }
    case 'stop':
    case 'stop_now':
      return { type, slot: decideSlot(random) }
    case 'drain':
    case 'resume':
      return { type, region: random.pick(regions) }
    case 'trouble':
      return {
        type,
        region: random.pick(regions),
        trouble: random.pick(['failing', 'throttling', 'no_room', 'no_lists', 'no_destroys']),
        seconds: random.between(2, 8),
      }
    default:
      return { type, position: random.next() }
  }
}

const decideSlot = (random: Random): Slot => ({
  user: Math.floor(random.next() * usersCount),
  connection: Math.floor(random.next() * connectionsCount),
})
