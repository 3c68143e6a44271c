/**
 * One live relay: its state, its buttons, and how to connect to it. `relays.js` replaces each `data-part` whose
 * `data-version` differs from that of a newly fetched page.
 */
import { createHash } from 'node:crypto'
import type { Session } from '../api-replies.ts'
import { DateTime, formatCountdown, TimeAgo } from '../time-text.tsx'
import { ConnectionKit } from './connection-kit.tsx'
import { Ingest } from './relays-ingest.tsx'
import { newIdempotencyKey } from './relays-start.tsx'

interface SessionProps {
  readonly session: Session
}

interface RegionProps {
  /** The display name of the session's region. */
  readonly region: string
}

export function RelaySession({ session, region }: SessionProps & RegionProps) {
  const { session_id: id, connection_id: name } = session
  return (
    <article class="card relay" data-session={id} data-name={name} aria-labelledby={`name-${id}`}>
      <div class="relay-status" data-part={`status-${id}`} data-version={statusVersionOf(session)}>
        <Status session={session} region={region} />
      </div>
      <div data-part={`kit-${id}`} data-version={kitVersionOf(session)}>
        {session.connect ? (
          <details class="kit">
            <summary>
              <h3>Connect your software</h3>
            </summary>
            <ConnectionKit sessionId={id} connectionId={name} connect={session.connect} />
          </details>
        ) : (
          <p class="kit-pending muted">Addresses will appear here.</p>
        )}
      </div>
    </article>
  )
}

/** `relays.js` builds the same string from `GET /relay/active`, with the fields in this order. */
const statusVersionOf = ({ state, reason, grace_ends_at, relay_host_masked, ending_soon }: Session): string =>
  [state, reason, grace_ends_at, relay_host_masked, ending_soon].map((part) => part ?? '').join(' ')

const kitVersionOf = ({ connect }: Session): string =>
  connect ? createHash('sha256').update(JSON.stringify(connect)).digest('hex').slice(0, 12) : ''

function Status({ session, region }: SessionProps & RegionProps) {
  const { session_id: id, connection_id: name, state, reason } = session
  const { badge, label } = badgeOf(session)
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
      {state === 'active' ? null : (
        <p>
          <StatusText session={session} />
        </p>
      )}
      <Ingest session={session} />
      <EndingSoon session={session} />
      <p class="muted">
        {region} · started <TimeAgo at={session.created_at} /> ·{' '}
        <a class="link" href={`/history/${id}`} id={`details-${id}`}>
          Details<span class="unseen"> of {name}</span>
        </a>
      </p>
      <div class="row">
        {isStopping(session) ? <KeepRunningForm session={session} /> : null}
        <StopForm session={session} />
      </div>
    </>
  )
}

const isStopping = ({ state, reason }: Session): boolean => state === 'grace' && reason === 'stop_requested'

function badgeOf(session: Session): { badge: 'good' | 'warn' | 'bad'; label: string } {
  if (session.state === 'active') return { badge: 'good', label: 'Ready' }
  if (session.state === 'provisioning') return { badge: 'warn', label: 'Starting' }
  if (session.state === 'stopped') return { badge: 'bad', label: 'Stopped' }
  if (isStopping(session)) return { badge: 'warn', label: 'Stopping' }
  return session.reason === 'health_lost'
    ? { badge: 'bad', label: 'Connection lost' }
    : { badge: 'bad', label: 'Shutting down' }
}

/** The text of an active relay is its ingest's. */
function StatusText({ session }: SessionProps) {
  const { state, reason } = session
  const timeLeft = <Countdown until={session.grace_ends_at} />
  if (state === 'provisioning') return <>Your relay is starting…</>
  if (state === 'stopped') return <>This relay has stopped. Start a new one below.</>
  if (isStopping(session)) return <>This relay stops in {timeLeft}.</>
  if (reason === 'health_lost') return <>We lost contact with this relay. It ends in {timeLeft} unless it reconnects.</>
  return <>We’re shutting down this relay. It ends in {timeLeft}.</>
}

/** A relay that is stopping anyway has no warning. `relays.js` shows the time in the visitor's time zone. */
function EndingSoon({ session: { state, connection_id: name, ending_soon, ends_at } }: SessionProps) {
  if (state !== 'active' || !ending_soon || !ends_at) return null
  return (
    <p class="warning" data-ending-soon={ends_at}>
      <strong data-announce>
        <span class="unseen">{name}: </span>This relay ends soon.
      </strong>{' '}
      It has run for almost the longest duration of a relay, so it ends at <DateTime at={ends_at} />, and before that as
      soon as no video comes in. At a good moment, stop it and start it again. Your stream token stays the same, but the
      addresses may change.
    </p>
  )
}

/** `relays.js` updates it every second. `role="timer"` is not announced by screen readers. */
function Countdown({ until }: { readonly until: string | null }) {
  const seconds = until === null ? 0 : (Date.parse(until) - Date.now()) / 1000
  return (
    <span class="countdown" role="timer" data-seconds-left={Math.max(0, Math.round(seconds))}>
      {formatCountdown(seconds)}
    </span>
  )
}

/** A start of the same connection within the grace period takes the stop back. */
const KeepRunningForm = ({ session: { connection_id: name, session_id: id } }: SessionProps) => (
  <form method="post" action="/relays/start">
    <input type="hidden" name="connection_id" value={name} />
    <input type="hidden" name="idempotency_key" value={newIdempotencyKey()} />
    <button type="submit" id={`keep-running-${id}`}>
      Keep running<span class="unseen"> {name}</span>
    </button>
  </form>
)

/** The first stop has a grace period; during it, a second one stops the relay at once. */
const StopForm = ({ session }: SessionProps) => (
  <form method="post" action={`/relays/${session.session_id}/stop`}>
    {isStopping(session) ? <input type="hidden" name="at_once" value="yes" /> : null}
    <button class="danger" type="submit" id={`stop-${session.session_id}`}>
      {isStopping(session) ? 'Stop now' : 'Stop'}
      <span class="unseen"> {session.connection_id}</span>
    </button>
  </form>
)
