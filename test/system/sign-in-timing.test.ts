/**
 * Whether an address has an account is not to be read off the clock. Judges real time: medians, taken in turns on a
 * machine that is busy too. `test/api/identity/sign-in-timing.test.ts` counts the expensive calls.
 */
import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { type Client, startApiWithServicePasswords } from '../support/api.ts'
import { testInRealTime } from './real-time.ts'

const api = await startApiWithServicePasswords()
const seriesMax = 6
const apartMax = 0.15

const unknownEmail = () => `${randomUUID()}@example.com`
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

interface Turns {
  readonly rounds: number
  readonly ask: (email: string) => ReturnType<Client['post']>
}

interface Taken {
  readonly known: number[]
  readonly unknown: number[]
}

/** Asks for an address with an account and for one without in turns. Their answers are the same but for the time. */
async function measure({ rounds, ask }: Turns, taken: Taken): Promise<void> {
  const answers = new Set<string>()
  // Each is asked once, so that none gets another answer for being asked often.
  for (const [round, known] of (await createAddresses(rounds)).entries()) {
    const turns = [['known', known] as const, ['unknown', unknownEmail()] as const]
    // The one who goes first is not always the same.
    for (const [side, email] of round % 2 ? turns : turns.toReversed()) {
      const startedAt = performance.now()
      const { status, body } = await ask(email)
      taken[side].push(performance.now() - startedAt)
      answers.add(JSON.stringify([status, body]))
    }
  }
  expect(answers.size).toBe(1)
}

/** Noise fades when more is measured, a leak does not. */
async function expectAlike(turns: Turns): Promise<void> {
  const taken: Taken = { known: [], unknown: [] }
  const ratio = () => median(taken.known) / median(taken.unknown)
  for (let series = 0; series < seriesMax; series += 1) {
    await measure(turns, taken)
    if (Math.abs(ratio() - 1) <= apartMax) return
  }
  expect(ratio(), 'known over unknown, by the clock').toBe(1)
}

const createAddresses = (count: number) =>
  Promise.all(Array.from({ length: count }, async () => (await api.given.user()).email))

testInRealTime('a request for a reset link takes the same time with and without an account', async () => {
  await expectAlike({ rounds: 30, ask: (email) => api.post('/auth/password/forgot', { email }) })
})

testInRealTime('a wrong password takes the same time with and without an account', async () => {
  const ask = (email: string) => api.post('/auth/login', { email, password: 'not the password' })
  await expectAlike({ rounds: 5, ask })
})

testInRealTime(
  'where verification is required, the right password of an unverified address takes as long as an unknown address',
  async () => {
    const strict = await startApiWithServicePasswords({
      SVC_REQUIRE_EMAIL_VERIFICATION: 'true',
      DATABASE_URL: api.services.config.database.url,
    })
    const ask = (email: string) => strict.post('/auth/login', { email, password: 'correct horse battery' })
    await expectAlike({ rounds: 4, ask })
  },
)

testInRealTime(
  'where verification is required, a sign-up takes the same time for a taken and a free address',
  async () => {
    const strict = await startApiWithServicePasswords({
      SVC_REQUIRE_EMAIL_VERIFICATION: 'true',
      DATABASE_URL: api.services.config.database.url,
    })
    const ask = (email: string) => strict.post('/auth/signup', { email, password: 'a password of ours' })
    await expectAlike({ rounds: 4, ask })
  },
)
