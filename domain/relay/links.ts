/** How good a network path of an encoder is, as its owner reads it. */

export const linkVerdicts = ['good', 'weak', 'useless'] as const
export type LinkVerdict = (typeof linkVerdicts)[number]

/**
 * Why a link is not good. `slow`: its packets arrive later than those of the others. `lossy`: it loses packets.
 * `silent`: nothing arrives over it. `narrow`: it carries little.
 */
export const linkReasons = ['slow', 'lossy', 'silent', 'narrow'] as const
export type LinkReason = (typeof linkReasons)[number]

/** What was measured about a link in the last seconds. */
export interface LinkFacts {
  readonly uptimeMillis: number
  /** Since its latest datagram. Encoders send one each second over an idle link. */
  readonly silentMillis: number
  /** The longest time between two datagrams. */
  readonly gapMillisMax: number
  /** How much later its packets arrive than others that were sent after them, in the mean. */
  readonly lateMillis: number
  /** The part of its packets that is lost; undefined where that is not known. */
  readonly lost: number | undefined
  /** Packets of the stream. */
  readonly packets: number
}

export interface LinkJudgement {
  readonly verdict: LinkVerdict
  /** Undefined for a good link. */
  readonly reason?: LinkReason
}

/** From which value on a link is weak, and useless. */
interface Bounds {
  readonly weak: number
  readonly useless: number
}

const silentMillis: Bounds = { weak: 1_500, useless: 3_000 }
const lost: Bounds = { weak: 0.05, useless: 0.25 }
/**
 * As parts of the latency. Behind a sixth of it the relay waits no longer for a packet that may be late, so that it is
 * sent twice; behind a half its repeat comes too late.
 */
const lateness: Bounds = { weak: 1 / 6, useless: 1 / 2 }
/** How many times less than it would carry if all links were equal. */
const narrowness: Bounds = { weak: 4, useless: 20 }
/** Encoders try a new link carefully. */
const judgedAfterMillis = 10_000
/** Below it shares mean nothing. */
const packetsMin = 200

/** @param latencyMillis of the connection. @returns one for each link, in the same order. */
export function judgeLinks(links: readonly LinkFacts[], latencyMillis: number): LinkJudgement[] {
  const packets = links.reduce((sum, link) => sum + link.packets, 0)
  // What was sent over a dead link is lost too, and nothing that arrives says so.
  const isLossKnown = links.every((link) => link.silentMillis <= silentMillis.weak)
  return links.map((link) => {
    const silence = [link.silentMillis, link.gapMillisMax].map((value, index) =>
      // A gap that is over only says that the link is weak.
      rate(value, index === 0 ? silentMillis : { ...silentMillis, useless: Number.POSITIVE_INFINITY }),
    )
    const isJudged = link.uptimeMillis >= judgedAfterMillis && links.length > 1
    const carried = packets < packetsMin ? 1 : (link.packets * links.length) / packets
    // In this order, since a link that is slow or lossy carries little too.
    const rated: readonly (readonly [LinkReason, number])[] = [
      ['silent', Math.max(...silence)],
      ['slow', isJudged ? rate(link.lateMillis / Math.max(latencyMillis, 1), lateness) : 0],
      ['lossy', isLossKnown ? rate(link.lost ?? 0, lost) : 0],
      ['narrow', isJudged ? rate(1 / carried, narrowness) : 0],
    ]
    const worst = Math.max(...rated.map(([, badness]) => badness))
    const [reason] = rated.find(([, badness]) => badness > 0) ?? []
    return { verdict: linkVerdicts[worst] ?? 'good', ...(reason ? { reason } : {}) }
  })
}

/** The place of the verdict about a value. */
const rate = (value: number, { weak, useless }: Bounds): number => (value > useless ? 2 : value > weak ? 1 : 0)
