/** What the database refuses of relay sessions and their transitions. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Sql } from '../../../db/connection.ts'
import {
  legalTransitions,
  type RelayReason,
  type RelayState,
  relayReasons,
  relayStates,
} from '../../../domain/relay/session.ts'
import { startTransitions } from '../../support/relay-transitions.ts'

const { sql, userId, insertSession } = await startTransitions()

const legal = Object.entries(legalTransitions).flatMap(([from, targets]) =>
  Object.entries(targets).flatMap(([to, reasons]) =>
    (reasons as readonly string[]).map((reason) => `${from} → ${to}: ${reason}`),
  ),
)

/** Writes a transition directly, with the columns that the new state requires. */
const writeTransition = (tx: Sql, id: string, to: RelayState, reason: RelayReason) => tx`
  update relay_sessions set state = ${to}, reason = ${reason},
    stopped_at = case when ${to} = 'stopped' then now() end, grace_ends_at = case when ${to} = 'grace' then now() end,
    pair_token_sealed = case when ${to} <> 'stopped' then pair_token_sealed end,
    pair_token_hash = case when ${to} <> 'stopped' then pair_token_hash end,
    relay_ws_token_sealed = case when ${to} <> 'stopped' then relay_ws_token_sealed end,
    relay_ws_token_hash = case when ${to} <> 'stopped' then relay_ws_token_hash end
  where id = ${id}`

/** The transitions from a new session to each state. */
const transitionsTo: Record<RelayState, readonly (readonly [RelayState, RelayReason])[]> = {
  provisioning: [],
  active: [['active', 'relay_ready']],
  grace: [
    ['active', 'relay_ready'],
    ['grace', 'health_lost'],
  ],
  stopped: [['stopped', 'provision_failed']],
}

describe('the database', () => {
  test('has the same legal transitions as the domain', async () => {
    const rows = await sql`select from_state, to_state, reason from relay_legal_transitions`
    expect(rows.map((row) => `${row.fromState} → ${row.toState}: ${row.reason}`).sort()).toEqual([...legal].sort())
  })

  test.each(relayStates)('accepts the legal transitions from %s and refuses all others', async (from) => {
    const mismatches: string[] = []
    await sql.begin(async (tx) => {
      const id = await insertSession(tx)
      for (const [to, reason] of transitionsTo[from]) await writeTransition(tx, id, to, reason)
      const [{ reason: currentReason } = {}] = await tx`select reason from relay_sessions where id = ${id}`
      for (const to of relayStates) {
        for (const reason of relayReasons) {
          const name = `${from} → ${to}: ${reason}`
          const isUnchanged = to === from && reason === currentReason
          const isAccepted = await tx
            .savepoint(async (inner) => {
              await writeTransition(inner, id, to, reason)
              throw new Error('rolled back')
            })
            .catch((error: Error) => error.message === 'rolled back')
          if (isAccepted !== (legal.includes(name) || isUnchanged)) mismatches.push(name)
        }
      }
    })
    expect(mismatches).toEqual([])
  })

  test('accepts a new session only in provisioning', async () => {
    for (const state of relayStates.filter((other) => other !== 'provisioning')) {
      const inserted = sql`
        insert into relay_sessions (user_id, connection_id, region, command_initiator, state, reason, stopped_at, grace_ends_at)
        values (${userId}, ${randomUUID()}, 'here', 'user', ${state}, 'relay_ready',
          ${state === 'stopped' ? new Date() : null}, ${state === 'grace' ? new Date() : null})`
      await expect(inserted).rejects.toMatchObject({ code: '23514' })
    }
  })

  test('refuses a stopped session with secrets and an illegal transition in the history', async () => {
    const id = await insertSession()
    await expect(
      sql`update relay_sessions set state = 'stopped', reason = 'stop_requested', stopped_at = now() where id = ${id}`,
    ).rejects.toMatchObject({ code: '23514' })
    await expect(
      sql`insert into relay_transitions (session_id, version, from_state, to_state, reason, initiator)
        values (${id}, 1, 'active', 'stopped', 'stop_requested', 'user')`,
    ).rejects.toMatchObject({ code: '23503' })
  })

  test('refuses a second live session of a connection', async () => {
    const id = await insertSession()
    const insertion = sql`
      insert into relay_sessions (user_id, connection_id, region, command_initiator)
      select user_id, connection_id, region, 'user' from relay_sessions where id = ${id}`
    await expect(insertion).rejects.toMatchObject({ code: '23505' })
  })
})
