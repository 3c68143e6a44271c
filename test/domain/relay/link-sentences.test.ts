/** The sentences about links. */
import { expect, test } from 'vitest'
import { type DescribedLink, describeLink } from '../../../domain/relay/link-sentences.ts'

const good: DescribedLink = { verdict: 'good', lateMillis: 20, repeatPct: 1, silentMillis: 10 }
const better = 'Your stream would be better without it.'

test.each<[string, Partial<DescribedLink>]>([
  ['Link 2 is good.', {}],
  ['Link 2 is not judged yet.', { verdict: undefined }],
  [
    `Link 2 is weak: it arrives 140 ms later than the others and repeats 12 %. ${better}`,
    { verdict: 'weak', reason: 'slow', lateMillis: 140, repeatPct: 12 },
  ],
  [`Link 2 is weak: it repeats 12 %. ${better}`, { verdict: 'weak', reason: 'lossy', repeatPct: 12.3 }],
  ['Link 2 is useless: it has brought nothing for 4 s.', { verdict: 'useless', reason: 'silent', silentMillis: 4_100 }],
  ['Link 2 is weak: it was silent for more than a second.', { verdict: 'weak', reason: 'silent' }],
  ['Link 2 is useless: it carries very little of your stream.', { verdict: 'useless', reason: 'narrow' }],
  [
    'Link 2 is weak: it repeats 6 % and carries very little of your stream.',
    { verdict: 'weak', reason: 'narrow', repeatPct: 6 },
  ],
])('%s', (sentence, link) => expect(describeLink({ ...good, ...link }, 2, 3)).toBe(sentence))

test('the only link cannot be left out', () => {
  expect(describeLink({ ...good, verdict: 'weak', reason: 'lossy', repeatPct: 30 }, 1, 1)).toBe(
    'Link 1 is weak: it repeats 30 %.',
  )
})
