/** What the owner of a stream reads about one of its links. */
import type { LinkReason, LinkVerdict } from './links.ts'

export interface DescribedLink {
  readonly verdict?: LinkVerdict | undefined
  readonly reason?: LinkReason | undefined
  readonly lateMillis: number
  /** Undefined where it is not known. */
  readonly repeatPct: number | undefined
  readonly silentMillis: number
}

const repeatPctMin = 5
const lateMillisMin = 100
/** Encoders send a datagram each second over an idle link. */
const silentMillisMin = 1_500

/**
 * For example: “Link 2 is weak: it arrives 140 ms later than the others and repeats 12 %. Your stream would be better
 * without it.”
 * @param number from 1 on. @param count of all links.
 */
export function describeLink(link: DescribedLink, number: number, count: number): string {
  const { verdict, reason } = link
  if (verdict === undefined) return `Link ${number} is not judged yet.`
  if (reason === undefined) return `Link ${number} is good.`
  // A silent or narrow link takes little of the stream, so that it does no harm.
  const isHarmful = reason === 'slow' || reason === 'lossy'
  const advice = count > 1 && isHarmful ? ' Your stream would be better without it.' : ''
  return `Link ${number} is ${verdict}: it ${listFaults(link, reason).join(' and ')}.${advice}`
}

/** Each goes on after “it”. */
function listFaults({ lateMillis, repeatPct = 0, silentMillis }: DescribedLink, reason: LinkReason): string[] {
  if (reason === 'silent')
    return [
      silentMillis >= silentMillisMin
        ? `has brought nothing for ${Math.round(silentMillis / 1_000)} s`
        : 'was silent for more than a second',
    ]
  return [
    ...(reason === 'slow' || (reason === 'lossy' && lateMillis >= lateMillisMin)
      ? [`arrives ${Math.round(lateMillis)} ms later than the others`]
      : []),
    ...(reason === 'lossy' || repeatPct >= repeatPctMin ? [`repeats ${Math.round(repeatPct)} %`] : []),
    ...(reason === 'narrow' ? ['carries very little of your stream'] : []),
  ]
}
