/** Which notifications the stream events of a session cause, over whole evenings and whenever a job looks at them. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  judgeNotice,
  type NoticedEvent,
  rememberSent,
  type StreamNotice,
  type StreamNoticeMemory,
} from '../../../domain/notifications/stream-notices.ts'
import { endMillis, type StreamEventKind } from '../../../domain/relay/stream-events.ts'

const second = 1_000

interface Sent extends StreamNotice {
  readonly sentAt: number
  /** The last event of the session at that time. */
  readonly last: NoticedEvent
}

interface Evening {
  readonly events: readonly NoticedEvent[]
  readonly delaySeconds: number
  /** When the job looks, in milliseconds. */
  readonly looks: readonly number[]
  readonly endsAt?: number
  /** Whether a notification is sent on any channel; of the ones in order. */
  readonly canSend?: readonly boolean[]
}

/** Keeps the memory of a session as the database does: from the first event on that is not seen yet. */
function watch({ events, delaySeconds, looks, endsAt = Number.POSITIVE_INFINITY, canSend = [] }: Evening): Sent[] {
  const sent: Sent[] = []
  let memory: StreamNoticeMemory | undefined
  let tries = 0
  let known = 0
  for (const now of looks) {
    const happened = events.filter(({ at }) => at <= now)
    const news = happened.filter(({ number, kind }) => number > known && kind !== 'stream_started')
    known = happened.length
    const [first] = news
    if (first) memory ??= { seenNumber: first.number - 1, lostAt: null }
    if (!memory) continue
    const { seenNumber } = memory
    const judged = judgeNotice(memory, {
      events: happened.filter(({ number }) => number > seenNumber),
      isEnding: now >= endsAt,
      delayMillis: delaySeconds * second,
      now,
    })
    memory = judged.memory
    const last = happened.at(-1)
    if (judged.notice && last && (canSend[tries++] ?? true)) {
      memory = rememberSent(judged.memory, judged.notice)
      sent.push({ ...judged.notice, sentAt: now, last })
    }
    if (judged.pendingUntil === undefined && memory.lostAt === null) memory = undefined
  }
  return sent
}

const everySecond = (seconds: number) => Array.from({ length: seconds }, (_, index) => (index + 1) * second)

/** The events of a session, by their seconds. */
const eventsOf = (...list: readonly (readonly [seconds: number, kind: StreamEventKind])[]): NoticedEvent[] =>
  list.map(([seconds, kind], index) => ({ number: index + 1, kind, at: seconds * second, bitrateKbps: 4_000 }))

const texts = (sent: readonly Sent[]) => sent.map(({ kind, sentAt }) => `${kind} at ${sentAt / second}`)

const nextKinds: Readonly<Record<StreamEventKind, readonly StreamEventKind[]>> = {
  stream_started: ['stream_weak', 'stream_lost', 'stream_ended'],
  stream_weak: ['stream_recovered', 'stream_lost', 'stream_ended'],
  stream_recovered: ['stream_weak', 'stream_lost', 'stream_ended'],
  stream_lost: ['stream_recovered', 'stream_weak', 'stream_ended'],
  stream_ended: ['stream_started', 'stream_weak'],
}

const anyEvents = fc
  .array(fc.record({ choice: fc.nat(5), gap: fc.integer({ min: 2, max: 400 }) }), { minLength: 1, maxLength: 40 })
  .map((steps) => {
    const list: [number, StreamEventKind][] = [[1, 'stream_started']]
    for (const { choice, gap } of steps) {
      const [at, kind] = list.at(-1) ?? [0, 'stream_started' as const]
      const next = nextKinds[kind]
      list.push([at + gap, next[choice % next.length] ?? 'stream_ended'])
    }
    return eventsOf(...list)
  })
const anyDelay = fc.integer({ min: 0, max: 600 })
/** Times at which the job looks, also after long outages. */
const anyLooks = fc
  .array(fc.oneof({ weight: 8, arbitrary: fc.integer({ min: 1, max: 5 }) }, fc.integer({ min: 5, max: 900 })), {
    minLength: 50,
    maxLength: 400,
  })
  .map((gaps) => {
    let at = 0
    return gaps.map((gap) => {
      at += gap * second
      return at
    })
  })
const anyEvening = fc.record({
  events: anyEvents,
  delaySeconds: anyDelay,
  looks: anyLooks,
  canSend: fc.array(fc.boolean(), { maxLength: 20 }),
})

describe('over any evening', () => {
  test('each event is notified once at most, and a loss once', () => {
    fc.assert(
      fc.property(anyEvening, (evening) => {
        const numbers = watch(evening).map(({ event }) => event.number)
        expect(new Set(numbers).size).toBe(numbers.length)
      }),
    )
  })

  test('a loss or a weak stream is notified only while it lasts, after the delay, so none that is over within it', () => {
    fc.assert(
      fc.property(anyEvening, (evening) => {
        for (const { kind, event, sentAt, last } of watch(evening)) {
          if (kind === 'stream_recovered') continue
          expect(sentAt - event.at).toBeGreaterThanOrEqual(evening.delaySeconds * second)
          const next = evening.events[event.number]
          if (last.number === event.number) continue
          // The relay calls a stream ended that has been lost for minutes.
          expect([kind, last.number, last.kind]).toEqual(['stream_lost', next?.number, 'stream_ended'])
          expect(last.at - event.at).toBeGreaterThanOrEqual(endMillis)
        }
      }),
    )
  })

  test('a recovery follows a notified loss, once, with the time of that loss, and none an end of the stream', () => {
    fc.assert(
      fc.property(anyEvening, (evening) => {
        let lost: Sent | undefined
        for (const sent of watch(evening)) {
          if (sent.kind === 'stream_lost') lost = sent
          if (sent.kind !== 'stream_recovered') continue
          expect(sent.lostAt).toBe(lost?.event.at)
          const between = evening.events.slice(lost?.event.number, sent.event.number - 1)
          for (const { kind } of between) expect(['stream_lost', 'stream_weak']).toContain(kind)
          lost = undefined
        }
      }),
    )
  })

  test('what lasts for longer than the delay is notified when the job looks each second', () => {
    fc.assert(
      fc.property(anyEvents, fc.integer({ min: 0, max: 600 }), (events, delaySeconds) => {
        const end = (events.at(-1)?.at ?? 0) / second + 700
        const sent = watch({ events, delaySeconds, looks: everySecond(end) })
        for (const [index, event] of events.entries()) {
          if (event.kind !== 'stream_lost' && event.kind !== 'stream_weak') continue
          const lasted = (events[index + 1]?.at ?? Number.POSITIVE_INFINITY) - event.at
          const isNotified = sent.some(({ event: { number } }) => number === event.number)
          if (lasted >= (delaySeconds + 1) * second) expect(isNotified).toBe(true)
          if (isNotified && events[index + 1]?.kind === 'stream_recovered' && event.kind === 'stream_lost')
            expect(sent.some(({ event: { number } }) => number === event.number + 1)).toBe(true)
        }
      }),
      { numRuns: 30 },
    )
  })
})

describe('a loss', () => {
  const loss = eventsOf([1, 'stream_started'], [10, 'stream_lost'], [60, 'stream_recovered'])

  test('is notified after the delay, and its end at once', () => {
    expect(texts(watch({ events: loss, delaySeconds: 30, looks: everySecond(100) }))).toEqual([
      'stream_lost at 40',
      'stream_recovered at 60',
    ])
  })

  test('that ends within the delay causes no message', () => {
    expect(watch({ events: loss, delaySeconds: 51, looks: everySecond(100) })).toEqual([])
  })

  test('is notified at once without a delay', () => {
    expect(texts(watch({ events: loss, delaySeconds: 0, looks: everySecond(100) }))).toEqual([
      'stream_lost at 10',
      'stream_recovered at 60',
    ])
  })

  test('that could not be notified has no recovery', () => {
    expect(watch({ events: loss, delaySeconds: 0, looks: everySecond(100), canSend: [false] })).toEqual([])
  })

  test('recovers over a weak stream, which is notified too when it lasts', () => {
    const events = eventsOf([1, 'stream_started'], [10, 'stream_lost'], [60, 'stream_weak'], [120, 'stream_recovered'])
    const sent = watch({ events, delaySeconds: 30, looks: everySecond(200) })
    expect(texts(sent)).toEqual(['stream_lost at 40', 'stream_weak at 90', 'stream_recovered at 120'])
    expect(sent.at(-1)?.lostAt).toBe(10 * second)
  })

  test('is not notified when the session ends or its user stops it within the delay', () => {
    expect(watch({ events: loss, delaySeconds: 30, looks: everySecond(100), endsAt: 39 * second })).toEqual([])
  })

  test('is not notified when the stream is ended within the delay, by a relay that ends', () => {
    const events = eventsOf([1, 'stream_started'], [10, 'stream_lost'], [30, 'stream_ended'])
    expect(watch({ events, delaySeconds: 30, looks: everySecond(100) })).toEqual([])
  })

  test('that lasts so long that its stream counts as ended is notified all the same, and has no recovery', () => {
    const events = eventsOf([1, 'stream_started'], [10, 'stream_lost'], [310, 'stream_ended'], [700, 'stream_started'])
    expect(texts(watch({ events, delaySeconds: 600, looks: everySecond(900) }))).toEqual(['stream_lost at 610'])
    expect(texts(watch({ events, delaySeconds: 30, looks: everySecond(900) }))).toEqual(['stream_lost at 40'])
  })
})
