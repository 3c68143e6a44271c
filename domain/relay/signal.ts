/**
 * The signal path of a live session: phone, relay and player, each with what is right or wrong with it. The stream is
 * judged with each report of its relay. Whether that judgement still holds follows from the session whenever it is
 * shown. Pure, and the only place with these rules.
 */
import type { RelayRefusal } from './refusals.ts'
import type { RelayReason, RelayState } from './session.ts'
import { type StreamEventKind, streamStateAfter } from './stream-events.ts'

export const signalLevels = ['good', 'weak', 'bad', 'unknown'] as const
export type SignalLevel = (typeof signalLevels)[number]

/** What stands at the end that publishes. A level holds while the relay is the session's and reports. */
const phoneLevels = {
  receiving: 'good',
  /** Many packets are lost on the way, although the bitrate is good. */
  loss_high: 'weak',
  /** Below the limit of a weak stream. */
  bitrate_low: 'weak',
  /** Far below that of the last minute. */
  bitrate_dropped: 'weak',
  /** One of several networks is gone. */
  link_lost: 'weak',
  /** Another publisher was refused, since there is one already. */
  second_publisher: 'weak',
  /** The publisher sends nothing, or all of its networks are gone. */
  lost: 'bad',
  /** The publisher has ended its stream. */
  ended: 'unknown',
  /** A publisher is connected that sends no video. */
  no_video: 'weak',
  no_caller: 'bad',
  wrong_stream_id: 'bad',
  wrong_passphrase: 'bad',
  /** The caller wants to play at the port for publishers, or speaks another protocol than that of the port. */
  wrong_port: 'bad',
  refused: 'bad',
  unknown: 'unknown',
} as const satisfies Record<string, SignalLevel>

const relayLevels = {
  running: 'good',
  /** It runs, and nothing arrives. */
  waiting: 'unknown',
  starting: 'unknown',
  /** The start takes longer than usual, or the way to the region's relays is cut. */
  region_trouble: 'weak',
  stopping: 'weak',
  /** Its reports are missing. */
  silent: 'bad',
  /** It is gone, and is being replaced. */
  lost: 'bad',
  no_engine: 'bad',
  /** The session ends, and not because its owner wanted it. */
  ending: 'bad',
} as const satisfies Record<string, SignalLevel>

const playerLevels = {
  playing: 'good',
  /** A player is connected, and nothing arrives that it could play. */
  waiting: 'unknown',
  /** Bad while a stream comes in. */
  no_player: 'unknown',
  /** A player is connected and reads nothing. */
  not_reading: 'bad',
  /** One of several players reads nothing. */
  some_not_reading: 'weak',
  /** Another player was refused, since eight play. */
  players_full: 'weak',
  wrong_stream_id: 'bad',
  wrong_passphrase: 'bad',
  wrong_port: 'bad',
  refused: 'bad',
  unknown: 'unknown',
} as const satisfies Record<string, SignalLevel>

export type PhoneCode = keyof typeof phoneLevels
export type RelayCode = keyof typeof relayLevels
export type PlayerCode = keyof typeof playerLevels

const namesOf = <Code extends string>(levels: Readonly<Record<Code, SignalLevel>>) =>
  Object.keys(levels) as [Code, ...Code[]]
export const phoneCodes = namesOf(phoneLevels)
export const relayCodes = namesOf(relayLevels)
export const playerCodes = namesOf(playerLevels)

/** From here on the loss of a stream is high, in percent. SRT mends it, at the cost of data and of delay. */
const lossPctMax = 5
/** A bitrate below this part of the usual one has collapsed. */
const usualPartMin = 0.4
/** How long a refusal explains that no caller of its kind is there. Phones and OBS try again within seconds. */
const refusalMillisMax = 60_000
/** How long it is shown beside those that are there. */
const besidesMillisMax = 10_000

export interface CallerRefusal {
  readonly reason: RelayRefusal
  readonly ageMillis: number
}

/** What a report states. Undefined where a relay of a former version does not. */
export interface StreamFacts {
  readonly isPublishing: boolean
  readonly bitrateKbps: number
  readonly usualBitrateKbps: number | undefined
  readonly lossPct: number | null
  readonly links: number
  readonly usualLinks: number | undefined
  readonly players: number
  readonly stalledPlayers: number
  readonly publisherRefused: CallerRefusal | undefined
  readonly playerRefused: CallerRefusal | undefined
  /** Whether the relay has received anything since it started. */
  readonly hasPublished: boolean
  /** The last event of the stream; undefined without one, and where the relay states none. */
  readonly lastEvent: StreamEventKind | undefined
}

export interface StreamJudgement {
  readonly phone: PhoneCode
  readonly player: PlayerCode
}

/** Judges the stream of a relay that reports. */
export const judgeStream = (facts: StreamFacts): StreamJudgement => ({
  phone: judgePhone(facts),
  player: judgePlayer(facts),
})

const isWithin = (refusal: CallerRefusal | undefined, millis: number): refusal is CallerRefusal =>
  refusal !== undefined && refusal.ageMillis <= millis

function judgePhone(facts: StreamFacts): PhoneCode {
  const { isPublishing, bitrateKbps, usualBitrateKbps = 0, lossPct, links, usualLinks = 0 } = facts
  const state = streamStateAfter(facts.lastEvent)
  if (!isPublishing || bitrateKbps === 0) {
    // Whom a publisher kept out that is gone meanwhile will be let in.
    const isRefused = isWithin(facts.publisherRefused, refusalMillisMax) && facts.publisherRefused.reason !== 'conflict'
    if (!isPublishing && isRefused) return codeOfRefusal(facts.publisherRefused.reason)
    if (facts.lastEvent === 'stream_ended') return 'ended'
    if (state !== 'none' || (facts.lastEvent === undefined && facts.hasPublished)) return 'lost'
    return isPublishing ? 'no_video' : 'no_caller'
  }
  // What was under way over a network that is gone is lost for a moment.
  if (links > 0 && links < usualLinks) return 'link_lost'
  if ((lossPct ?? 0) >= lossPctMax) return 'loss_high'
  if (state === 'weak') return 'bitrate_low'
  if (bitrateKbps < usualBitrateKbps * usualPartMin) return 'bitrate_dropped'
  const hasRival = facts.publisherRefused?.reason === 'conflict' && isWithin(facts.publisherRefused, besidesMillisMax)
  return hasRival ? 'second_publisher' : 'receiving'
}

function judgePlayer({ isPublishing, bitrateKbps, players, stalledPlayers, playerRefused }: StreamFacts): PlayerCode {
  if (players === 0)
    return isWithin(playerRefused, refusalMillisMax) ? codeOfRefusal(playerRefused.reason) : 'no_player'
  if (!isPublishing || bitrateKbps === 0) return 'waiting'
  if (stalledPlayers >= players) return 'not_reading'
  if (playerRefused?.reason === 'overload' && isWithin(playerRefused, besidesMillisMax)) return 'players_full'
  return stalledPlayers > 0 ? 'some_not_reading' : 'playing'
}

function codeOfRefusal(reason: RelayRefusal): PhoneCode & PlayerCode {
  if (reason === 'unauthorized') return 'wrong_stream_id'
  if (reason === 'passphrase') return 'wrong_passphrase'
  const isWrongPort = reason === 'bad_mode' || reason === 'srt_at_srtla_port' || reason === 'srtla_at_srt_port'
  return isWrongPort ? 'wrong_port' : 'refused'
}

/** A code and the time since which it holds. */
export interface Judged<Code, Time> {
  readonly code: Code
  readonly since: Time
}

/** A live session as it is now. Times are of one clock. */
export interface SignalSession<Time> {
  readonly state: RelayState
  readonly reason: RelayReason
  readonly createdAt: Time
  readonly activeAt: Time | null
  readonly graceStartedAt: Time | null
  /** Since the session was started. */
  readonly ageSeconds: number
  readonly hasEngine: boolean
  /** The last judgement of its stream, since when a stream comes in or does not, and its age; null before the first. */
  readonly stream: {
    readonly phone: Judged<PhoneCode, Time>
    readonly player: Judged<PlayerCode, Time>
    readonly isPublishing: boolean
    readonly publishingSince: Time
    readonly judgedAt: Time
    readonly ageSeconds: number
  } | null
  /** Whether its report ended, or is late, and nothing has come since. */
  readonly isSuspect: boolean
  /** Whether the way from the region's relays is cut. */
  readonly isPathCut: boolean
}

export interface SignalPart<Code, Time> extends Judged<Code, Time> {
  readonly level: SignalLevel
}

export interface Signal<Time> {
  readonly phone: SignalPart<PhoneCode, Time>
  readonly relay: SignalPart<RelayCode, Time>
  readonly player: SignalPart<PlayerCode, Time>
}

/** A start that takes longer has a reason in its region. */
const startSecondsMax = 60
/** A newcomer who has to find the address first has done nothing wrong. */
const firstCallSeconds = 60

/** Nothing is good while nothing arrives. @param ageSecondsMax how long a judgement holds without a further report. */
export function judgeSignal<Time>(session: SignalSession<Time>, ageSecondsMax: number): Signal<Time> {
  const relay = judgeRelay(session, ageSecondsMax)
  const { stream } = session
  const isKnown = relay.code === 'running' || relay.code === 'waiting' || relay.code === 'no_engine'
  // While a session stops its relay goes on.
  const isStopping = relay.code === 'stopping' && stream !== null && stream.ageSeconds <= ageSecondsMax
  if (stream === null || !(isKnown || isStopping)) {
    const unknown = { level: 'unknown', code: 'unknown', since: relay.since } as const
    return { phone: unknown, relay: { ...relay, level: relayLevels[relay.code] }, player: unknown }
  }
  const { player } = stream
  // The last report may have been stored by a process of an earlier version, which judges nothing.
  const isOutdated = !stream.isPublishing && isFlowing(stream.phone.code)
  const phone = isOutdated ? { code: 'lost' as const, since: stream.publishingSince } : stream.phone
  const isNewcomer = phone.code === 'no_caller' && session.ageSeconds < firstCallSeconds
  const isMissed = player.code === 'no_player' && phoneLevels[phone.code] !== 'unknown' && stream.isPublishing
  return {
    phone: { ...phone, level: isNewcomer ? 'unknown' : phoneLevels[phone.code] },
    relay: { ...relay, level: relayLevels[relay.code] },
    player: { ...player, level: isMissed ? 'bad' : playerLevels[player.code] },
  }
}

function judgeRelay<Time>(session: SignalSession<Time>, ageSecondsMax: number): Judged<RelayCode, Time> {
  const { state, reason, createdAt, graceStartedAt, stream } = session
  const activeAt = session.activeAt ?? createdAt
  if (state === 'provisioning') {
    const isSlow = session.ageSeconds > startSecondsMax || session.isPathCut
    return { code: isSlow ? 'region_trouble' : 'starting', since: createdAt }
  }
  if (state !== 'active') {
    const since = graceStartedAt ?? activeAt
    if (state === 'grace' && reason === 'health_lost') return { code: 'lost', since }
    return { code: reason === 'stop_requested' ? 'stopping' : 'ending', since }
  }
  if (stream === null) return { code: session.isPathCut ? 'region_trouble' : 'starting', since: activeAt }
  if (session.isPathCut && (session.isSuspect || stream.ageSeconds > ageSecondsMax))
    return { code: 'region_trouble', since: stream.judgedAt }
  if (session.isSuspect || stream.ageSeconds > ageSecondsMax) return { code: 'silent', since: stream.judgedAt }
  if (!session.hasEngine) return { code: 'no_engine', since: activeAt }
  return {
    code: stream.isPublishing && isFlowing(stream.phone.code) ? 'running' : 'waiting',
    since: stream.publishingSince,
  }
}

/** Whether video comes in, good or weak. */
const isFlowing = (code: PhoneCode): boolean =>
  code !== 'no_video' && (phoneLevels[code] === 'good' || phoneLevels[code] === 'weak')
