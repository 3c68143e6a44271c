/** Audit entries of repeated attempts by unauthenticated clients. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { connectPostgres } from '../../../db/connection.ts'
import { accountEntriesMax, anonymousEntriesMax, recordAuditAttempts } from '../../../db/identity/audit-attempts.ts'
import { startApi } from '../../support/api.ts'
import { propertyRuns } from '../../support/property-runs.ts'

const api = await startApi()
const { sql } = api
const replica = connectPostgres(api.services.config.database.url, 4)

interface AttemptTarget {
  readonly action: string
  readonly userId: string | undefined
  readonly network: string
}

const attempt = ({ action, userId, network }: AttemptTarget) => ({
  initiator: 'user' as const,
  action,
  userId,
  ip: network,
  source: network,
})

interface CountedEntry {
  readonly action: string
  readonly userId: string | null
  readonly ip: string | null
  readonly attempts: number
}

const listEntries = (actions: readonly string[]): Promise<CountedEntry[]> =>
  sql<
    CountedEntry[]
  >`select action, user_id, ip, attempts from audit_entries where action = any(${[...actions]}::text[])`

const arbitraryTries = (userIds: readonly string[]) =>
  fc.array(
    fc.record({
      action: fc.constantFrom('a', 'b'),
      userId: fc.constantFrom(undefined, ...userIds),
      network: fc.nat({ max: 60 }).map((n) => `192.0.2.${n}`),
    }),
    { maxLength: 150 },
  )

test('any number of attempts from any networks is counted in a bounded number of entries', async () => {
  const userIds = await Promise.all([1, 2].map(async () => (await api.given.user()).userId))
  const rounds = fc.array(fc.tuple(arbitraryTries(userIds), fc.boolean()), { minLength: 1, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(rounds, async (given) => {
      // Each run uses its own actions, to be independent of the others.
      const run = randomUUID()
      const named = given.map(([tries, isAtOnce]) => ({
        isAtOnce,
        tries: tries.map((made) => ({ ...made, action: `${run}-${made.action}` })),
      }))
      for (const { tries, isAtOnce } of named) {
        const half = Math.ceil(tries.length / 2)
        const parts = isAtOnce ? [tries.slice(0, half), tries.slice(half)] : [tries]
        await Promise.all(
          parts.map((part, index) => recordAuditAttempts(index === 0 ? sql : replica, part.map(attempt))),
        )
      }
      const all = named.flatMap(({ tries }) => tries)
      const entriesFound = await listEntries([`${run}-a`, `${run}-b`])
      for (const action of [`${run}-a`, `${run}-b`])
        for (const userId of [undefined, ...userIds]) {
          const tries = all.filter((made) => made.action === action && made.userId === userId)
          const entries = entriesFound.filter((entry) => entry.action === action && entry.userId === (userId ?? null))
          expect(entries.length).toBeLessThanOrEqual(userId ? accountEntriesMax : anonymousEntriesMax)
          expect(entries.reduce((sum, { attempts }) => sum + attempts, 0)).toBe(tries.length)
          const named = entries.filter(({ ip }) => ip !== null)
          expect(new Set(named.map(({ ip }) => ip)).size).toBe(named.length)
          // An entry with an address counts only attempts from that address.
          for (const entry of named)
            expect(entry.attempts).toBeLessThanOrEqual(tries.filter(({ network }) => network === entry.ip).length)
        }
    }),
    { numRuns: propertyRuns(10, 40) },
  )
  await replica.end({ timeout: 5 })
})
