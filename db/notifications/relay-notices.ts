/**
 * The notifications about a relay session: lost contact, an end that its user did not request, and an end because of
 * its age.
 */
import { type EndCause, isEndByUser } from '../../domain/notifications/kinds.ts'
import type { LossCause, RelayReason, RelayState, SessionDetail, Transition } from '../../domain/relay/session.ts'
import { first, type Sql } from '../connection.ts'
import type { Notify } from './settings.ts'

interface NoticeRow {
  userId: string
  connectionId: string
  region: string
  state: RelayState
  detail: SessionDetail | null
  createdAt: Date
  graceEndsAt: Date | null
  graceReason: RelayReason | null
  graceInitiator: EndCause['initiator'] | null
  now: Date
}

interface WrittenTransitions {
  readonly transitions: readonly Transition[]
  /** The one that the transitions have completed. */
  readonly replacement: { readonly failedAt: Date; readonly restoredAt: Date; readonly cause: LossCause } | undefined
}

/** Runs in the transaction that has written the transitions, so a repeated request does not repeat it. */
export async function notifyOfTransitions(
  tx: Sql,
  sessionId: string,
  { transitions, replacement }: WrittenTransitions,
  notify: Notify,
): Promise<void> {
  const last = transitions.at(-1)
  const isLost = last?.to === 'grace' && last.reason === 'health_lost'
  if (!last || (!isLost && last.to !== 'stopped' && !replacement)) return
  const row = await readSession(tx, sessionId)
  if (!row) return
  const session = { session_id: sessionId, connection_id: row.connectionId, region: row.region }
  const timestamp = row.now.toISOString()
  if (last.to === 'grace') {
    const data = { ...session, grace_ends_at: (row.graceEndsAt ?? row.now).toISOString() }
    await notify(tx, row.userId, { kind: 'relay_contact_lost', timestamp, data })
    return
  }
  if (last.to === 'active') {
    if (!replacement) return
    const { failedAt, restoredAt, cause } = replacement
    const awaySeconds = Math.round((+restoredAt - +failedAt) / 100) / 10
    const data = { ...session, failed_at: failedAt.toISOString(), away_seconds: awaySeconds, cause }
    await notify(tx, row.userId, { kind: 'relay_replaced', timestamp, data })
    return
  }
  const { reason, initiator } = last
  const cause = causeOf(row)
  if (isEndByUser(last, cause)) return
  const data = { ...session, reason, initiator, cause, detail: row.detail, created_at: row.createdAt.toISOString() }
  await notify(tx, row.userId, { kind: 'relay_ended', timestamp, data })
}

const causeOf = ({ graceReason, graceInitiator }: NoticeRow): EndCause | null =>
  graceReason && graceInitiator && { reason: graceReason, initiator: graceInitiator }

const readSession = async (tx: Sql, sessionId: string): Promise<NoticeRow | undefined> =>
  first(tx<NoticeRow[]>`
    select s.user_id, s.connection_id, s.region, s.state, s.detail, s.created_at, s.grace_ends_at, now() as now,
      grace.reason as grace_reason, grace.initiator as grace_initiator
    from relay_sessions s
      left join relay_transitions grace
        on grace.session_id = s.id and grace.version = s.version - 1 and grace.to_state = 'grace'
    where s.id = ${sessionId}`)

interface EndingSession {
  readonly id: string
  readonly userId: string
  readonly connectionId: string
  readonly region: string
  readonly createdAt: Date
  readonly now: Date
}

/**
 * Active sessions that are older than `ageSeconds`, and marks them, so that each is returned once. Runs in the
 * transaction that notifies of them.
 */
export const claimEndingSessions = async (tx: Sql, ageSeconds: number, limit: number): Promise<EndingSession[]> =>
  tx<EndingSession[]>`
    update relay_sessions set ending_soon_notified_at = now()
    where id = any (array(
      select id from relay_sessions
      where state = 'active' and ending_soon_notified_at is null
        and created_at <= now() - make_interval(secs => ${ageSeconds})
      order by id limit ${limit} for no key update skip locked))
    returning id, user_id, connection_id, region, created_at, now() as now`
