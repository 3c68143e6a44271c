/** The judgement of the signal path. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { relayRefusals } from '../../../domain/relay/refusals.ts'
import { relayReasons, relayStates } from '../../../domain/relay/session.ts'
import {
  judgeSignal,
  judgeStream,
  phoneCodes,
  playerCodes,
  type SignalSession,
  type StreamFacts,
} from '../../../domain/relay/signal.ts'
import { streamEventKinds } from '../../../domain/relay/stream-events.ts'

const good: StreamFacts = {
  isPublishing: true,
  bitrateKbps: 5_000,
  usualBitrateKbps: 5_200,
  lossPct: 0.4,
  links: 3,
  usualLinks: 3,
  players: 1,
  stalledPlayers: 0,
  publisherRefused: undefined,
  playerRefused: undefined,
  hasPublished: false,
  lastEvent: 'stream_started',
}
const silent = { ...good, isPublishing: false, bitrateKbps: 0, links: 0, lossPct: null, usualLinks: undefined }
const phoneOf = (changes: Partial<StreamFacts>) => judgeStream({ ...good, ...changes }).phone
const playerOf = (changes: Partial<StreamFacts>) => judgeStream({ ...good, ...changes }).player
const ago = (ageMillis: number, reason: (typeof relayRefusals)[number]) => ({ reason, ageMillis })

describe('a phone that publishes', () => {
  test('is received when nothing is wrong', () => expect(phoneOf({})).toBe('receiving'))
  test('loses many packets at a good bitrate', () => expect(phoneOf({ lossPct: 9 })).toBe('loss_high'))
  test('is weak below the limit', () =>
    expect(phoneOf({ bitrateKbps: 600, lastEvent: 'stream_weak' })).toBe('bitrate_low'))
  test('has collapsed far below its usual bitrate', () =>
    expect(phoneOf({ bitrateKbps: 1_500 })).toBe('bitrate_dropped'))
  test('has lost a link, with all that was under way over it', () =>
    expect(phoneOf({ links: 2, lossPct: 20 })).toBe('link_lost'))
  test('has a rival for ten seconds', () => {
    expect(phoneOf({ publisherRefused: ago(10_000, 'conflict') })).toBe('second_publisher')
    expect(phoneOf({ publisherRefused: ago(10_001, 'conflict') })).toBe('receiving')
  })
  test('is connected without video', () => expect(phoneOf({ bitrateKbps: 0, lastEvent: undefined })).toBe('no_video'))
  test('is judged by a report of a former version too', () =>
    expect(phoneOf({ usualBitrateKbps: undefined, usualLinks: undefined, lastEvent: undefined })).toBe('receiving'))
})

describe('a phone that does not publish', () => {
  test('has never called', () => expect(phoneOf({ ...silent, lastEvent: undefined })).toBe('no_caller'))
  test('has lost its networks', () => expect(phoneOf({ ...silent, lastEvent: 'stream_lost' })).toBe('lost'))
  test('has lost its networks before the relay gave its connection up', () =>
    expect(phoneOf({ bitrateKbps: 0, lastEvent: 'stream_lost' })).toBe('lost'))
  test('is gone from a relay of a former version, which has received something', () =>
    expect(phoneOf({ ...silent, lastEvent: undefined, hasPublished: true })).toBe('lost'))
  test('has ended its stream', () => expect(phoneOf({ ...silent, lastEvent: 'stream_ended' })).toBe('ended'))
  test.each([
    ['unauthorized', 'wrong_stream_id'],
    ['passphrase', 'wrong_passphrase'],
    ['srt_at_srtla_port', 'wrong_port'],
    ['version', 'refused'],
  ] as const)('was refused for %s within a minute', (reason, code) => {
    expect(phoneOf({ ...silent, publisherRefused: ago(60_000, reason) })).toBe(code)
    expect(phoneOf({ ...silent, lastEvent: undefined, publisherRefused: ago(60_001, reason) })).toBe('no_caller')
  })
})

describe('a player', () => {
  test('plays', () => expect(playerOf({})).toBe('playing'))
  test('waits while nothing comes in', () => expect(playerOf(silent)).toBe('waiting'))
  test('is missing', () => expect(playerOf({ players: 0 })).toBe('no_player'))
  test('has a wrong key', () =>
    expect(playerOf({ players: 0, playerRefused: ago(5_000, 'unauthorized') })).toBe('wrong_stream_id'))
  test('reads nothing', () => expect(playerOf({ stalledPlayers: 1 })).toBe('not_reading'))
  test('reads nothing beside others that do', () =>
    expect(playerOf({ players: 2, stalledPlayers: 1 })).toBe('some_not_reading'))
  test('is the ninth', () =>
    expect(playerOf({ players: 8, playerRefused: ago(3_000, 'overload') })).toBe('players_full'))
})

const active: SignalSession<number> = {
  state: 'active',
  reason: 'relay_ready',
  createdAt: 0,
  activeAt: 10,
  graceStartedAt: null,
  ageSeconds: 90,
  hasEngine: true,
  stream: {
    phone: { code: 'receiving', since: 20 },
    player: { code: 'playing', since: 30 },
    isPublishing: true,
    publishingSince: 20,
    judgedAt: 80,
    ageSeconds: 1,
  },
  isSuspect: false,
  isPathCut: false,
}
const judge = (changes: Partial<SignalSession<number>>) => judgeSignal({ ...active, ...changes }, 30)

describe('a signal', () => {
  test('is good from end to end', () =>
    expect(judge({})).toEqual({
      phone: { level: 'good', code: 'receiving', since: 20 },
      relay: { level: 'good', code: 'running', since: 20 },
      player: { level: 'good', code: 'playing', since: 30 },
    }))
  test.each([
    ['lost', { state: 'grace', reason: 'health_lost', graceStartedAt: 85 }, 85],
    ['silent', { isSuspect: true }, 80],
    ['region_trouble', { isSuspect: true, isPathCut: true }, 80],
    ['starting', { state: 'provisioning', ageSeconds: 5 }, 0],
    ['region_trouble', { state: 'provisioning', ageSeconds: 61 }, 0],
    ['ending', { state: 'grace', reason: 'force_disconnected', graceStartedAt: 85 }, 85],
  ] as const)('with a relay that is %s says nothing about the ends', (code, changes, since) => {
    const signal = judge(changes)
    expect(signal.relay).toMatchObject({ code, since })
    expect([signal.phone, signal.player].map(({ level, code }) => [level, code])).toEqual([
      ['unknown', 'unknown'],
      ['unknown', 'unknown'],
    ])
  })
  test('still shows the ends of a relay that is stopping', () =>
    expect(judge({ state: 'grace', reason: 'stop_requested' })).toMatchObject({
      phone: { code: 'receiving' },
      relay: { code: 'stopping', level: 'weak' },
    }))
  test('blames a missing player only while there is something to play', () => {
    const stream = { ...active.stream, player: { code: 'no_player' as const, since: 1 } } as NonNullable<
      typeof active.stream
    >
    expect(judge({ stream }).player.level).toBe('bad')
    const ended = { ...stream, isPublishing: false, phone: { code: 'ended' as const, since: 1 } }
    expect(judge({ stream: ended }).player.level).toBe('unknown')
  })
  test('gives a newcomer a minute for the first call', () => {
    const phone = { code: 'no_caller' as const, since: 1 }
    const stream = { ...active.stream, isPublishing: false, phone } as NonNullable<typeof active.stream>
    expect(judge({ stream, ageSeconds: 59 }).phone.level).toBe('unknown')
    expect(judge({ stream, ageSeconds: 60 }).phone.level).toBe('bad')
  })
})

const refusal = fc.option(fc.record({ reason: fc.constantFrom(...relayRefusals), ageMillis: fc.nat(120_000) }), {
  nil: undefined,
})
const facts: fc.Arbitrary<StreamFacts> = fc.record({
  isPublishing: fc.boolean(),
  bitrateKbps: fc.oneof(fc.constant(0), fc.nat(60_000)),
  usualBitrateKbps: fc.option(fc.nat(60_000), { nil: undefined }),
  lossPct: fc.option(fc.double({ min: 0, max: 100, noNaN: true })),
  links: fc.nat(4),
  usualLinks: fc.option(fc.nat(4), { nil: undefined }),
  players: fc.nat(8),
  stalledPlayers: fc.nat(8),
  publisherRefused: refusal,
  playerRefused: refusal,
  hasPublished: fc.boolean(),
  lastEvent: fc.option(fc.constantFrom(...streamEventKinds), { nil: undefined }),
})
const stream = fc.record({
  phone: fc.record({ code: fc.constantFrom(...phoneCodes), since: fc.nat(100) }),
  player: fc.record({ code: fc.constantFrom(...playerCodes), since: fc.nat(100) }),
  isPublishing: fc.boolean(),
  publishingSince: fc.nat(100),
  judgedAt: fc.nat(100),
  ageSeconds: fc.nat(60),
})
const session: fc.Arbitrary<SignalSession<number>> = fc.record({
  state: fc.constantFrom(...relayStates),
  reason: fc.constantFrom(...relayReasons),
  createdAt: fc.nat(100),
  activeAt: fc.option(fc.nat(100)),
  graceStartedAt: fc.option(fc.nat(100)),
  ageSeconds: fc.nat(200),
  hasEngine: fc.boolean(),
  stream: fc.option(stream),
  isSuspect: fc.boolean(),
  isPathCut: fc.boolean(),
})

test('nothing is good while nothing arrives, and each part has a level and a code that is known', () => {
  fc.assert(
    fc.property(facts, session, (reported, { stream: before, ...rest }) => {
      const { phone, player } = judgeStream(reported)
      const { isPublishing } = reported
      const stored = before && {
        ...before,
        isPublishing,
        phone: { code: phone, since: 1 },
        player: { code: player, since: 2 },
      }
      const signal = judgeSignal({ ...rest, stream: stored }, 30)
      expect(phoneCodes).toContain(signal.phone.code)
      expect(playerCodes).toContain(signal.player.code)
      const levels = [signal.phone.level, signal.relay.level, signal.player.level]
      if (stored === null || !isPublishing || reported.bitrateKbps === 0) expect(levels).not.toContain('good')
      // A relay that is not heard of says nothing about its ends.
      if (rest.isSuspect && rest.state === 'active') expect(levels).not.toContain('good')
    }),
  )
})

test('a judgement of a former process does not make a silent stream good', () => {
  fc.assert(
    fc.property(session, (stored) => {
      if (stored.stream?.isPublishing === true) return
      const { phone, relay } = judgeSignal(stored, 30)
      expect([phone.level, relay.level]).not.toContain('good')
    }),
  )
})
