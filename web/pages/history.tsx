/** The history of an account's relays: the ended ones as a table, which is a list of cards on phones. */
import type { EndedSession, Region } from '../api-replies.ts'
import { Icon } from '../icons.tsx'
import type { PageHandler, Visit } from '../page.ts'
import { formatBitrate } from '../stream-text.ts'
import { DateTime, formatDuration } from '../time-text.tsx'
import { describeEnd } from './history-texts.ts'
import { type Problem, ProblemMessage } from './messages.tsx'
import { problemPage } from './problem.tsx'
import { problemOf } from './refusal-text.ts'

/** What names of relays can look like. */
const relayName = /^[\w.-]{1,64}$/

export const list: PageHandler = async (visit) => {
  const relay = visit.query.get('relay')?.trim() ?? ''
  const cursor = visit.query.get('cursor')
  const [result, regions] = await Promise.all([fetchEnded(visit, relay, cursor), fetchRegions(visit)])
  // Only a cursor that no page contained is invalid.
  const { status } = result.response
  if (status === 400) return problemPage('not_found')
  const { sessions, next_cursor: next = null } = result.data ?? {}
  return {
    name: 'history',
    title: 'History',
    section: 'history',
    styles: ['history.css'],
    status: sessions ? 200 : status,
    page: (
      <History
        problem={sessions ? undefined : problemOf(result)}
        sessions={sessions}
        regions={regions}
        relay={relay}
        next={next}
      />
    ),
  }
}

/** No relay has a name that the API refuses. */
const fetchEnded = async (visit: Visit, relay: string, cursor: string | null) => {
  const none = { sessions: [], next_cursor: null }
  const isName = relay === '' || relayName.test(relay)
  const query = isName ? { connection_id: relay, cursor: cursor ?? '' } : { limit: 1 }
  const result = await visit.api.GET('/api/v1/relay/sessions', { params: { query } })
  return isName || !result.response.ok ? result : { ...result, data: none }
}

/** Without names of the regions when the API does not reply with them. */
export const fetchRegions = async (visit: Visit): Promise<readonly Region[]> =>
  (await visit.api.GET('/api/v1/relay/manifest')).data?.regions ?? []

export const nameOfRegion = (regions: readonly Region[], region: string): string =>
  regions.find(({ region: name }) => name === region)?.display_name ?? region

interface HistoryProps {
  readonly problem: Problem | undefined
  /** Undefined when the API did not reply with them. */
  readonly sessions: readonly EndedSession[] | undefined
  readonly regions: readonly Region[]
  /** The name of the relay that is shown, or an empty string for all. */
  readonly relay: string
  readonly next: string | null
}

const History = ({ problem, sessions, regions, relay, next }: HistoryProps) => (
  <>
    <div class="page-head">
      <h1>History</h1>
      <Filter relay={relay} />
      <p class="lead">Your relays that have ended, and why.</p>
    </div>
    <ProblemMessage problem={problem} />
    {sessions?.length === 0 ? <NoSessions relay={relay} /> : null}
    {sessions && sessions.length > 0 ? <Sessions sessions={sessions} regions={regions} /> : null}
    {next ? (
      <p>
        <a
          class="link"
          href={`/history?${new URLSearchParams({ ...(relay ? { relay } : {}), cursor: next })}`}
          rel="next"
        >
          Older relays
        </a>
      </p>
    ) : null}
  </>
)

const Filter = ({ relay }: { readonly relay: string }) => (
  <form class="row history-filter" method="get" action="/history">
    <label for="relay">Relay</label>
    <input id="relay" name="relay" value={relay} maxLength={64} autocomplete="off" autocapitalize="none" />
    <button class="second" type="submit">
      Show
    </button>
    {relay ? (
      <a class="link" href="/history">
        Show all
      </a>
    ) : null}
  </form>
)

const NoSessions = ({ relay }: { readonly relay: string }) => (
  <section class="card empty" aria-labelledby="no-sessions">
    <Icon name="clock" />
    <h2 id="no-sessions">{relay ? `No relay named “${relay}” has ended` : 'No relay has ended yet'}</h2>
    <p>Each relay is listed here once it has ended, with its times, its bitrate, and why it ended.</p>
    <p>
      <a class="link" href="/relays">
        Running relays
      </a>
    </p>
  </section>
)

interface SessionsProps {
  readonly sessions: readonly EndedSession[]
  readonly regions: readonly Region[]
}

/** A screen reader reads the columns' names on phones too, where `data-label` shows them. */
const Sessions = ({ sessions, regions }: SessionsProps) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard can then scroll it
  <section class="card flush table-scroll" aria-label="Ended relays" tabIndex={0}>
    <table class="table as-cards history">
      <thead>
        <tr>
          <th scope="col">Relay</th>
          <th scope="col">Region</th>
          <th scope="col">Started</th>
          <th scope="col">Ended</th>
          <th scope="col">Duration</th>
          <th scope="col">Average</th>
          <th scope="col">Peak</th>
          <th scope="col">Why it ended</th>
        </tr>
      </thead>
      <tbody>
        {sessions.map((session) => (
          <SessionRow key={session.session_id} session={session} region={nameOfRegion(regions, session.region)} />
        ))}
      </tbody>
    </table>
  </section>
)

const SessionRow = ({ session, region }: { readonly session: EndedSession; readonly region: string }) => {
  const { session_id: id, connection_id: name, created_at: startedAt, stopped_at: endedAt } = session
  const { average_bitrate_kbps: average } = session
  return (
    <tr data-ended={id} data-reason={session.reason}>
      <th scope="row">
        <a class="link" href={`/history/${id}`}>
          {name}
        </a>
      </th>
      <td data-label="Region">{region}</td>
      <td data-label="Started">
        <DateTime at={startedAt} />
      </td>
      <td data-label="Ended">{endedAt ? <DateTime at={endedAt} /> : '–'}</td>
      <td data-label="Duration">{formatDuration(durationSecondsOf(session))}</td>
      <td data-label="Average">{average === null ? '–' : formatBitrate(average)}</td>
      <td data-label="Peak">{session.peak_bitrate_kbps === 0 ? '–' : formatBitrate(session.peak_bitrate_kbps)}</td>
      <td class="why">{describeEnd(session)}</td>
    </tr>
  )
}

/** From the start to the end, or until now. */
export const durationSecondsOf = ({ created_at: startedAt, stopped_at: endedAt }: EndedSession): number =>
  ((endedAt === null ? Date.now() : Date.parse(endedAt)) - Date.parse(startedAt)) / 1000
