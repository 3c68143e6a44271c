/** What the relay of a session received. */
import { BitrateChart } from '../charts/bitrate-chart.tsx'
import { formatBitrate, formatBytes } from '../stream-text.ts'
import { formatDuration, TimeAgo } from '../time-text.tsx'
import { Facts } from './facts.tsx'
import type { OperatorSessionDetail } from './operator-replies.ts'

type Ingest = NonNullable<OperatorSessionDetail['session']['ingest_summary']>

interface SessionIngestProps {
  readonly session: OperatorSessionDetail['session']
  readonly bitrates: OperatorSessionDetail['recent_bitrate']
}

export const SessionIngest = ({ session, bitrates }: SessionIngestProps) => {
  const ingest = session.ingest_summary
  return (
    <section class="card" aria-labelledby="ingest" data-ingest={ingest === null ? 'none' : String(ingest.publishing)}>
      <h2 id="ingest">Video</h2>
      {ingest === null ? (
        <p class="muted">The relay has not reported yet.</p>
      ) : (
        <>
          {bitrates.length > 1 ? <BitrateChart bitrates={bitrates} isLive={session.state !== 'stopped'} /> : null}
          <IngestFacts ingest={ingest} />
        </>
      )}
    </section>
  )
}

const IngestFacts = ({ ingest }: { readonly ingest: Ingest }) => {
  const { average_bitrate_kbps: average } = ingest
  return (
    <Facts
      values={{
        'Last report': (
          <>
            {ingest.publishing ? 'publishing' : 'not publishing'}, <TimeAgo at={ingest.reported_at} />
          </>
        ),
        Bitrate: [
          `${formatBitrate(ingest.bitrate_kbps)} over ${ingest.links} ${ingest.links === 1 ? 'link' : 'links'}`,
          ...(average === null ? [] : [`${formatBitrate(average)} on average`]),
          `${formatBitrate(ingest.peak_bitrate_kbps)} at most`,
        ].join(', '),
        'Round trip, loss, repeats': [
          ingest.rtt_ms === null ? 'unknown' : `${ingest.rtt_ms} ms`,
          ...[ingest.loss_pct, ingest.repeat_pct].map((share) => (share === null ? 'unknown' : `${share} %`)),
        ].join(', '),
        Received: `${formatBytes(ingest.bytes_received)} in ${formatDuration(ingest.seconds_publishing)}`,
        Players: ingest.players,
        Engine: ingest.engine ?? 'unknown',
      }}
    />
  )
}
