/** What happened in a session, in sentences. */
import { expect, test } from 'vitest'
import type { RecordEvent } from '../../web/api-replies.ts'
import { describeEvents } from '../../web/record-event-texts.ts'

const at = '2026-11-28T21:14:05.000Z'
const shown = (event: object) => describeEvents([{ at, ...event } as RecordEvent])[0]

test.each([
  [{ kind: 'stream_weak', bitrate_kbps: 400 }, 'Stream weak, 400 kbps', 'warn'],
  [{ kind: 'stream_lost', bitrate_kbps: 400 }, 'Stream lost', 'bad'],
  [
    { kind: 'relay_replaced', away_seconds: 8.2, cause: 'relay_gone' },
    'The relay failed and was replaced. Your stream was away for 8 s',
    'bad',
  ],
  [
    { kind: 'transition', state: 'grace', reason: 'stop_requested', initiator: 'user' },
    'Stop requested by you',
    'warn',
  ],
  [{ kind: 'links_changed', from: 3, to: 2 }, 'Network links 3 → 2', 'warn'],
  [{ kind: 'links_changed', from: 2, to: 3 }, 'Network links 2 → 3', 'good'],
  [{ kind: 'player_joined', players: 2 }, 'A player joined: 2 play now', undefined],
  [{ kind: 'player_left', players: 1 }, 'A player left: 1 plays now', undefined],
  [{ kind: 'player_left', players: 0 }, 'A player left: none plays now', undefined],
  [
    { kind: 'caller_refused', reason: 'unauthorized', role: 'publisher', count: 2 },
    '2 callers were refused: wrong stream ID',
    'warn',
  ],
  [
    { kind: 'caller_refused', reason: 'conflict', role: 'publisher', count: 1 },
    '1 caller was refused: another encoder is publishing',
    'warn',
  ],
  [
    { kind: 'caller_refused', reason: 'overload', role: 'player', count: 1 },
    '1 player was refused: as many players as a relay takes',
    'warn',
  ],
  [
    { kind: 'caller_refused', reason: 'a_new_reason', role: 'publisher', count: 1 },
    '1 caller was refused: a new reason',
    'warn',
  ],
  [
    { kind: 'command', command: 'stop', initiator: 'user', client: 'Deck' },
    'Command to stop, by you with Deck',
    undefined,
  ],
  [
    { kind: 'command', command: 'disconnect', initiator: 'operator', client: null },
    'Command to disconnect, by support',
    undefined,
  ],
])('%j is described as “%s”', (event, text, tone) => {
  expect(shown(event)).toMatchObject({ at, text, tone, publicReason: undefined })
})

test('what an operator says to the owner stands with the event', () => {
  const event = { kind: 'command', command: 'disconnect', initiator: 'operator', public_reason: 'Maintenance' }
  expect(shown(event)?.publicReason).toBe('Maintenance')
})

test('the command that started a session has a text', () => {
  expect(shown({ kind: 'command', command: 'run', initiator: 'user', client: null })?.text).toBe(
    'Command to start, by you',
  )
})

test('an event of an unknown kind is not shown', () => {
  expect(shown({ kind: 'moon_rose' })).toBeUndefined()
})
