/** One relay of an account, running or ended: its figures, its bitrate, and what happened. */

import { formatAway } from '../../domain/relay/end-texts.ts'
import type { Region, SessionDetail, SessionStreamEvent, SessionTransition } from '../api-replies.ts'
import { BitrateChart } from '../charts/bitrate-chart.tsx'
import { hasLine } from '../charts/sparkline.tsx'
import type { PageHandler } from '../page.ts'
import { describeStreamEvent, toneOfStreamEvent } from '../stream-event-texts.ts'
import { formatBitrate, formatBytes } from '../stream-text.ts'
import { DateTime, formatDuration, Instant } from '../time-text.tsx'
import { durationSecondsOf, fetchRegions, nameOfRegion } from './history.tsx'
import { describeEnd, describeTransition, toneOfTransition } from './history-texts.ts'
import { ProblemMessage } from './messages.tsx'
import type { NotificationOverview } from './notification-texts.ts'
import { problemPage } from './problem.tsx'
import { problemOf } from './refusal-text.ts'
import { StreamNoticeOffer } from './stream-notice-offer.tsx'

export const show: PageHandler = async (visit) => {
  const path = { id: visit.params.session_id ?? '' }
  const [result, regions, notifications] = await Promise.all([
    visit.api.GET('/api/v1/relay/sessions/{id}', { params: { path } }),
    fetchRegions(visit),
    visit.api.GET('/api/v1/notifications'),
  ])
  const { status } = result.response
  if (status === 404) return problemPage('not_found')
  const detail = result.data
  const title = detail ? `Relay ${detail.session.connection_id}` : 'Relay'
  return {
    name: 'history-session',
    title,
    section: 'history',
    styles: ['charts.css', 'history.css'],
    status: detail ? 200 : status,
    page: detail ? (
      <Detail detail={detail} regions={regions} notifications={notifications.data} />
    ) : (
      <>
        <h1>{title}</h1>
        <ProblemMessage problem={problemOf(result)} />
      </>
    ),
  }
}

interface DetailProps {
  readonly detail: SessionDetail
  readonly regions: readonly Region[]
  readonly notifications: NotificationOverview | undefined
}

const Detail = ({ detail, regions, notifications }: DetailProps) => {
  const { session, replacements, recent_bitrate: bitrates } = detail
  const name = session.connection_id
  return (
    <>
      <div class="page-head">
        <h1>Relay {name}</h1>
        <a class="link" href={`/history?relay=${encodeURIComponent(name)}`}>
          History of {name}
        </a>
        <p class="lead">
          <strong data-reason={session.reason}>{describeEnd(session)}</strong> {nameOfRegion(regions, session.region)},
          started <DateTime at={session.created_at} />
          {session.stopped_at ? (
            <>
              , ended <DateTime at={session.stopped_at} />
            </>
          ) : null}
          .
        </p>
      </div>
      <Tiles session={session} />
      <div class="grid-2 history-parts">
        <section class="card" aria-labelledby="bitrate">
          <h2 id="bitrate">Bitrate</h2>
          {hasLine(bitrates) ? (
            <BitrateChart bitrates={bitrates} isLive={session.state !== 'stopped'} />
          ) : (
            <p class="muted">No video came in during the last ten minutes of this relay.</p>
          )}
        </section>
        <section class="card" aria-labelledby="transitions">
          <h2 id="transitions">What happened</h2>
          {replacements.map((replacement) => (
            <p key={replacement.at} data-replacement={replacement.cause}>
              The relay failed at <Instant at={replacement.at} /> and was replaced. Your stream was away for{' '}
              {formatAway(replacement.away_seconds)}.
            </p>
          ))}
          <ol class="timeline">
            <li>
              <p>Started by you</p>
              <p class="muted">
                <Instant at={session.created_at} />
              </p>
            </li>
            {listHappenings(detail).map((happening) =>
              'kind' in happening ? (
                <StreamEvent key={`${happening.at} ${happening.kind}`} event={happening} />
              ) : (
                <Transition key={`${happening.at} ${happening.to}`} transition={happening} />
              ),
            )}
          </ol>
          <StreamNoticeOffer overview={notifications} />
        </section>
      </div>
      <p class="row">
        <a class="link" href="/history">
          Ended relays
        </a>
        <a class="link" href="/relays">
          Running relays
        </a>
      </p>
    </>
  )
}

/** Transitions and stream events in the order of their times. */
const listHappenings = ({ transitions, stream_events: events }: SessionDetail) =>
  [...transitions, ...events].toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))

const StreamEvent = ({ event }: { readonly event: SessionStreamEvent }) => (
  <li class={toneOfStreamEvent(event)} data-stream-event={event.kind}>
    <p>{describeStreamEvent(event)}</p>
    <p class="muted">
      <Instant at={event.at} />
    </p>
  </li>
)

const Transition = ({ transition }: { readonly transition: SessionTransition }) => (
  <li class={toneOfTransition(transition)} data-transition={`${transition.from} ${transition.to}`}>
    <p>{describeTransition(transition)}</p>
    {transition.public_reason ? <p data-public-reason>Support: {transition.public_reason}</p> : null}
    <p class="muted">
      <Instant at={transition.at} />
    </p>
  </li>
)

const Tiles = ({ session }: Pick<SessionDetail, 'session'>) => {
  const { seconds_used: used, seconds_publishing: withVideo, bytes_received: bytes } = session
  const { average_bitrate_kbps: average, peak_bitrate_kbps: peak } = session
  return (
    <dl class="tiles">
      <Tile label="Duration" value={formatDuration(durationSecondsOf(session))} />
      <Tile label="With video" value={formatDuration(withVideo)} />
      <Tile label="Average bitrate" value={average === null ? '–' : formatBitrate(average)} />
      <Tile label="Peak bitrate" value={peak === 0 ? '–' : formatBitrate(peak)} />
      <Tile label="Received" value={formatBytes(bytes)} />
      <Tile label="Relay time charged" value={formatDuration(used)} />
    </dl>
  )
}

const Tile = ({ label, value }: { readonly label: string; readonly value: string }) => (
  <div class="tile">
    <dt class="tile-label">{label}</dt>
    <dd class="tile-value">{value}</dd>
  </div>
)
