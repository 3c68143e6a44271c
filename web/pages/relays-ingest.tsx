/** What an active relay shows below its signal path: what to do first, and the bitrate of the last ten minutes. */
import type { Session } from '../api-replies.ts'
import type { Bitrates } from '../charts/bitrate-lines.ts'
import { hasLine, Sparkline } from '../charts/sparkline.tsx'

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
  const { engine } = session
  if (engine === 'none')
    return (
      <p data-ingest="no-engine">
        This relay cannot forward video: no SRT engine is installed on its machine. If you run this service yourself,
        install the package <code>srt-tools</code> there and start a new relay.
      </p>
    )
  return isAwaitingFirstVideo(session, bitrates) ? (
    <div data-first-video>
      <FirstVideoSteps heading="No video yet: connect your phone" />
    </div>
  ) : null
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
