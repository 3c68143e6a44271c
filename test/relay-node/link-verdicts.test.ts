/** Which link of a bond is bad, from what the relay measures. */
import { expect, test } from 'vitest'
import { showGroup } from '../../relay-node/stats.ts'
import { createRandom } from '../support/random.ts'
import { type SimulatedLink, simulate, simulatedMillis } from './simulated-bond.ts'

const latencyMillis = 2_000

const defects = ['slow', 'lossy', 'silent', 'narrow'] as const

function spoil(link: SimulatedLink, defect: (typeof defects)[number], random: () => number): SimulatedLink {
  switch (defect) {
    case 'slow':
      return { ...link, delayMillis: 600 + 300 * random() }
    case 'lossy':
      return { ...link, lossPercent: 10 + 10 * random() }
    case 'silent':
      return { ...link, diesAt: simulatedMillis - 5_000 }
    case 'narrow':
      return { ...link, packetsPerSecond: 5 + 5 * random() }
  }
}

function judgeSet(seed: number, defect: (typeof defects)[number] | undefined) {
  const random = createRandom(seed).next
  const count = 2 + (seed % 3)
  const bad = Math.floor(random() * count)
  const links = Array.from({ length: count }, (_, index) => {
    const link = { delayMillis: 20 + 130 * random(), lossPercent: 0.5 * random() }
    return index === bad && defect ? spoil(link, defect, random) : link
  })
  const measured = simulate({ links, random, isReporting: seed % 2 === 0, latencyMillis })
  const { connections } = showGroup(
    { id: 'srtla', totalBytes: 0, links: measured, latencyMillis, areAddressesShown: false },
    simulatedMillis,
  )
  return { bad, connections }
}

test('of 100 sets of links with a bad one, that one is named in at least 95', () => {
  const results = Array.from({ length: 100 }, (_, seed) => {
    const defect = defects[seed % defects.length]
    const { bad, connections } = judgeSet(seed, defect)
    const named = connections.flatMap(({ verdict }, index) => (verdict === 'good' ? [] : [index]))
    return { seed, defect, isRight: named.length === 1 && named[0] === bad, bad, connections }
  })
  const wrong = results.filter(({ isRight }) => !isRight)
  expect(wrong.length, JSON.stringify(wrong, null, 1)).toBeLessThanOrEqual(5)
})

test('of 20 sets of good links, none is named in at least 19', () => {
  const results = Array.from({ length: 20 }, (_, seed) => judgeSet(seed, undefined).connections)
  const isGood = (connections: (typeof results)[number]) => connections.every(({ verdict }) => verdict === 'good')
  expect(results.filter(isGood).length).toBeGreaterThanOrEqual(19)
})
