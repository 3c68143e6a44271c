/**
 * The step of `npm run demo` that publishes a test pattern to the relay, plays it, and shows what the relay receives.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Reply } from '../client/reply.ts'
import { canStream, type MediaPrograms, mediaInstallCommand } from './media-programs.ts'
import { type Player, startPlayer, startPublisher } from './test-stream.ts'

export type Session = Reply<'get', '/relay/active'>['sessions'][number]

interface DemoStream {
  readonly connect: NonNullable<Session['connect']>
  readonly programs: MediaPrograms
  readonly seconds: number
  readonly print: (text: string) => void
  /** The ingest that the API shows for the session. */
  readonly readIngest: () => Promise<Session['ingest']>
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
}

/** The API shows a stream after the next health report, and the limit of its requests allows no more polls. */
const ingestMillisMax = 15_000
const ingestPollMillis = 3_000
const publisherSecondsMore = 60
const publisherMillisMax = 10_000
const publisherPollMillis = 100
const statsMillisMax = 15_000

/** Why the step is skipped, with the way out; undefined when nothing prevents it. */
export function findObstacle(
  engine: string | undefined,
  programs: MediaPrograms,
  platform: NodeJS.Platform,
): string | undefined {
  const install = `install it with: ${mediaInstallCommand(platform)}`
  if (!canStream(programs)) return `neither srt-live-transmit nor an ffmpeg with SRT is on the PATH; ${install}`
  if (engine === 'none') return `the relay found no srt-live-transmit and refuses streams; ${install}`
  return undefined
}

/** Rejects when the stream does not arrive. All processes that it started have been ended when it settles. */
export async function streamTestPattern(stream: DemoStream): Promise<void> {
  const ending = new AbortController()
  const { signal } = ending
  const interrupt = () => ending.abort()
  stream.signal.addEventListener('abort', interrupt)
  const { programs, connect, seconds, print } = stream
  const startedAt = performance.now()
  const publisher = startPublisher({ programs, url: connect.srt_url, signal }, seconds + publisherSecondsMore)
  const ends = [publisher.ended]
  print(publisher.description)
  const unlessEnded = async <T>(work: Promise<T>): Promise<T> => {
    const failed = Promise.race(ends).then((reason) => {
      throw new Error(stream.signal.aborted ? 'The stream was interrupted' : `The stream has ended: ${reason}`)
    })
    return Promise.race([failed, work])
  }
  try {
    // Some engines refuse players while no stream comes in.
    await unlessEnded(waitForPublisher(stream, signal))
    const player = startPlayer({ programs, url: connect.player_url, signal })
    ends.push(player.ended)
    await unlessEnded(showStream(stream, player, startedAt))
  } finally {
    stream.signal.removeEventListener('abort', interrupt)
    ending.abort()
    await Promise.all(ends)
  }
}

async function waitForPublisher(stream: DemoStream, signal: AbortSignal): Promise<void> {
  const until = performance.now() + publisherMillisMax
  while ((await readBitrate(stream)) === 0) {
    if (performance.now() > until) throw new Error('The relay does not receive the stream')
    await sleep(publisherPollMillis, undefined, { signal })
  }
}

async function showStream(stream: DemoStream, player: Player, startedAt: number): Promise<void> {
  const { seconds, print, signal } = stream
  const secondsSince = (at: number) => `${((at - startedAt) / 1000).toFixed(1)} s after the start of the publisher`
  let ingest: Session['ingest'] | undefined
  let isFirstShown = false
  let polledAt = startedAt
  for (;;) {
    await sleep(1_000, undefined, { signal })
    const now = performance.now()
    const first = player.frames === undefined ? player.firstByteAt : player.firstFrameAt
    if (!isFirstShown && first !== undefined) {
      print(`the first ${player.frames === undefined ? 'byte' : 'frame'} was played ${secondsSince(first)}`)
      isFirstShown = true
    }
    print(`the relay receives ${await readBitrate(stream)} kbit/s, the player has received ${describe(player)}`)
    if (!ingest?.publishing && now - polledAt > ingestPollMillis) {
      polledAt = now
      ingest = await stream.readIngest()
      if (ingest?.publishing)
        print(`GET /relay/active shows a stream of ${ingest.bitrate_kbps} kbit/s, links: ${ingest.links}`)
    }
    const elapsedMillis = now - startedAt
    if (elapsedMillis > seconds * 1000 && isFirstShown && ingest?.publishing) return
    if (elapsedMillis > Math.max(seconds * 1000, ingestMillisMax)) break
  }
  if (!isFirstShown) throw new Error(`The player received ${describe(player)}, and nothing that can be played`)
  throw new Error('GET /relay/active does not show the stream')
}

const describe = ({ bytes, frames }: Player): string =>
  `${(bytes / 1_000_000).toFixed(2)} MB${frames === undefined ? '' : ` and decoded ${frames} frames`}`

/** The bitrate in the relay's own statistics, which are newer than the last health report. */
async function readBitrate({ connect }: DemoStream): Promise<number> {
  const streamId = new URL(connect.srt_url).searchParams.get('streamid') ?? ''
  const url = `${connect.stats_url}?publisher=${encodeURIComponent(streamId)}`
  const { publishers } = await readRelayStats<{ publishers: Record<string, { bitrate: number }> }>(url)
  return publishers[streamId]?.bitrate ?? 0
}

/** The statistics that a relay itself serves, without authentication. Rejects when there is no answer in JSON. */
export async function readRelayStats<Stats>(url: string): Promise<Stats> {
  const response = await fetch(url, { signal: AbortSignal.timeout(statsMillisMax) })
  return (await response.json()) as Stats
}
