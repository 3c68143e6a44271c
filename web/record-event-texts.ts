/** What happened in a session, in sentences for its owner. */
import { formatAway } from '../domain/relay/end-texts.ts'
import type { RecordEvent } from './api-replies.ts'
import { describeTransition, toneOfTransition } from './pages/history-texts.ts'
import { describeStreamEvent, toneOfStreamEvent } from './stream-event-texts.ts'

export type Tone = 'good' | 'warn' | 'bad' | undefined

type Refused = Extract<RecordEvent, { kind: 'caller_refused' }>
type Command = Extract<RecordEvent, { kind: 'command' }>

/** Undefined for an event of a kind that has no text, from a newer API. */
export function describeRecordEvent(event: RecordEvent): string | undefined {
  switch (event.kind) {
    case 'stream_started':
    case 'stream_weak':
    case 'stream_recovered':
    case 'stream_lost':
    case 'stream_ended':
      return describeStreamEvent(event)
    case 'relay_replaced':
      return `The relay failed and was replaced. Your stream was away for ${formatAway(event.away_seconds)}`
    case 'transition':
      return describeTransition({ to: event.state, reason: event.reason, initiator: event.initiator })
    case 'links_changed':
      return `Network links ${event.from} → ${event.to}`
    case 'player_joined':
      return `A player joined: ${countPlayers(event.players)}`
    case 'player_left':
      return `A player left: ${countPlayers(event.players)}`
    case 'caller_refused':
      return describeRefusal(event)
    case 'command':
      return describeCommand(event)
    default:
      return undefined
  }
}

const countPlayers = (players: number): string => {
  if (players === 0) return 'none plays now'
  return players === 1 ? '1 plays now' : `${players} play now`
}

/** `2 callers were refused: wrong stream ID`. */
function describeRefusal({ reason, role, count }: Refused): string {
  const noun = role === 'player' ? 'player' : 'caller'
  const callers = count === 1 ? `1 ${noun} was` : `${count} ${noun}s were`
  const roleTexts = role === 'player' ? playerRefusalTexts : callerRefusalTexts
  return `${callers} refused: ${roleTexts[reason] ?? refusalTexts[reason] ?? reason.replaceAll('_', ' ')}`
}

const refusalTexts: Readonly<Record<string, string>> = {
  unauthorized: 'wrong stream ID',
  passphrase: 'wrong passphrase',
  overload: 'too many at once',
  bad_mode: 'publishing and playing have different ports',
  down: 'the relay could not take it',
  bad_request: 'no request that the relay understands',
  version: 'an SRT version that is too old',
  engine: 'the relay could not take it',
  srt_at_srtla_port: 'SRT at the port for SRTLA',
  srtla_at_srt_port: 'SRTLA at the port for SRT',
}
const callerRefusalTexts: Readonly<Record<string, string>> = { conflict: 'another encoder is publishing' }
const playerRefusalTexts: Readonly<Record<string, string>> = {
  unauthorized: 'wrong play key',
  overload: 'as many players as a relay takes',
  down: 'no stream to play',
}

const commandTexts: Readonly<Record<string, string>> = {
  run: 'Command to start',
  stop: 'Command to stop',
  stop_now: 'Command to stop at once',
  disconnect: 'Command to disconnect',
}
const initiatorTexts: Readonly<Record<string, string>> = {
  user: 'by you',
  operator: 'by support',
  timer: 'by a time limit',
  system: 'by the service',
}

/** `Command to stop, by you with Studio Deck`. */
function describeCommand({ command, initiator, client }: Command): string {
  const by = initiatorTexts[initiator] ?? `by ${initiator}`
  return `${commandTexts[command] ?? command.replaceAll('_', ' ')}, ${by}${client ? ` with ${client}` : ''}`
}

/** The colour of an event on a time line. */
export function toneOfRecordEvent(event: RecordEvent): Tone {
  switch (event.kind) {
    case 'stream_started':
    case 'stream_weak':
    case 'stream_recovered':
    case 'stream_lost':
    case 'stream_ended':
      return toneOfStreamEvent(event)
    case 'transition':
      return toneOfTransition({ to: event.state, reason: event.reason })
    case 'relay_replaced':
      return 'bad'
    case 'links_changed':
      return event.to < event.from ? 'warn' : 'good'
    case 'caller_refused':
      return 'warn'
    default:
      return undefined
  }
}

/** An event with its text. */
export interface DescribedEvent {
  readonly event: RecordEvent
  /** RFC 3339. */
  readonly at: string
  readonly text: string
  readonly tone: Tone
  readonly publicReason: string | undefined
}

/** In their order, without those that have no text. */
export const describeEvents = (events: readonly RecordEvent[]): readonly DescribedEvent[] =>
  events.flatMap((event) => {
    const text = describeRecordEvent(event)
    const publicReason = 'public_reason' in event ? event.public_reason : undefined
    return text === undefined ? [] : [{ event, at: event.at, text, tone: toneOfRecordEvent(event), publicReason }]
  })
