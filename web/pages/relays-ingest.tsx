/** Whether the stream arrives at a live relay. `relays.js` replaces it when its version changes, apart from the relay's state. */
import type { Session } from '../api-replies.ts'
import { formatBitrate } from '../stream-text.ts'
import { TimeAgo } from '../time-text.tsx'

interface SessionProps {
  readonly session: Session
}

export const Ingest = ({ session }: SessionProps) => (
  <div class="ingest" data-part={`ingest-${session.session_id}`} data-version={versionOf(session)}>
    <IngestText session={session} />
  </div>
)

/** `relays.js` builds the same string from `GET /relay/active`, with the fields in this order. */
const versionOf = ({ state, engine, ingest }: Session): string =>
  [state, engine, ingest?.publishing, ingest && Math.round(ingest.bitrate_kbps / 100), ingest?.links, ingest?.since]
    .map((part) => part ?? '')
    .join(' ')

function IngestText({ session }: SessionProps) {
  const { state, engine, ingest } = session
  if (state !== 'active') return null
  if (engine === 'none')
    return (
      <p data-ingest="no-engine">
        This relay cannot forward video: no SRT engine is installed on its machine. If you run this service yourself,
        install the package <code>srt-tools</code> there and start a new relay.
      </p>
    )
  if (ingest?.publishing)
    return (
      <p data-ingest="publishing">
        <strong>
          Receiving {formatBitrate(ingest.bitrate_kbps)}
          {describeLinks(ingest.links)}
        </strong>
      </p>
    )
  return (
    <p data-ingest="none">
      <NoVideo session={session} /> You can start streaming.
    </p>
  )
}

/** A relay that has not stated yet whether a stream comes in has no text here. */
function NoVideo({ session: { active_at, ingest } }: SessionProps) {
  if (!ingest) return null
  const hasNeverPublished = active_at === null || Date.parse(ingest.since) <= Date.parse(active_at)
  if (hasNeverPublished) return <>No video yet.</>
  return (
    <>
      The video stopped <TimeAgo at={ingest.since} />.
    </>
  )
}

/** SRT without SRTLA has no links. */
const describeLinks = (links: number): string => (links === 0 ? '' : ` over ${links} ${links === 1 ? 'link' : 'links'}`)
