/**
 * Whether an address has an account is not to be read off the clock: nearly all of the time is bcrypt's, so its calls
 * are counted. `test/system/sign-in-timing.test.ts` measures the time.
 */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createPasswords } from '../../../api/identity/passwords.ts'
import { type GivenUser, startApiWithServicePasswords, type TestApi } from '../../support/api.ts'

interface Counted {
  readonly api: TestApi
  /** Of all calls since the last call of this: what was done, and how expensive it was. */
  callsSinceLast(): string[]
}

/** An API with the service's settings of passwords, and with a double of bcrypt. */
async function startCounted(variables: Readonly<Record<string, string>> = {}): Promise<Counted> {
  const api = await startApiWithServicePasswords(variables)
  const calls: string[] = []
  const passwords = createPasswords(
    {},
    {
      hash: async (text, cost) => {
        calls.push(`hash of cost ${cost}`)
        return `hash of ${text}`
      },
      compare: async (text, hash) => {
        const [, cost] = /^\$2b\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(hash) ?? []
        calls.push(`comparison of cost ${cost}`)
        return text === 'correct horse battery'
      },
    },
  )
  Object.assign(api.services.passwords, passwords)
  return { api, callsSinceLast: () => calls.splice(0) }
}

const open = await startCounted()
const strict = await startCounted({
  SVC_REQUIRE_EMAIL_VERIFICATION: 'true',
  DATABASE_URL: open.api.services.config.database.url,
})

const unknownEmail = () => `${randomUUID()}@example.com`
const withoutPassword = async (): Promise<GivenUser> => {
  const user = await open.api.given.user()
  await open.api.sql`update users set password_hash = null where id = ${user.userId}`
  return user
}

/** Asks for each address, which gets the same answer, and returns what bcrypt had to do for each. */
async function callsFor({ api, callsSinceLast }: Counted, path: string, emails: readonly string[], password: string) {
  const answers = new Set<string>()
  const calls: string[][] = []
  for (const email of emails) {
    const { status, body } = await api.post(path, { email, password })
    answers.add(JSON.stringify([status, body]))
    calls.push(callsSinceLast())
  }
  expect(answers.size).toBe(1)
  return calls
}

const oneComparison = ['comparison of cost 12']

test('a wrong password is compared once at full cost with and without an account, and with one without a password', async () => {
  const emails = [(await open.api.given.user()).email, unknownEmail(), (await withoutPassword()).email]
  const calls = await callsFor(open, '/auth/login', emails, 'not the password')
  expect(calls).toEqual([oneComparison, oneComparison, oneComparison])
})

test('a password that bcrypt would cut off is compared as any other', async () => {
  const emails = [(await open.api.given.user()).email, unknownEmail()]
  const calls = await callsFor(open, '/auth/login', emails, 'x'.repeat(100))
  expect(calls).toEqual([oneComparison, oneComparison])
})

test('where verification is required, the right password of an unverified address is compared as for an unknown address', async () => {
  const emails = [(await open.api.given.user()).email, unknownEmail()]
  const calls = await callsFor(strict, '/auth/login', emails, 'correct horse battery')
  expect(calls).toEqual([oneComparison, oneComparison])
})

test('where verification is required, a sign-up hashes the password once for a taken and a free address', async () => {
  const emails = [(await open.api.given.user()).email, unknownEmail()]
  const calls = await callsFor(strict, '/auth/signup', emails, 'a password of ours')
  expect(calls).toEqual([['hash of cost 12'], ['hash of cost 12']])
})
