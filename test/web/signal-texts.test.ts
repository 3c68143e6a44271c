/** The texts of the signal path. */
import { expect, test } from 'vitest'
import { phoneCodes, playerCodes, relayCodes, signalLevels } from '../../domain/relay/signal.ts'
import { phoneTextOf, playerTextOf, relayTextOf, type SignalText } from '../../web/signal-texts.ts'

const since = '2026-08-01T18:30:00.000Z'
const wordsOf = (text: SignalText) =>
  text
    .filter((part) => typeof part === 'string')
    .join(' ')
    .split(/[^\p{L}]+/u)
    .filter((word) => word !== '')

test('each judgement is said in six words at most, beside its figures and times', () => {
  const texts = signalLevels.flatMap((level) => [
    ...phoneCodes.map((code) => phoneTextOf({ level, code, since })),
    ...relayCodes.map((code) => relayTextOf({ level, code, since })),
    ...playerCodes.map((code) => playerTextOf({ level, code, since })),
  ])
  expect(texts.map(wordsOf).filter((words) => words.length === 0 || words.length > 6)).toEqual([])
})
