/**
 * Whether the stream arrives at a live relay. `relays.js` writes new figures of a stream into `data-bitrate`,
 * `data-links` and `data-repeats`.
 */
import type { Session } from '../api-replies.ts'
import type { Bitrates } from '../charts/bitrate-lines.ts'
import { hasLine, Sparkline } from '../charts/sparkline.tsx'
import { formatBitrate, formatLinks, formatRepeats } from '../stream-text.ts'
import { TimeAgo } from '../time-text.tsx'

interface IngestProps {
  readonly session: Session
  readonly bitrates: Bitrates
}

export const Ingest = ({ session, bitrates }: IngestProps) =>
  session.state === 'active' ? (
    <>
      <IngestText session={session} bitrates={bitrates} />
      <div data-part={`bitrates-${session.session_id}`} data-version={versionOf(bitrates)}>
        <Sparkline bitrates={bitrates} />
      </div>
    </>
  ) : null

const versionOf = (bitrates: Bitrates): string => {
  const last = bitrates.at(-1)
  return last && hasLine(bitrates) ? `${last.at} ${last.kbps}` : ''
}

function IngestText({ session, bitrates }: IngestProps) {
  const { engine, ingest } = session
  if (engine === 'none')
    return (
      <p data-ingest="no-engine">
        This relay cannot forward video: no SRT engine is installed on its machine. If you run this service yourself,
        install the package <code>srt-tools</code> there and start a new relay.
      </p>
    )
  if (ingest?.publishing)
    return (
      <p class="receiving" data-ingest="publishing">
        Receiving <strong data-bitrate>{formatBitrate(ingest.bitrate_kbps)}</strong>{' '}
        <span data-links>{ingest.links === 0 ? '' : `over ${formatLinks(ingest.links)}`}</span>
        <span data-repeats>{formatRepeats(ingest.repeat_pct)}</span>
      </p>
    )
  if (isAwaitingFirstVideo(session, bitrates))
    return (
      <div data-ingest="none" data-first-video>
        <FirstVideoSteps heading="No video yet: connect your phone" />
      </div>
    )
  // A relay that has not stated yet whether a stream comes in.
  if (!ingest) return null
  return (
    <p data-ingest="none">
      <strong>
        The video stopped <TimeAgo at={ingest.since} />.
      </strong>{' '}
      The relay waits for it: start the stream in your app again, to the same address.
    </p>
  )
}

/** Whether a relay is ready and no video has come in yet. */
export const isAwaitingFirstVideo = (
  { state, engine, ingest, active_at: activeAt }: Session,
  bitrates: Bitrates,
): boolean =>
  state === 'active' &&
  engine !== 'none' &&
  bitrates.every(({ kbps }) => kbps === 0) &&
  (!ingest || (!ingest.publishing && (activeAt === null || Date.parse(ingest.since) <= Date.parse(activeAt))))

export const FirstVideoSteps = ({ heading }: { readonly heading: string }) => (
  <div class="first-video">
    <p>
      <strong>{heading}</strong>
    </p>
    <ol>
      <li>Pick your app below, scan or copy.</li>
      <li>Start the stream in the app.</li>
      <li>This card then shows “Live” and the bitrate that the relay receives.</li>
    </ol>
  </div>
)
