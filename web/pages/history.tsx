/** The history of an account's relays: a list of the ended ones, and one relay with its transitions. */
import type { EndedSession, Reply, SessionDetail } from '../api-replies.ts'
import type { PageRoute } from '../page.ts'
import { averageKbps, formatBitrate, formatBytes } from '../stream-text.ts'
import { DateTime, formatDuration } from '../time-text.tsx'
import { BitrateChart } from './bitrate-chart.tsx'
import { describeEnd, describeTransition } from './history-texts.ts'
import { ProblemMessage } from './messages.tsx'
import { problemPage } from './problem.tsx'
import { problemOf } from './refusal-text.ts'

type Page = Partial<Reply<'get', '/relay/sessions'>>

export const list: PageRoute = {
  method: 'GET',
  path: '/history',
  caller: 'user',
  handle: async (visit) => {
    const cursor = visit.query.get('cursor')
    const query = cursor ? `?cursor=${encodeURIComponent(cursor)}` : ''
    const response = await visit.callApi<Page>('GET', `/api/v1/relay/sessions${query}`)
    const { sessions, next_cursor } = response.body
    // Only a cursor that no page contained is invalid.
    if (response.status === 400) return problemPage('not_found')
    return {
      name: 'history',
      title: 'Ended relays',
      section: 'history',
      status: sessions ? 200 : response.status,
      page: (
        <>
          <h1>Ended relays</h1>
          <ProblemMessage problem={sessions ? undefined : problemOf(response)} />
          {sessions ? <Sessions sessions={sessions} /> : null}
          <p class="row">
            {next_cursor ? (
              <a class="link" href={`/history?cursor=${encodeURIComponent(next_cursor)}`} rel="next">
                Older relays
              </a>
            ) : null}
            <a class="link" href="/relays">
              Running relays
            </a>
          </p>
        </>
      ),
    }
  },
}

const Sessions = ({ sessions }: { readonly sessions: readonly EndedSession[] }) => (
  <section class="card" aria-label="Ended relays">
    {sessions.length === 0 ? <p>None of your relays has ended yet.</p> : null}
    {sessions.length === 0 ? null : (
      <ol class="entries">
        {sessions.map((session) => (
          <li key={session.session_id} data-ended={session.session_id} data-reason={session.reason}>
            <p>
              <a class="link" href={`/history/${session.session_id}`}>
                {session.connection_id}
                <span class="unseen"> started </span> <DateTime at={session.created_at} />
              </a>
            </p>
            <p>{describeEnd(session)}</p>
            <p class="muted">
              {session.region} · {formatDuration(session.seconds_used)} · {describeReceived(session)}
            </p>
          </li>
        ))}
      </ol>
    )}
  </section>
)

/** `3.4 GB received, 5.1 Mbps on average, 6.0 Mbps at most`. */
function describeReceived(session: EndedSession): string {
  const { bytes_received: bytes, seconds_publishing: seconds, peak_bitrate_kbps: peak } = session
  if (bytes === 0 && seconds === 0 && peak === 0) return 'no video received'
  const average = averageKbps(bytes, seconds)
  return [
    `${formatBytes(bytes)} received`,
    ...(average === undefined ? [] : [`${formatBitrate(average)} on average`]),
    `${formatBitrate(peak)} at most`,
  ].join(', ')
}

export const show: PageRoute = {
  method: 'GET',
  path: '/history/:session_id',
  caller: 'user',
  handle: async (visit) => {
    const path = `/api/v1/relay/sessions/${encodeURIComponent(visit.params.session_id ?? '')}`
    const response = await visit.callApi<Partial<SessionDetail>>('GET', path)
    if (response.status === 404) return problemPage('not_found')
    const { session, transitions, recent_bitrate } = response.body
    const isKnown = session && transitions && recent_bitrate
    return {
      name: 'history-session',
      title: session ? `Relay ${session.connection_id}` : 'Relay',
      section: 'history',
      styles: ['charts.css'],
      status: isKnown ? 200 : response.status,
      page: (
        <>
          <h1>{session ? `Relay ${session.connection_id}` : 'Relay'}</h1>
          <ProblemMessage problem={isKnown ? undefined : problemOf(response)} />
          {isKnown ? <Detail session={session} transitions={transitions} recent_bitrate={recent_bitrate} /> : null}
          <p class="row">
            <a class="link" href="/history">
              Ended relays
            </a>
            <a class="link" href="/relays">
              Running relays
            </a>
          </p>
        </>
      ),
    }
  },
}

const Detail = ({ session, transitions, recent_bitrate: recent }: SessionDetail) => (
  <>
    <section class="card" aria-label="Summary">
      <p>
        <strong data-reason={session.reason}>{describeEnd(session)}</strong>
      </p>
      <dl class="facts">
        <dt>Region</dt>
        <dd>{session.region}</dd>
        <dt>Started</dt>
        <dd>
          <DateTime at={session.created_at} />
        </dd>
        {session.stopped_at ? <dt>Ended</dt> : null}
        {session.stopped_at ? (
          <dd>
            <DateTime at={session.stopped_at} />
          </dd>
        ) : null}
        <dt>Relay time</dt>
        <dd>{formatDuration(session.seconds_used)}</dd>
        <dt>Time with video</dt>
        <dd>{formatDuration(session.seconds_publishing)}</dd>
        <dt>Video</dt>
        <dd>{describeReceived(session)}</dd>
      </dl>
      {recent.length > 1 ? <BitrateChart points={recent} /> : null}
    </section>
    <section class="card" aria-labelledby="transitions">
      <h2 id="transitions">What happened</h2>
      <ol class="entries">
        <li>
          <p>Started by you</p>
          <p class="muted">
            <DateTime at={session.created_at} />
          </p>
        </li>
        {transitions.map((transition) => (
          <li key={`${transition.at} ${transition.to}`} data-transition={`${transition.from} ${transition.to}`}>
            <p>{describeTransition(transition)}</p>
            <p class="muted">
              <DateTime at={transition.at} />
            </p>
          </li>
        ))}
      </ol>
    </section>
  </>
)
