/** The signal path of a live relay: phone, relay and OBS, each with what is right or wrong with it. */
import type { Session } from '../api-replies.ts'
import { Icon, type IconName } from '../icons.tsx'
import { levelTexts, phoneTextOf, playerTextOf, relayTextOf, type Signal, type SignalText } from '../signal-texts.ts'
import { formatBitrate, formatLinksOf, formatRepeats } from '../stream-text.ts'
import { Clock, TimeAgo } from '../time-text.tsx'

interface SignalPathProps {
  readonly session: Session
}

/** Each level has a shape and a word of its own beside its colour. */
const levelIcons: Readonly<Record<Signal['phone']['level'], IconName>> = {
  good: 'circle-check',
  weak: 'triangle-alert',
  bad: 'circle-x',
  unknown: 'circle-dashed',
}

export function SignalPath({ session }: SignalPathProps) {
  const { signal, ingest } = session
  if (!signal) return null
  const { phone, relay, player } = signal
  return (
    <ol class="signal" aria-label={`Signal path of ${session.connection_id}`}>
      <Part name="Phone" part={phone} text={phoneTextOf(phone)} session={session}>
        {ingest?.publishing ? <span data-repeats>{formatRepeats(ingest.repeat_pct)}</span> : null}
      </Part>
      <Part name="Relay" part={relay} text={relayTextOf(relay)} session={session} />
      <Part name="OBS" part={player} text={playerTextOf(player)} session={session} />
    </ol>
  )
}

interface PartProps extends SignalPathProps {
  readonly name: string
  readonly part: Signal['phone'] | Signal['relay'] | Signal['player']
  readonly text: SignalText
  readonly children?: preact.ComponentChildren
}

const Part = ({ name, part: { level, code, since }, text, session: { ingest }, children }: PartProps) => (
  <li class={`signal-${level}`} data-signal={name.toLowerCase()} data-code={code}>
    <span class="signal-name">
      <Icon name={levelIcons[level]} /> {name}
    </span>
    <span class="signal-text">
      {text.map((piece) => (typeof piece === 'string' ? piece : <Piece piece={piece} since={since} ingest={ingest} />))}
      {children}
    </span>
    <span class="signal-level">{levelTexts[level]}</span>
  </li>
)

interface PieceProps {
  readonly piece: Exclude<SignalText[number], string>
  readonly since: string
  readonly ingest: Session['ingest']
}

function Piece({ piece, since, ingest }: PieceProps) {
  if ('time' in piece) return piece.time === 'clock' ? <Clock at={since} /> : <TimeAgo at={since} />
  switch (piece.figure) {
    case 'bitrate':
      return <strong data-bitrate>{formatBitrate(ingest?.bitrate_kbps ?? 0)}</strong>
    case 'links':
      return <span data-links>{formatLinksOf(ingest)}</span>
    case 'loss':
      return <strong data-loss>{Math.round(ingest?.loss_pct ?? 0)}</strong>
  }
}
