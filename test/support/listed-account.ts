/** An account with an entry in every list of operators. */
import { randomUUID } from 'node:crypto'
import type { GivenUser, TestApi } from './api.ts'

export interface ListedAccount extends GivenUser {
  readonly maskedEmail: string
  readonly sessionId: string
  readonly eventId: string
  /** Gone, of the session. */
  readonly instanceId: string
}

/** Nothing of the account stands in the way of its erasure. */
export async function createListedAccount(api: TestApi): Promise<ListedAccount> {
  const user = await api.given.user()
  const { userId } = user
  const email = `streamer-${randomUUID()}@mail.example.org`
  await api.sql`update users set email = ${email}, addons_without_plan = 1 where id = ${userId}`
  const sessionId = await writeEndedSession(api, userId)
  const [event] = await api.sql<{ id: string }[]>`
    insert into billing_events (provider, event_key, type, user_id, body, status, error)
    values ('stripe', ${randomUUID()}, 'a type', ${userId}, '', 'parked', 'an error') returning id`
  const instanceId = `i-${randomUUID()}`
  await api.sql`
    insert into instances (instance_id, session_id, region, gone_at) values (${instanceId}, ${sessionId}, 'local', now())`
  await api.sql`insert into audit_entries (initiator, action, user_id) values ('user', 'did_something', ${userId})`
  return { ...user, email, maskedEmail: 's•••@m•••.org', sessionId, eventId: event?.id ?? '', instanceId }
}

/** In one transaction, so that no worker starts its relay. */
const writeEndedSession = (api: TestApi, userId: string): Promise<string> =>
  api.sql.begin(async (tx) => {
    const [session] = await tx<{ id: string }[]>`
      insert into relay_sessions (user_id, connection_id, region, command_initiator, command_delivered_seq)
      values (${userId}, 'default', 'local', 'user', 1) returning id`
    const id = session?.id ?? ''
    await tx`
      update relay_sessions set state = 'stopped', reason = 'provision_failed', stopped_at = now() where id = ${id}`
    return id
  }) as Promise<string>
