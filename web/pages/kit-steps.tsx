/** The two steps of the connection kit, phone and OBS: each is open until the service sees what it leads to. */
import type { ComponentChildren } from 'preact'
import type { Session } from '../api-replies.ts'
import type { Bitrates } from '../charts/bitrate-lines.ts'
import { Icon } from '../icons.tsx'
import { isAwaitingFirstVideo } from './relays-ingest.tsx'

/** `later`: nothing is to be done, since the relay does not run, or is not known to. */
export type KitState = 'later' | 'open' | 'done'

export interface KitStates {
  readonly phone: KitState
  readonly obs: KitState
}

/** The codes of a player that is there, whether or not it plays. */
const connectedCodes: readonly string[] = ['playing', 'waiting', 'not_reading', 'some_not_reading', 'players_full']

export function kitStatesOf(session: Session, bitrates: Bitrates): KitStates {
  const { state, engine, signal } = session
  if (state !== 'active' || engine === 'none') return { phone: 'later', obs: 'later' }
  const isAwaited = isAwaitingFirstVideo(session, bitrates)
  const player = signal?.player.code ?? 'unknown'
  // Before its first report with a stream nothing is known of a player.
  const obs = connectedCodes.includes(player) ? 'done' : player === 'unknown' && !isAwaited ? 'later' : 'open'
  return { phone: isAwaited ? 'open' : 'done', obs }
}

interface KitStepProps {
  /** Of the element; the addresses of the checklist name it too. */
  readonly id: string
  readonly name: keyof KitStates | 'more'
  readonly title: string
  /** What is shown beside the title, for screen readers. */
  readonly connectionId: string
  readonly state?: KitState
  readonly children: ComponentChildren
}

/** `relays.js` opens and closes it with its state, unless the visitor has done so, and replaces its tick. */
export const KitStep = ({ id, name, title, connectionId, state, children }: KitStepProps) => (
  <details class="kit" id={id} data-kit={name} open={state === 'open'}>
    <summary>
      <h3>
        {title}
        <span class="unseen"> of {connectionId}</span>
      </h3>
      {state === undefined ? null : (
        <span class="kit-tick" data-part={`tick-${id}`} data-version={state} data-kit-state={state}>
          {state === 'done' ? (
            <>
              <Icon name="circle-check" /> Connected
            </>
          ) : null}
        </span>
      )}
    </summary>
    {children}
  </details>
)
