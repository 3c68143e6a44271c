/** Compares what a player received with what the publishers sent, one after the other. */
import type { Publisher } from './publisher.ts'
import type { Recorder } from './recorder.ts'
import { readStream, type StreamError, type TrackKind, ticksBetween, type Unit } from './stream-reading.ts'

const ticksPerMilli = 90
/** How long a unit may be on its way from the encoder to the network. */
const pipeMillis = 300

export interface Judgement {
  /** By kind, those of the tables and clocks that players read. */
  readonly errors: Readonly<Record<string, number>>
  readonly firstErrors: readonly string[]
  /** Live units of the publishers between the first and the last that arrived, and how many of them arrived. */
  readonly sentUnits: number
  readonly arrivedUnits: number
  /** Some that did not arrive. */
  readonly missing: readonly string[]
  /** Units that are not the publisher's, and that appear once only, so they are no filler. */
  readonly damagedUnits: number
  /** Units that are not the publisher's, or that repeat one of it. */
  readonly fillerUnits: Readonly<Record<TrackKind, number>>
  /** How often the distance between the clocks of publisher and player changed. */
  readonly segments: number
  /** The greatest change of the distance between sound and picture, in milliseconds. */
  readonly offsetChangeMillis: number
  /** The longest time without a picture, and without sound, at the player. */
  readonly pictureGapMillis: number
  readonly soundGapMillis: number
  /** Publishers whose first picture at the player is no key frame. */
  readonly startsWithoutKeyFrame: number
  /** From the publisher's first key frame after it was admitted to its arrival; of each publisher. */
  readonly returnMillis: readonly number[]
}

interface Match {
  readonly unit: Unit
  readonly publication: number
  readonly index: number
}

interface Sent {
  readonly units: readonly Unit[]
  /** The places of each hash. */
  readonly places: ReadonlyMap<string, readonly number[]>
}

export function judge(publishers: readonly Publisher[], recorder: Recorder, received = recorder.received): Judgement {
  const reading = readStream(received)
  const sent = publishers.map((publisher): Sent => {
    const { units } = readStream(publisher.sent)
    return { units, places: placesOf(units) }
  })
  const { matches, others, repeats } = matchUnits(reading.units, sent)
  const counts = new Map<string, number>()
  for (const { hash } of others) counts.set(hash, (counts.get(hash) ?? 0) + 1)
  const fillers = [...others.filter(({ hash }) => (counts.get(hash) ?? 0) > 1), ...repeats]
  const firsts = publishers.map((_, publication) => matches.filter((match) => match.publication === publication))
  const live = publishers.map((publisher, index) => countLive(publisher, sent[index] as Sent, firsts[index] ?? []))
  return {
    errors: countByKind(reading.errors),
    firstErrors: reading.errors.slice(0, 20).map(({ kind, at, text }) => `${kind} at ${at / 188}: ${text}`),
    sentUnits: sum(live.map((each) => each.sent)),
    arrivedUnits: sum(live.map((each) => each.arrived)),
    missing: live.flatMap(({ missing }) => missing).slice(0, 20),
    damagedUnits: others.length - others.filter(({ hash }) => (counts.get(hash) ?? 0) > 1).length,
    fillerUnits: { video: countKind(fillers, 'video'), audio: countKind(fillers, 'audio') },
    ...judgeClocks(matches, sent),
    pictureGapMillis: longestGap(reading.units, 'video', recorder),
    soundGapMillis: longestGap(reading.units, 'audio', recorder),
    startsWithoutKeyFrame: firsts.filter((ofPublisher) => firstPicture(ofPublisher)?.unit.isKeyFrame === false).length,
    returnMillis: publishers.flatMap((publisher, index) => {
      const first = firsts[index]?.find(({ unit }) => unit.isKeyFrame)
      const own = first && sent[index]?.units[first.index]
      return own ? [Math.round(recorder.arrivedAt(first.unit.to) - publisher.sentAt(own.from))] : []
    }),
  }
}

function placesOf(units: readonly Unit[]): Map<string, number[]> {
  const places = new Map<string, number[]>()
  for (const [index, { hash }] of units.entries()) places.set(hash, [...(places.get(hash) ?? []), index])
  return places
}

/** Publishers come one after the other, so a unit belongs to the present publisher or to a later one. */
function matchUnits(units: readonly Unit[], sent: readonly Sent[]) {
  const [matches, others, repeats]: [Match[], Unit[], Unit[]] = [[], [], []]
  const seen = new Set<string>()
  let present = 0
  for (const unit of units) {
    // Sound that arrives after pictures of the next publisher may still be that of the one before.
    const order = [...sent.keys()].toSorted((a, b) => distance(present, a) - distance(present, b))
    const publication = order.find((each) => sent[each]?.places.has(unit.hash))
    if (publication === undefined) {
      others.push(unit)
      continue
    }
    if (publication > present && unit.kind === 'video') present = publication
    const places = sent[publication]?.places.get(unit.hash) ?? []
    const index = places.find((place) => !seen.has(`${publication} ${place}`))
    if (index === undefined) repeats.push(unit)
    else {
      seen.add(`${publication} ${index}`)
      matches.push({ unit, publication, index })
    }
  }
  return { matches, others, repeats }
}

/** Later ones first, then the latest of the earlier ones. */
const distance = (present: number, other: number) => (other >= present ? other - present : 1_000 + present - other)

/** Between the first and the last arrived units, outages of the networks left out. */
function countLive(publisher: Publisher, { units }: Sent, matches: readonly Match[]) {
  const arrived = new Set(matches.map(({ index }) => index))
  const pauses = publisher.outages.flatMap(({ from, to }) => [from - pipeMillis, to])
  const bounds = [Number.NEGATIVE_INFINITY, ...pauses, Number.POSITIVE_INFINITY]
  const missing: string[] = []
  let [sentCount, arrivedCount] = [0, 0]
  for (let part = 0; part + 1 < bounds.length; part += 2)
    for (const kind of ['video', 'audio'] as const) {
      const own = [...units.entries()].filter(([, unit]) => {
        const at = publisher.sentAt(unit.to - 1)
        return unit.kind === kind && at > (bounds[part] ?? 0) && at < (bounds[part + 1] ?? 0)
      })
      const first = own.findIndex(([index]) => arrived.has(index))
      const last = own.findLastIndex(([index]) => arrived.has(index))
      if (first < 0) continue
      const between = own.slice(first, last + 1)
      sentCount += between.length
      const lost = between.filter(([index]) => !arrived.has(index))
      arrivedCount += between.length - lost.length
      missing.push(
        ...lost.map(([index, { dts }]) => `${kind} ${index} of ${units.length} at ${dts / ticksPerMilli} ms`),
      )
    }
  return { sent: sentCount, arrived: arrivedCount, missing }
}

/** By units that are unlike all others of their publisher. */
function judgeClocks(matches: readonly Match[], sent: readonly Sent[]) {
  const shifts = { video: new Map<number, Set<number>>(), audio: new Map<number, Set<number>>() }
  let segments = 0
  let [lastShift, lastPublication] = [Number.NaN, -1]
  for (const { unit, publication, index } of matches) {
    const own = sent[publication]
    const original = own?.units[index]
    if (original === undefined || own?.places.get(unit.hash)?.length !== 1) continue
    const shift = ticksBetween(original.pts, unit.pts)
    const known = shifts[unit.kind].get(publication) ?? new Set()
    shifts[unit.kind].set(publication, known.add(shift))
    if (unit.kind !== 'video') continue
    if (shift !== lastShift || publication !== lastPublication) segments += 1
    lastShift = shift
    lastPublication = publication
  }
  const changes = [...shifts.audio].flatMap(([publication, ofAudio]) => {
    const ofVideo = [...(shifts.video.get(publication) ?? [])]
    return [...ofAudio].map((shift) => Math.min(...ofVideo.map((other) => Math.abs(shift - other))))
  })
  const greatest = Math.max(0, ...changes.filter(Number.isFinite))
  return { segments, offsetChangeMillis: greatest / ticksPerMilli }
}

function longestGap(units: readonly Unit[], kind: TrackKind, recorder: Recorder): number {
  const times = units.filter((unit) => unit.kind === kind).map(({ to }) => recorder.arrivedAt(to))
  const gaps = times.slice(1).map((time, index) => time - (times[index] ?? time))
  return Math.round(Math.max(0, ...gaps))
}

const firstPicture = (matches: readonly Match[]) => matches.find(({ unit }) => unit.kind === 'video')
const countKind = (units: readonly Unit[], kind: TrackKind) => units.filter((unit) => unit.kind === kind).length
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

function countByKind(errors: readonly StreamError[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { kind } of errors) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}
