/** The play keys of an account, each with the playback addresses of the relays that it opens. */
import type { PlayKey, Session } from '../api-replies.ts'
import { TimeAgo } from '../time-text.tsx'
import { Value } from './connection-kit.tsx'

/** The address of a live relay with one of the keys. Secret, as the key is. */
interface Playback {
  readonly sessionId: string
  readonly connectionId: string
  readonly address: string
}

/** One for each relay that the key opens now. */
export const listPlaybacks = (playKey: PlayKey, sessions: readonly Session[]): readonly Playback[] =>
  sessions.flatMap(({ session_id: sessionId, connection_id: connectionId, connect }) => {
    const isOpened = playKey.connection_id === null || playKey.connection_id === connectionId
    if (!connect || !isOpened) return []
    const address = connect.player_url.replace(/(streamid=play\/live\/)[^&]+/, `$1${playKey.key}`)
    return [{ sessionId, connectionId, address }]
  })

interface PlayKeyListProps {
  readonly keys: readonly PlayKey[]
  readonly sessions: readonly Session[]
}

export const PlayKeyList = ({ keys, sessions }: PlayKeyListProps) => (
  <section class="card" aria-labelledby="keys">
    <h2 id="keys">Play keys</h2>
    <p class="muted">
      Keys are hidden in case you’re sharing your screen. While a relay runs, its playback address with the key is shown
      too.
    </p>
    {keys.length === 0 ? (
      <p>There are no keys yet. Each connection gets one with its first relay.</p>
    ) : (
      <ul class="entries">
        {keys.map((key) => (
          <Key key={key.id} playKey={key} playbacks={listPlaybacks(key, sessions)} />
        ))}
      </ul>
    )}
  </section>
)

const kindTexts: Readonly<Record<PlayKey['kind'], string>> = {
  own: 'Made by you',
  connection: 'In the playback address of the connection',
  app: 'Connected app',
}

const Key = ({ playKey, playbacks }: { readonly playKey: PlayKey; readonly playbacks: readonly Playback[] }) => (
  <li class="play-key" data-play-key={playKey.id} data-kind={playKey.kind}>
    <div class="row apart">
      <div>
        <p class="row">
          <strong>{playKey.name}</strong>
          <span class="badge">{kindTexts[playKey.kind]}</span>
        </p>
        <p class="muted">
          {playKey.connection_id === null ? 'All connections' : `Connection ${playKey.connection_id}`} · created{' '}
          <TimeAgo at={playKey.created_at} /> ·{' '}
          {playKey.last_used_at === null ? (
            'not used yet'
          ) : (
            <>
              last used <TimeAgo at={playKey.last_used_at} />
            </>
          )}
        </p>
      </div>
      <a class="button danger" href={`/account/keys/${playKey.id}/delete`}>
        {playKey.kind === 'connection' ? 'Replace' : 'Delete'}
        <span class="unseen"> the key {playKey.name}</span>
      </a>
    </div>
    <Value id={`key-${playKey.id}`} label={`Key of ${playKey.name}`} value={playKey.key} />
    {playbacks.map((playback) => (
      <PlaybackAddress key={playback.sessionId} playKey={playKey} playback={playback} />
    ))}
  </li>
)

interface PlaybackAddressProps {
  readonly playKey: PlayKey
  readonly playback: Playback
}

/** An account can have several relays, and a key for all of them, so each address says whose it is. */
const PlaybackAddress = ({ playKey, playback }: PlaybackAddressProps) => {
  const { sessionId, connectionId, address } = playback
  const qr = `/account/keys/${playKey.id}/qr/${sessionId}`
  return (
    <Value
      id={`address-${playKey.id}-${sessionId}`}
      label={`Playback address of ${connectionId}`}
      context={`with the key ${playKey.name}`}
      value={address}
    >
      <img
        class="qr scripted"
        data-src={qr}
        width="320"
        height="320"
        alt={`QR code of the playback address of ${connectionId}`}
      />
      <noscript>
        <a class="link" href={qr}>
          Open the QR code
        </a>
      </noscript>
    </Value>
  )
}
