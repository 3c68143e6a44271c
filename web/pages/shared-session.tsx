/** A session that its owner shares by a link: bitrate and stream events, without any name. */
import { expectSuccess } from '../../client/api-error.ts'
import type { SharedSession } from '../api-replies.ts'
import { EveningChart } from '../charts/evening-chart.tsx'
import { toSeries } from '../charts/evening-series.ts'
import type { PageHandler } from '../page.ts'
import { describeEvents } from '../record-event-texts.ts'
import { DateTime, formatDuration, Instant } from '../time-text.tsx'
import { problemPage } from './problem.tsx'

export const show: PageHandler = async (visit) => {
  const path = { token: visit.params.token ?? '' }
  const result = await visit.anonymousApi.GET('/api/v1/shared/{token}', { params: { path } })
  if (result.response.status === 404) return { ...problemPage('not_found'), isUnlisted: true }
  const session = expectSuccess(result, 'The request of a shared session')
  const day = new Date(session.started_at)
  const title = `Stream of ${day.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', timeZone: 'UTC' })}`
  return {
    name: 'shared',
    title,
    isUnlisted: true,
    preview: { description: describe(session) },
    styles: ['charts.css', 'evening.css', 'history.css'],
    scripts: ['evening.js'],
    page: <Shared title={title} session={session} />,
  }
}

/** Until now for a live one. */
const rangeOf = ({ started_at: startedAt, ended_at: endedAt }: SharedSession) => ({
  from: Date.parse(startedAt),
  to: endedAt === null ? Date.now() : Date.parse(endedAt),
})

function describe(session: SharedSession): string {
  const { from, to } = rangeOf(session)
  const duration = formatDuration((to - from) / 1000)
  return session.ended_at === null
    ? `A stream that has been running for ${duration}: its bitrate, and what happened.`
    : `A stream of ${duration}: its bitrate, and what happened.`
}

interface SharedProps {
  readonly title: string
  readonly session: SharedSession
}

const Shared = ({ title, session }: SharedProps) => {
  const series = toSeries(session.points)
  const events = describeEvents(session.stream_events)
  return (
    <>
      <div class="page-head">
        <h1>{title}</h1>
        <p class="lead">
          Started <DateTime at={session.started_at} />
          {session.ended_at === null ? (
            ', and still running'
          ) : (
            <>
              , ended <DateTime at={session.ended_at} />
            </>
          )}
          . This link ends on <DateTime at={session.expires_at} />.
        </p>
      </div>
      <section class="card" aria-labelledby="evening">
        <h2 id="evening">Bitrate</h2>
        {series ? (
          <EveningChart series={series} events={events} range={rangeOf(session)} />
        ) : (
          <p class="muted">There are no points of this stream.</p>
        )}
      </section>
      <section class="card" aria-labelledby="happened">
        <h2 id="happened">What happened</h2>
        {events.length === 0 ? <p class="muted">No video has come in.</p> : null}
        <ol class="timeline">
          {events.map(({ event, at, text, tone }) => (
            <li key={`${at} ${text}`} class={tone} data-event={event.kind}>
              <p>{text}</p>
              <p class="muted">
                <Instant at={at} />
              </p>
            </li>
          ))}
        </ol>
      </section>
    </>
  )
}
