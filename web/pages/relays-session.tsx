/**
 * One live relay: how it is, what can be done with it, and how to connect to it. Marked `data-part` is what the page's script
 * exchanges by itself, and `data-version` tells it when.
 */
import { createHash } from 'node:crypto'
import type { Addresses } from '../connection-kit.ts'
import { formatCountdown, TimeAgo } from '../time-text.tsx'
import { ConnectionKit } from './connection-kit.tsx'
import { newKey } from './relays-start.tsx'

/** A live session, as the api tells its owner. */
export interface Session {
  readonly session_id: string
  readonly connection_id: string
  readonly state: 'provisioning' | 'active' | 'grace' | 'stopped'
  readonly reason: string
  readonly region: string
  readonly relay_host_masked: string | null
  readonly created_at: string
  readonly active_at: string | null
  readonly grace_ends_at: string | null
  readonly connect?: Addresses | null
}

interface Shown {
  readonly session: Session
  /** Its name for people. */
  readonly region: string
}

export function RelaySession({ session, region }: Shown) {
  const { session_id: id, connection_id: name } = session
  return (
    <article class="card relay" data-session={id} data-name={name} aria-labelledby={`name-${id}`}>
      <div class="relay-now" data-part={`now-${id}`} data-version={versionOf(session)}>
        <Now session={session} region={region} />
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
          <p class="kit-awaited muted">Addresses come with the relay.</p>
        )}
      </div>
    </article>
  )
}

/** The script compares it with what `GET /relay/active` tells of the session, in this order. */
const versionOf = ({ state, reason, grace_ends_at, relay_host_masked }: Session): string =>
  [state, reason, grace_ends_at, relay_host_masked].map((part) => part ?? '').join(' ')

const kitVersionOf = ({ connect }: Session): string =>
  connect ? createHash('sha256').update(JSON.stringify(connect)).digest('hex').slice(0, 12) : ''

function Now({ session, region }: Shown) {
  const { session_id: id, connection_id: name } = session
  const { badge, label } = badgeOf(session)
  return (
    <>
      <div class="row apart relay-name">
        <h2 id={`name-${id}`} tabIndex={-1}>
          {name}
        </h2>
        <span class={`badge ${badge}`} data-state>
          {label}
        </span>
      </div>
      <p>
        <Says session={session} />
      </p>
      <p class="muted">
        {region} · started <TimeAgo at={session.created_at} />
      </p>
      <div class="row">
        {isStopping(session) ? <GoOn name={name} sessionId={id} /> : null}
        <Stop session={session} />
      </div>
    </>
  )
}

const isStopping = ({ state, reason }: Session): boolean => state === 'grace' && reason === 'stop_requested'

function badgeOf(session: Session): { badge: 'good' | 'warn' | 'bad'; label: string } {
  if (session.state === 'active') return { badge: 'good', label: 'Ready' }
  if (session.state === 'provisioning') return { badge: 'warn', label: 'Starting' }
  if (session.state === 'stopped') return { badge: 'bad', label: 'Stopped' }
  return isStopping(session) ? { badge: 'warn', label: 'Stopping' } : { badge: 'bad', label: 'Lost contact' }
}

function Says({ session }: { readonly session: Session }) {
  const left = <Countdown until={session.grace_ends_at} />
  if (session.state === 'active') return <>Stream whenever you like.</>
  if (session.state === 'provisioning') return <>Getting a relay …</>
  if (session.state === 'stopped') return <>It is gone. Start another one below.</>
  if (isStopping(session)) return <>It still runs: {left} left.</>
  if (session.reason === 'health_lost') return <>It may come back: {left} left.</>
  return <>We took it off: {left} left.</>
}

/** Not read out every second; the script lets it run. */
function Countdown({ until }: { readonly until: string | null }) {
  const seconds = until === null ? 0 : (Date.parse(until) - Date.now()) / 1000
  return (
    <span class="countdown" role="timer" data-seconds-left={Math.max(0, Math.round(seconds))}>
      {formatCountdown(seconds)}
    </span>
  )
}

/** Starting its connection again within the grace of a stop gives the same relay back. */
const GoOn = ({ name, sessionId }: { readonly name: string; readonly sessionId: string }) => (
  <form method="post" action="/relays/start">
    <input type="hidden" name="connection_id" value={name} />
    <input type="hidden" name="idempotency_key" value={newKey()} />
    <button type="submit" id={`go-on-${sessionId}`}>
      Go on<span class="unseen"> with {name}</span>
    </button>
  </form>
)

/** A relay that runs is given a moment before it ends, and who means it stops it again at once. */
const Stop = ({ session }: { readonly session: Session }) => (
  <form method="post" action={`/relays/${session.session_id}/stop`}>
    {isStopping(session) ? <input type="hidden" name="at_once" value="yes" /> : null}
    <button class="danger" type="submit" id={`stop-${session.session_id}`}>
      {isStopping(session) ? 'Stop now' : 'Stop'}
      <span class="unseen"> {session.connection_id}</span>
    </button>
  </form>
)
