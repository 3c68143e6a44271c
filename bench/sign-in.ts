/** Whether an address has an account must not show in the time of an answer: known addresses against unknown, in turns. */
import { randomUUID } from 'node:crypto'
import bcrypt from 'bcrypt'
import type { Database } from '../db/connection.ts'
import { insertUser } from '../db/users.ts'
import { createSealing, type Sealing } from '../platform/sealing.ts'
import { type RunningProgram, say } from './machine.ts'
import { median, type Row, shortened, spreadOf } from './pairs.ts'

const asksOfEach = 100
/** As far as the medians may lie apart. */
const apartMax = 0.15

export async function measureSignIn(api: RunningProgram, sql: Database): Promise<Row[]> {
  const known = await givenAddresses(sql, createSealing(api.config.oauthEncryptionKeys))
  return [
    await compareTimes('POST /auth/login, wrong password', known, (email) =>
      ask(`${api.url}/api/v1/auth/login`, { email, password: 'not the password' }, 401),
    ),
    await compareTimes('POST /auth/password/forgot', known, (email) =>
      ask(`${api.url}/api/v1/auth/password/forgot`, { email }, 202),
    ),
  ]
}

/** Accounts with a password, one for each ask: links and failures of one account are bounded. */
async function givenAddresses(sql: Database, sealing: Sealing): Promise<string[]> {
  const passwordHash = await bcrypt.hash('the right password', 12)
  const emails = Array.from({ length: asksOfEach }, (_, index) => `sign-in-${index}@bench.test`)
  for (const [index, email] of emails.entries())
    await insertUser(sql, sealing, { email, passwordHash, streamToken: `S${String(index).padStart(7, '0')}` })
  return emails
}

/** Unknown addresses stand in the place of the floor. */
async function compareTimes(
  what: string,
  known: readonly string[],
  answer: (email: string) => Promise<number>,
): Promise<Row> {
  const pairs: { unknown: number; known: number }[] = []
  for (const email of known)
    pairs.push({ known: await answer(email), unknown: await answer(`${randomUUID()}@bench.test`) })
  const [ours, floor] = [median(pairs.map((pair) => pair.known)), median(pairs.map((pair) => pair.unknown))]
  say(`${what}: ${shortened(ours)} ms for a known address, ${shortened(floor)} ms for an unknown one`)
  return {
    what: `${what}: known against unknown address`,
    floor: `${shortened(floor)} ms`,
    ours: `${shortened(ours)} ms`,
    // The medians' own ratio counts: it is what somebody who asks a hundred times would look at.
    ratio: { ...spreadOf(pairs.map((pair) => pair.known / pair.unknown)), median: ours / floor },
    target: `${1 - apartMax} to ${1 + apartMax}`,
    met: Math.abs(ours / floor - 1) <= apartMax,
  }
}

/** Milliseconds until the answer, which is to be this one. */
async function ask(url: string, body: object, status: number): Promise<number> {
  const startedAt = performance.now()
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  await answer.text()
  if (answer.status !== status) throw new Error(`${url}: ${answer.status} instead of ${status}`)
  return performance.now() - startedAt
}
