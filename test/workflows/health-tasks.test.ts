/** `GET /health` of the api, while commands or tasks are not carried out. */
import { expect, test } from 'vitest'
import { startFakeRelayService } from '../support/fake-relays.ts'
import { eventually } from '../support/relays.ts'
import { longRelayTimeouts } from '../support/subscribers.ts'

test('the health of the service names the tasks as failing while a command waits for more than 30 s', async () => {
  const service = await startFakeRelayService({ variables: longRelayTimeouts })
  const { session_id: sessionId } = await service.startActiveRelay(await service.user())
  const { sql, url } = service.api
  const health = async () => {
    const answer = await fetch(`${url}/health`)
    const { checks } = (await answer.json()) as { checks: Readonly<Record<string, string>> }
    return { status: answer.status, checks }
  }
  await eventually(health, ({ status }) => status === 200)
  // A command that was accepted 31 s ago, and whose next delivery is not due.
  await sql`
    update relay_sessions set command_seq = command_seq + 1, commanded_at = now() - interval '31 seconds',
      deliver_at = now() + interval '1 hour' where id = ${sessionId}`
  expect(await health()).toMatchObject({
    status: 503,
    checks: { postgres: 'ok', temporal: 'ok', worker: 'ok', tasks: 'failing' },
  })
  await sql`update relay_sessions set deliver_at = now() where id = ${sessionId}`
  await eventually(health, ({ status }) => status === 200)
})
