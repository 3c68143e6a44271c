import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { batch } from '../../platform/batch.ts'

/** Answers each question with its double, and keeps what each round was asked. */
function doubling(millis = 1) {
  const rounds: number[][] = []
  let underWay = 0
  let underWayMost = 0
  const ask = async (questions: number[]) => {
    rounds.push(questions)
    underWay += 1
    underWayMost = Math.max(underWayMost, underWay)
    await sleep(millis)
    underWay -= 1
    if (questions.includes(-1)) throw new Error('a bad round')
    return questions.map((question) => question * 2)
  }
  return { ask, rounds, most: () => underWayMost }
}

const upTo = (count: number) => Array.from({ length: count }, (_, place) => place)

test('questions that come together are one round, each with its own answer', async () => {
  const { ask, rounds } = doubling()
  const one = batch(ask)
  expect(await Promise.all([3, 1, 3, 2].map(one))).toEqual([6, 2, 6, 4])
  expect(rounds).toEqual([[3, 1, 3, 2]])
})

test('a question asked alone is not kept waiting for others', async () => {
  const { ask, rounds } = doubling()
  const one = batch(ask)
  expect(await one(1)).toBe(2)
  expect(await one(2)).toBe(4)
  expect(rounds).toEqual([[1], [2]])
})

test('no round is larger and no more rounds run at once than allowed', async () => {
  const { ask, rounds, most } = doubling(2)
  const one = batch(ask, { sizeMax: 10, roundsMax: 3 })
  expect(await Promise.all(upTo(95).map(one))).toEqual(upTo(95).map((question) => question * 2))
  expect(rounds.map((round) => round.length)).toEqual([...Array(9).fill(10), 5])
  expect(most()).toBe(3)
})

test('a round that fails refuses its own questions only, and the next ones are answered', async () => {
  const { ask } = doubling()
  const one = batch(ask, { sizeMax: 2, roundsMax: 1 })
  const outcomes = await Promise.allSettled([1, 2, -1, 3, 4].map(one))
  expect(outcomes.map((outcome) => outcome.status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
    'rejected',
    'fulfilled',
  ])
  expect(await one(5)).toBe(10)
})

test('a question that waited long behind a round that failed is rejected, and one that has just come is asked', async () => {
  const { ask, rounds } = doubling(600)
  const one = batch(ask, { sizeMax: 1, roundsMax: 1, waitMillisMax: 400 })
  const [failing, early] = [one(-1), one(1)]
  await sleep(500)
  const [failed, late, inTime] = await Promise.allSettled([failing, early, one(2)])
  expect(failed.status).toBe('rejected')
  expect(late).toMatchObject({ status: 'rejected', reason: { code: 'QUERY_TIMEOUT', cause: new Error('a bad round') } })
  expect(inTime).toEqual({ status: 'fulfilled', value: 4 })
  expect(rounds).toEqual([[-1], [2]])
})

test('a question that waited long behind a round that went well is asked', async () => {
  const { ask } = doubling(60)
  const one = batch(ask, { sizeMax: 1, roundsMax: 1, waitMillisMax: 30 })
  expect(await Promise.all([one(1), one(2), one(3)])).toEqual([2, 4, 6])
})

test('an asker that throws at once is one that failed', async () => {
  const one = batch((): Promise<number[]> => {
    throw new Error('not even asked')
  })
  await expect(one(1)).rejects.toThrow('not even asked')
  await expect(one(2)).rejects.toThrow('not even asked')
})

test('whatever comes when, everyone gets the answer to what they asked', async () => {
  const anyArrival = fc.record({ question: fc.nat(1000), after: fc.nat(4) })
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyArrival, { maxLength: 40 }),
      fc.record({ sizeMax: fc.integer({ min: 1, max: 7 }), roundsMax: fc.integer({ min: 1, max: 3 }) }),
      async (arrivals, limits) => {
        const { ask, rounds, most } = doubling()
        const one = batch(ask, limits)
        const answers = await Promise.all(
          arrivals.map(async ({ question, after }) => {
            await sleep(after)
            return one(question)
          }),
        )
        expect(answers).toEqual(arrivals.map(({ question }) => question * 2))
        expect(Math.max(0, ...rounds.map((round) => round.length))).toBeLessThanOrEqual(limits.sizeMax)
        expect(most()).toBeLessThanOrEqual(limits.roundsMax)
      },
    ),
    { numRuns: 40 },
  )
})
