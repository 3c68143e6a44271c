/** Compares response times for known and unknown addresses: they must not reveal which addresses have an account. */
import { randomUUID } from 'node:crypto'
import bcrypt from 'bcrypt'
import type { Database } from '../db/connection.ts'
import { insertUser } from '../db/identity/users.ts'
import { createSealing, type Sealing } from '../platform/sealing.ts'
import { figures } from './figures.ts'
import { formatNumber, median, spreadOf } from './pairs.ts'
import { type Figure, type Row, withRatio } from './rows.ts'
import { logProgress, type RunningProgram } from './stack.ts'

const accountCount = 100

export async function measureSignIn(api: RunningProgram, sql: Database): Promise<Row[]> {
  const known = await createAccounts(sql, createSealing(api.config.oauthEncryptionKeys))
  return [
    await compareTimes(figures.sign_in_login, known, (email) =>
      timeRequest(`${api.url}/api/v1/auth/login`, { email, password: 'not the password' }, 401),
    ),
    await compareTimes(figures.sign_in_forgot, known, (email) =>
      timeRequest(`${api.url}/api/v1/auth/password/forgot`, { email }, 202),
    ),
  ]
}

/** Creates one account per request, because links and failures of one account are limited. Returns the addresses. */
async function createAccounts(sql: Database, sealing: Sealing): Promise<string[]> {
  const passwordHash = await bcrypt.hash('the right password', 12)
  const emails = Array.from({ length: accountCount }, (_, index) => `sign-in-${index}@bench.test`)
  for (const [index, email] of emails.entries())
    await insertUser(sql, sealing, { email, passwordHash, streamToken: `S${String(index).padStart(7, '0')}` })
  return emails
}

/** Unknown addresses serve as the floor. */
async function compareTimes(
  figure: Figure,
  known: readonly string[],
  answer: (email: string) => Promise<number>,
): Promise<Row> {
  const pairs: { unknown: number; known: number }[] = []
  for (const email of known)
    pairs.push({ known: await answer(email), unknown: await answer(`${randomUUID()}@bench.test`) })
  const [ours, floor] = [median(pairs.map((pair) => pair.known)), median(pairs.map((pair) => pair.unknown))]
  logProgress(
    `${figure.name}: ${formatNumber(ours)} ms for a known address, ${formatNumber(floor)} ms for an unknown one`,
  )
  const { min: low, max: high } = spreadOf(pairs.map((pair) => pair.known / pair.unknown))
  // The ratio of the medians decides: an attacker who repeats requests would compare these.
  return withRatio(figure, { floor, ours, ratio: ours / floor, low, high })
}

/** Milliseconds until the response. Throws for another status than expected. */
async function timeRequest(url: string, body: object, status: number): Promise<number> {
  const startedAt = performance.now()
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  await answer.text()
  if (answer.status !== status) throw new Error(`${url}: answered ${answer.status} instead of ${status}`)
  return performance.now() - startedAt
}
