/** The legal transitions of Postgres, compared with those of the domain. */
import { expect, test } from 'vitest'
import { legalTransitions } from '../../../domain/relay/session.ts'
import { startApi } from '../../support/api.ts'

const { sql } = await startApi()

test('Postgres has the legal transitions of the domain, with their reasons', async () => {
  const rows = await sql<{ fromState: string; toState: string; reason: string }[]>`
    select from_state, to_state, reason from relay_legal_transitions`
  const ofDomain = Object.entries(legalTransitions).flatMap(([from, targets]) =>
    Object.entries(targets).flatMap(([to, reasons]) =>
      (reasons as readonly string[]).map((reason) => `${from} → ${to}: ${reason}`),
    ),
  )
  expect(rows.map((row) => `${row.fromState} → ${row.toState}: ${row.reason}`).toSorted()).toEqual(ofDomain.toSorted())
})
