/** Whether an address has an account must not show in the time of an answer: known addresses against unknown, in turns. */
import { randomUUID } from 'node:crypto'
import bcrypt from 'bcrypt'
import type { Database } from '../db/connection.ts'
import { type RunningProgram, say } from './machine.ts'
import { median, type Row, shortened, spreadOf } from './pairs.ts'

const asksOfEach = 100
/** As far as the medians may lie apart. */
const apartMax = 0.15

export async function measureSignIn(api: RunningProgram, sql: Database): Promise<Row[]> {
  const known = await givenAddresses(sql)
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
async function givenAddresses(sql: Database): Promise<string[]> {
  const passwordHash = await bcrypt.hash('the right password', 12)
  const added = await sql<{ email: string }[]>`
    insert into users (email, password_hash, stream_token)
    select 'sign-in-' || n || '@bench.test', ${passwordHash}, 'S' || lpad(n::text, 7, '0')
    from generate_series(1, ${asksOfEach}::int) n returning email`
  return added.map((row) => row.email)
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
