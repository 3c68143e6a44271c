/** One relay of an account, running or ended: its figures, its stream record, and a link that shares it. */

import type { Region, SessionDetail, StreamRecord } from '../api-replies.ts'
import { Icon } from '../icons.tsx'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { describeEvents } from '../record-event-texts.ts'
import { formatBitrate, formatBytes } from '../stream-text.ts'
import { DateTime, formatDuration } from '../time-text.tsx'
import { durationSecondsOf, fetchRegions, nameOfRegion } from './history.tsx'
import { Evening, EventList } from './history-record.tsx'
import { ShareCard } from './history-share-card.tsx'
import { describeEnd } from './history-texts.ts'
import { NoticeMessage, type Problem, ProblemMessage } from './messages.tsx'
import type { NotificationOverview } from './notification-texts.ts'
import { problemPage } from './problem.tsx'
import { problemOf } from './refusal-text.ts'
import { StreamNoticeOffer } from './stream-notice-offer.tsx'

export const show: PageHandler = (visit) => sessionPage(visit)

/** What an act on the page has led to. */
interface Outcome {
  /** The address of a share link that was just made. */
  readonly sharedUrl?: string
  readonly problem?: Problem
  readonly status?: number
}

/** By the `done` parameter. It may be forged, so other values show nothing. */
const notices: ReadonlyMap<string, string> = new Map([['share_revoked', 'The link has ended.']])

/** @param outcome undefined for a visit of the page. Only then its address shows the page again, which refreshes it. */
export async function sessionPage(visit: Visit, outcome?: Outcome): Promise<PageResult> {
  const path = { id: visit.params.session_id ?? '' }
  const [result, record, regions, notifications] = await Promise.all([
    visit.api.GET('/api/v1/relay/sessions/{id}', { params: { path } }),
    visit.api.GET('/api/v1/relay/sessions/{id}/record', { params: { path } }),
    fetchRegions(visit),
    visit.api.GET('/api/v1/notifications'),
  ])
  const { status } = result.response
  if (status === 404) return problemPage('not_found')
  const detail = result.data
  const title = detail ? `Relay ${detail.session.connection_id}` : 'Relay'
  const done = visit.query.get('done') ?? ''
  const notice = notices.get(done)
  const isRefreshed = outcome === undefined && detail?.session.stopped_at === null
  return {
    name: 'history-session',
    title,
    section: 'history',
    styles: ['charts.css', 'evening.css', 'history.css'],
    scripts: ['connection-kit.js', 'evening.js', ...(isRefreshed ? ['refresh.js'] : [])],
    status: detail ? (outcome?.status ?? 200) : status,
    page: detail ? (
      <>
        <ProblemMessage problem={outcome?.problem ?? (record.data ? undefined : problemOf(record))} />
        {notice ? <NoticeMessage notice={{ code: done, text: notice }} /> : null}
        <Detail
          detail={detail}
          record={record.data}
          regions={regions}
          notifications={notifications.data}
          sharedUrl={outcome?.sharedUrl}
          query={visit.query}
        />
      </>
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
  /** Undefined when the API did not reply with it. */
  readonly record: StreamRecord | undefined
  readonly regions: readonly Region[]
  readonly notifications: NotificationOverview | undefined
  readonly sharedUrl: string | undefined
  readonly query: URLSearchParams
}

const Detail = ({ detail, record, regions, notifications, sharedUrl, query }: DetailProps) => {
  const { session } = detail
  const path = `/history/${session.session_id}`
  const events = describeEvents(record?.events ?? [])
  return (
    <>
      <Head session={session} regions={regions} />
      <Tiles session={session} />
      <section class="card" aria-labelledby="evening">
        <div class="row apart" data-refreshes="evening-head">
          <h2 id="evening">The stream</h2>
          {record && record.points.length > 0 ? (
            <a class="button second" href={`${path}/record.csv`} download>
              <Icon name="download" />
              Download CSV
            </a>
          ) : null}
        </div>
        {record ? (
          <Evening record={record} isRunning={session.stopped_at === null} events={events} query={query} path={path} />
        ) : null}
      </section>
      <div class="grid-2 history-parts">
        <section class="card" aria-labelledby="happened">
          <h2 id="happened">What happened</h2>
          <EventList events={events} path={path} />
          <StreamNoticeOffer overview={notifications} />
        </section>
        <ShareCard link={detail.share_link} url={sharedUrl} path={path} />
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

type HeadProps = Pick<DetailProps, 'regions'> & Pick<SessionDetail, 'session'>

const Head = ({ session, regions }: HeadProps) => (
  <div class="page-head">
    <h1>Relay {session.connection_id}</h1>
    <a class="link" href={`/history?relay=${encodeURIComponent(session.connection_id)}`}>
      History of {session.connection_id}
    </a>
    <p class="lead" data-refreshes="state" data-final={session.stopped_at !== null}>
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
)

const Tiles = ({ session }: Pick<SessionDetail, 'session'>) => {
  const { seconds_used: used, seconds_publishing: withVideo, bytes_received: bytes } = session
  const { average_bitrate_kbps: average, peak_bitrate_kbps: peak } = session
  return (
    <dl class="tiles" data-refreshes="tiles">
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
