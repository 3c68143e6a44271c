/** The networks of `npm run bench -- bonding`: three links of an encoder, and what happens to them. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { SrtlaSender } from '../test/support/srtla-sender.ts'
import type { LinkConditions } from '../test/support/srtla-sender-link.ts'
import type { Figure } from './rows.ts'

export interface Network {
  readonly name: string
  readonly what: string
  /** The first is the fastest. */
  readonly links: readonly LinkConditions[]
  readonly kbps: number
  /** Whether the encoder limits its bandwidth to 120 % of the stream, as good ones do. */
  readonly isLimited: boolean
  readonly latencyMillis: number
  /** Also what happens. Resolves after it. */
  readonly during?: (sender: SrtlaSender) => Promise<void>
  readonly targets: Targets
}

/** Percent, blocks, and bytes per byte. Undefined: only reported. */
export interface Targets {
  readonly needless?: number
  /** As a part of that of the floor. */
  readonly needlessOfFloor?: number
  readonly share?: number
  readonly missing?: number | 'as the floor'
  readonly cost?: number
}

const links = (change: (conditions: LinkConditions, index: number) => LinkConditions = (same) => same) =>
  [20, 60, 150].map((delayMillis, index) => change({ delayMillis }, index))

const base = { kbps: 3_000, isLimited: true, latencyMillis: 2_000 } as const
const clean = { needless: 1, share: 60, missing: 0, cost: 1.06 } as const
const lossy = { needless: 2, share: 65, missing: 0, cost: 1.1 } as const
const lossyLinks = links((conditions) => ({ ...conditions, lossPercent: 2 }))
const narrowLinks = (kbps: number) => links((conditions) => ({ ...conditions, kbps: 0.42 * kbps }))
const narrow = { needless: 2, missing: 0, cost: 1.08 } as const

async function loseOneAndRebindAnother({ links: [first, second] }: SrtlaSender): Promise<void> {
  await sleep(5_000)
  second?.kill()
  await sleep(6_000)
  second?.revive()
  await sleep(4_000)
  await first?.rebind()
}

async function loseAll(sender: SrtlaSender): Promise<void> {
  await sleep(8_000)
  sender.kill()
  await sleep(1_200)
  sender.revive()
}

export const networks: readonly Network[] = [
  { ...base, name: 'clean', what: 'clean, 3 Mbit/s', links: links(), targets: clean },
  { ...base, name: 'clean_6', what: 'clean, 6 Mbit/s', links: links(), kbps: 6_000, targets: clean },
  {
    ...base,
    name: 'clean_unlimited',
    what: 'clean, encoder without a limit',
    links: links(),
    isLimited: false,
    targets: clean,
  },
  { ...base, name: 'clean_1000', what: 'clean, latency 1,000 ms', links: links(), latencyMillis: 1_000, targets: {} },
  {
    ...base,
    name: 'jitter',
    what: 'one link jitters by ± 80 ms and changes the order',
    links: links((conditions, index) =>
      index === 1 ? { delayMillis: 100, jitterMillis: 80, isOrderKept: false } : conditions,
    ),
    targets: clean,
  },
  { ...base, name: 'loss', what: '2 % loss, 3 Mbit/s', links: lossyLinks, targets: lossy },
  { ...base, name: 'loss_6', what: '2 % loss, 6 Mbit/s', links: lossyLinks, kbps: 6_000, targets: lossy },
  { ...base, name: 'narrow', what: 'three links of 42 % of the bitrate', links: narrowLinks(3_000), targets: narrow },
  {
    ...base,
    name: 'narrow_unlimited',
    what: 'the same, encoder without a limit',
    links: narrowLinks(3_000),
    isLimited: false,
    targets: narrow,
  },
  {
    ...base,
    name: 'return',
    what: 'a link dies for 6 s and returns, a NAT rebinds another',
    links: links(),
    during: loseOneAndRebindAnother,
    targets: { needlessOfFloor: 0.5, missing: 0 },
  },
  {
    ...base,
    name: 'away',
    what: 'all links away for 1.2 s',
    links: links(),
    during: loseAll,
    targets: { missing: 'as the floor' },
  },
  {
    ...base,
    name: 'away_unlimited',
    what: 'the same, encoder without a limit',
    links: links(),
    isLimited: false,
    during: loseAll,
    targets: { missing: 0 },
  },
]

/**
 * The figures of a network, with targets where it has some.
 * @param floor its needless repeats in percent, and its missing blocks; undefined before they are measured.
 */
export function figuresOfNetwork(
  { name, what, targets }: Network,
  floor?: { readonly needless: number; readonly missing: number },
) {
  const needless =
    targets.needlessOfFloor === undefined
      ? targets.needless
      : Number((targets.needlessOfFloor * (floor?.needless ?? 0)).toFixed(2))
  const missing = targets.missing === 'as the floor' ? (floor?.missing ?? 0) : targets.missing
  const figure = (part: string, text: string, unit: string, target: number | undefined): Figure => ({
    name: `bonding_${name}_${part}`,
    what: `bonded stream, ${what}: ${text}`,
    unit,
    ...(target === undefined ? {} : { target, bound: 'at_most' }),
  })
  return {
    needless: figure('needless', 'needless repeats', '%', needless),
    share: figure('share', 'share of the fastest link', '%', targets.share),
    missing: figure('missing', 'blocks missing at the player', 'blocks', missing),
    cost: figure('cost', 'bytes over the links per byte of payload', 'bytes', targets.cost),
  }
}
