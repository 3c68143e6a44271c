/**
 * One live relay: its state, its buttons, and how to connect to it. `relays.js` replaces each `data-part` whose
 * `data-version` differs from that of a newly fetched page.
 */
import { createHash } from 'node:crypto'
import type { Session } from '../api-replies.ts'
import type { Bitrates } from '../charts/bitrate-lines.ts'
import { Icon } from '../icons.tsx'
import { isPlainSegment } from '../plain-path.ts'
import { Clock, TimeLeft } from '../time-text.tsx'
import { ConnectionKit } from './connection-kit.tsx'
import { kitStatesOf } from './kit-steps.tsx'
import { FirstVideoSteps, Ingest, isAwaitingFirstVideo } from './relays-ingest.tsx'
import { SignalPath } from './relays-signal.tsx'
import { newIdempotencyKey } from './relays-start.tsx'

interface SessionProps {
  readonly session: Session
}

interface RelaySessionProps extends SessionProps {
  /** The display name of the session's region. */
  readonly region: string
  /** Of the last ten minutes. */
  readonly bitrates: Bitrates
}

export function RelaySession(props: RelaySessionProps) {
  const { session, bitrates } = props
  const { session_id: id, connection_id: name, connect } = session
  return (
    <article class="card relay" data-session={id} data-name={name} aria-labelledby={`name-${id}`}>
      <div class="relay-status" data-part={`status-${id}`} data-version={statusVersionOf(session)}>
        <Status {...props} />
      </div>
      <div data-part={`kit-${id}`} data-version={kitVersionOf(session)}>
        {connect ? (
          <ConnectionKit sessionId={id} connectionId={name} connect={connect} states={kitStatesOf(session, bitrates)} />
        ) : (
          <p class="kit-pending muted">Addresses will appear here.</p>
        )}
      </div>
    </article>
  )
}

/** `relays.js` builds the same string from `GET /relay/active` and the WebSocket, with the fields in this order. */
const statusVersionOf = (session: Session): string => {
  const { state, reason, grace_ends_at, relay_host_masked, ending_soon, engine, ingest, signal } = session
  const { phone, relay, player } = signal ?? {}
  const parts = [phone, relay, player].flatMap((part) => [part?.level, part?.code, part?.since])
  return [state, reason, grace_ends_at, relay_host_masked, ending_soon, engine, ingest?.publishing, ingest?.since]
    .concat(parts)
    .map((part) => part ?? '')
    .join(' ')
}

const kitVersionOf = ({ connect }: Session): string =>
  // The address of the page about links changes every minute, and is not shown.
  connect
    ? createHash('sha256')
        .update(JSON.stringify({ ...connect, links_url: undefined }))
        .digest('hex')
        .slice(0, 12)
    : ''

function Status({ session, region, bitrates }: RelaySessionProps) {
  const { session_id: id, connection_id: name, state, reason } = session
  const { badge, label } = badgeOf(session, bitrates)
  return (
    <>
      <div class="row apart relay-name">
        <h2 id={`name-${id}`} tabIndex={-1}>
          {name}
        </h2>
        <span class={`badge ${badge}`} data-relay-state={state} data-relay-reason={reason}>
          {label}
        </span>
      </div>
      <p class="muted relay-place">
        <span>
          <Icon name="map-pin" /> {region}
        </span>
        <span>
          <Icon name="clock" /> Started <Clock at={session.created_at} />
        </span>
      </p>
      {/* Of about the same height in each state, so that the buttons do not move under a finger. */}
      <div class="relay-news">
        <SignalPath session={session} />
        <StatusText session={session} />
        <Ingest session={session} bitrates={bitrates} />
      </div>
      <EndingSoon session={session} />
      <div class="row">
        {isStopping(session) ? <KeepRunningForm session={session} /> : null}
        <StopForm session={session} />
        <a class="link" href={`/history/${id}`} id={`details-${id}`}>
          Details<span class="unseen"> of {name}</span>
        </a>
        {isPlainSegment(name) ? (
          <a class="link" href={`/connections/${name}`} id={`connection-${id}`}>
            If it drops<span class="unseen">: what players of {name} see</span>
          </a>
        ) : null}
        {session.ingest?.publishing ? (
          <a class="link" href={`/relays/${id}/links`} id={`links-${id}`} target="_blank" rel="noopener noreferrer">
            How are my links?<span class="unseen"> of {name}, in a new tab</span>
          </a>
        ) : null}
      </div>
    </>
  )
}

const isStopping = ({ state, reason }: Session): boolean => state === 'grace' && reason === 'stop_requested'

interface Badge {
  readonly badge: 'live' | 'good' | 'warn' | 'bad'
  readonly label: string
}

function badgeOf(session: Session, bitrates: Bitrates): Badge {
  if (session.state === 'active') return activeBadgeOf(session, bitrates)
  if (session.state === 'provisioning') return { badge: 'warn', label: 'Starting' }
  if (session.state === 'stopped') return { badge: 'bad', label: 'Stopped' }
  if (isStopping(session)) return { badge: 'warn', label: 'Stopping' }
  return session.reason === 'health_lost'
    ? { badge: 'bad', label: 'Connection lost' }
    : { badge: 'bad', label: 'Shutting down' }
}

/** "Ready" is only what waits for its first video: a stream that is gone needs its streamer. */
function activeBadgeOf(session: Session, bitrates: Bitrates): Badge {
  const { engine, ingest } = session
  if (engine === 'none') return { badge: 'bad', label: 'No SRT engine' }
  if (ingest?.publishing) return { badge: 'live', label: 'Live' }
  return ingest && !isAwaitingFirstVideo(session, bitrates)
    ? { badge: 'warn', label: 'No video' }
    : { badge: 'good', label: 'Ready' }
}

/** The text of an active relay is its ingest's. */
function StatusText({ session }: SessionProps) {
  const { state, reason } = session
  const end = <Deadline at={session.grace_ends_at} />
  if (state === 'active') return null
  if (state === 'provisioning') return <FirstVideoSteps heading="Your relay is starting…" />
  if (state === 'stopped') return <p class="deadline">This relay has stopped. Start a new one.</p>
  if (isStopping(session)) return <p class="deadline warning">This relay stops in {end}.</p>
  return (
    <p class="deadline problem">
      {reason === 'health_lost'
        ? 'We lost contact with this relay and are replacing it. There is nothing to do. Without a replacement it ends in '
        : 'We’re shutting down this relay. It ends in '}
      {end}.
    </p>
  )
}

/** A relay that is stopping anyway has no warning. */
function EndingSoon({ session }: SessionProps) {
  const { state, connection_id: name, ending_soon, ends_at, idle_ends_at: idleEndsAt } = session
  if (state !== 'active' || !ending_soon || !ends_at || !idleEndsAt) return null
  return (
    <p class="warning" data-ending-soon={ends_at}>
      <strong data-announce>
        <span class="unseen">{name}: </span>This relay may end soon.
      </strong>{' '}
      It has run for a long time. From <Clock at={idleEndsAt} /> on it ends when no video has come in for ten minutes,
      and in any case in <Deadline at={ends_at} />. At a good moment, stop it and start it again. Your stream token
      stays the same, but the addresses may change.
    </p>
  )
}

/** `1:45 minutes, at 14:05`. */
const Deadline = ({ at }: { readonly at: string | null }) =>
  at === null ? (
    <>a moment</>
  ) : (
    <>
      <TimeLeft until={at} expiredText="a moment" />, at <Clock at={at} />
    </>
  )

/** A start of the same connection within the grace period takes the stop back. */
const KeepRunningForm = ({ session: { connection_id: name, session_id: id } }: SessionProps) => (
  <form method="post" action="/relays/start">
    <input type="hidden" name="connection_id" value={name} />
    <input type="hidden" name="keep_running" value="yes" />
    <input type="hidden" name="idempotency_key" value={newIdempotencyKey()} />
    <button class="small" type="submit" id={`keep-running-${id}`}>
      Keep running<span class="unseen"> {name}</span>
    </button>
  </form>
)

/** The first stop has a grace period; during it, a second one stops the relay at once. */
const StopForm = ({ session }: SessionProps) => (
  <form method="post" action={`/relays/${session.session_id}/stop`}>
    {isStopping(session) ? <input type="hidden" name="at_once" value="yes" /> : null}
    <button class="second small" type="submit" id={`stop-${session.session_id}`}>
      <Icon name="square" />
      {isStopping(session) ? 'Stop now' : 'Stop'}
      <span class="unseen"> {session.connection_id}</span>
    </button>
  </form>
)
