/**
 * What a signal says, in about six words each, with the next step where there is one. A text is a list of parts, since
 * figures and times in it are kept up to date by the page.
 */
import type { Session } from './api-replies.ts'

export type Signal = NonNullable<Session['signal']>
type SignalPart = Signal[keyof Signal]

/** A piece of text, a figure of the stream, or how long the code has held. */
export type SignalText = readonly (
  | string
  | { readonly figure: 'bitrate' | 'links' | 'loss' }
  | { readonly time: 'ago' | 'clock' }
)[]

const [bitrate, links, loss] = [{ figure: 'bitrate' }, { figure: 'links' }, { figure: 'loss' }] as const
const [ago, clock] = [{ time: 'ago' }, { time: 'clock' }] as const

type Code<Part extends keyof Signal> = Signal[Part]['code']

const phoneTexts: Readonly<Record<Code<'phone'>, SignalText>> = {
  receiving: ['Receiving ', bitrate, ' ', links],
  loss_high: ['Loss ', loss, ' %: lower the bitrate'],
  bitrate_low: ['Weak: ', bitrate, '. Find better coverage'],
  bitrate_dropped: ['Fell to ', bitrate, '. Check your networks'],
  link_lost: ['A network is gone: sending ', links],
  second_publisher: ['A second app tries to publish'],
  lost: ['No video, ', ago, ': check your networks'],
  ended: ['Stream ended ', ago, ': start it again'],
  no_video: ['Connected, but sends no video'],
  no_caller: ['No call since ', clock, ': check the address'],
  wrong_stream_id: ['Wrong stream ID, ', ago, ': copy the address'],
  wrong_passphrase: ['Wrong passphrase, ', ago, ': copy the address'],
  wrong_port: ['Wrong port, ', ago, ': copy the address'],
  refused: ['Refused by the relay, ', ago],
  unknown: ['Not known at the moment'],
}

const relayTexts: Readonly<Record<Code<'relay'>, SignalText>> = {
  running: ['Running, forwards your stream'],
  waiting: ['Ready, waits for video'],
  starting: ['Starting, takes a moment'],
  region_trouble: ['Its region has trouble: try another'],
  stopping: ['Stopping, as you asked'],
  silent: ['No contact, ', ago, ': we are checking'],
  lost: ['Lost, ', ago, ': we are replacing it'],
  no_engine: ['Cannot forward: no SRT engine'],
  ending: ['Ending'],
}

const playerTexts: Readonly<Record<Code<'player'>, SignalText>> = {
  playing: ['OBS plays your stream'],
  waiting: ['OBS is connected, waits for video'],
  no_player: ['OBS is not connected'],
  not_reading: ['Connected, reads nothing: restart the source'],
  some_not_reading: ['Another player reads nothing'],
  players_full: ['A ninth player was refused'],
  wrong_stream_id: ['Wrong key, ', ago, ': copy the address'],
  wrong_passphrase: ['Wrong passphrase, ', ago, ': copy the address'],
  wrong_port: ['Wrong port, ', ago, ': copy the address'],
  refused: ['Refused by the relay, ', ago],
  unknown: ['Not known at the moment'],
}

/** A code without a text, of a newer API, is shown by its name. */
const textOf = <Name extends string>(
  texts: Readonly<Record<Name, SignalText>>,
  { code }: { readonly code: Name },
): SignalText => texts[code] ?? [code.replaceAll('_', ' ')]

export function phoneTextOf(phone: Signal['phone']): SignalText {
  if (phone.code === 'no_caller' && phone.level === 'unknown') return ['Waiting for the first call']
  return textOf(phoneTexts, phone)
}

export const relayTextOf = (relay: Signal['relay']): SignalText => textOf(relayTexts, relay)
export const playerTextOf = (player: Signal['player']): SignalText => textOf(playerTexts, player)

export const levelTexts: Readonly<Record<SignalPart['level'], string>> = {
  good: 'Good',
  weak: 'Weak',
  bad: 'Bad',
  unknown: 'Waiting',
}
