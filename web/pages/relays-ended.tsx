/** Relays that ended within the last hour: why, and a button that starts each again. The visitor can hide them. */
import { isUuid } from '../../domain/uuid.ts'
import type { EndedSession } from '../api-replies.ts'
import type { Cookie } from '../cookies.ts'
import { Icon } from '../icons.tsx'
import type { PageHandler, Visit } from '../page.ts'
import { Clock } from '../time-text.tsx'
import { describeEnd } from './history-texts.ts'
import { newIdempotencyKey } from './relays-start.tsx'

const shownMax = 3
const shownSeconds = 3600

const hiddenCookie = 'svc_hidden_relays'
/** More than can end within the time and be shown. */
const hiddenMax = 10

export const hide: PageHandler = (visit) => {
  const id = visit.params.session_id ?? ''
  return { redirectTo: '/relays', cookies: isUuid(id) ? [hidingCookie([...hiddenIds(visit), id])] : [] }
}

const hidingCookie = (ids: readonly string[]): Cookie => ({
  name: hiddenCookie,
  value: ids.slice(-hiddenMax).join('.'),
  path: '/relays',
  maxAgeSeconds: shownSeconds,
  sameSite: 'Strict',
})

const hiddenIds = (visit: Visit): readonly string[] => (visit.cookie(hiddenCookie) ?? '').split('.').filter(isUuid)

/** @param sessions the relays that ended last. @param liveNames the connections that have a live relay. */
export function findRecentlyEnded(
  visit: Visit,
  sessions: readonly EndedSession[],
  liveNames: readonly string[],
): readonly EndedSession[] {
  const hidden = hiddenIds(visit)
  const since = Date.now() - shownSeconds * 1000
  const latest = sessions.filter(
    (session, index) => sessions.findIndex((other) => other.connection_id === session.connection_id) === index,
  )
  return latest
    .filter(({ stopped_at: at }) => at !== null && Date.parse(at) > since)
    .filter((session) => !liveNames.includes(session.connection_id) && !hidden.includes(session.session_id))
    .slice(0, shownMax)
}

interface EndedProps {
  readonly sessions: readonly EndedSession[]
  readonly canStart: boolean
}

/** Rendered without relays too, since `relays.js` replaces this element when its version changes. */
export const RecentlyEnded = ({ sessions, canStart }: EndedProps) => (
  <div
    class="recently-ended"
    data-part="ended"
    data-version={[canStart, ...sessions.map(({ session_id }) => session_id)].join(' ')}
  >
    {sessions.map((session) => (
      <EndedRelay key={session.session_id} session={session} canStart={canStart} />
    ))}
  </div>
)

interface EndedRelayProps {
  readonly session: EndedSession
  readonly canStart: boolean
}

function EndedRelay({ session, canStart }: EndedRelayProps) {
  const { session_id: id, connection_id: name, stopped_at: endedAt, created_at: startedAt, reason } = session
  return (
    <section class="card ended" data-ended={id} data-reason={reason} aria-labelledby={`ended-${id}`}>
      <h2 id={`ended-${id}`} tabIndex={-1}>
        {name} ended at <Clock at={endedAt ?? startedAt} />
      </h2>
      <p>{describeEnd(session)}</p>
      <div class="row">
        {canStart ? <StartAgainForm session={session} /> : null}
        <a class="link" href={`/history/${id}`}>
          Details<span class="unseen"> of {name}</span>
        </a>
        <form method="post" action={`/relays/${id}/hide`}>
          <button class="quiet small" type="submit">
            <Icon name="x" />
            Hide<span class="unseen"> {name}</span>
          </button>
        </form>
      </div>
    </section>
  )
}

const StartAgainForm = ({ session: { connection_id: name, region } }: { readonly session: EndedSession }) => (
  <form method="post" action="/relays/start">
    <input type="hidden" name="connection_id" value={name} />
    <input type="hidden" name="region" value={region} />
    <input type="hidden" name="again" value="yes" />
    <input type="hidden" name="idempotency_key" value={newIdempotencyKey()} />
    <button class="second small" type="submit">
      <Icon name="rotate-ccw" />
      Start again<span class="unseen"> {name}</span>
    </button>
  </form>
)
