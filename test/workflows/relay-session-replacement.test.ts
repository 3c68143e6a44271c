/** Sessions whose relay is lost and replaced. */
import { expect, test } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import { eventually, freeze, type RelayUser, relayProcesses, startService } from '../support/relays.ts'

const service = await startService({
  variables: {
    SVC_RELAY_REPLACEMENT_SECONDS: '60',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '4',
    SVC_RELAY_GRACE_SECONDS: '30',
  },
})
const { api } = service

const killRelay = (sessionId: string): void => {
  for (const pid of service.relaysOf(sessionId)) process.kill(pid, 'SIGKILL')
}

const replaced = (user: RelayUser, { connection_id: connectionId, instance_id: lost }: SessionView) =>
  eventually(
    async () => (await user.active(connectionId)).session as SessionView,
    (session) => session.state === 'active' && session.instance_id !== lost,
  )

const transitionsOf = async (sessionId: string) =>
  (await service.history(sessionId)).transitions.map(({ from, to, reason }) => `${from} → ${to} (${reason})`)

test('a killed relay is replaced in the same session, at the same ports', async () => {
  const { user, session } = await service.activeRelay()
  killRelay(session.session_id)
  const after = await replaced(user, session)

  expect(after).toMatchObject({
    session_id: session.session_id,
    reason: 'health_restored',
    detail: 'relay_replaced',
    connect: {
      srtla_url: session.connect?.srtla_url,
      srt_url: session.connect?.srt_url,
      player_url: session.connect?.player_url,
      stats_url: session.connect?.stats_url,
    },
  })
  expect(await transitionsOf(session.session_id)).toEqual([
    'provisioning → active (relay_ready)',
    'active → grace (health_lost)',
    'grace → active (health_restored)',
  ])
  expect(service.relaysOf(session.session_id)).toHaveLength(1)
  await user.stop({ session_id: session.session_id, immediate: true })
})

test('a frozen relay is replaced after the health timeout', async () => {
  const { user, session } = await service.activeRelay()
  const [pid = 0] = service.relaysOf(session.session_id)
  freeze(pid)
  const after = await replaced(user, session)
  expect(after.connect?.srtla_url).toBe(session.connect?.srtla_url)
  expect(relayProcesses(service.dataDir).map((relay) => relay.pid)).not.toContain(pid)
  expect(await api.sql`select cause from relay_replacements where session_id = ${session.session_id}`).toEqual([
    { cause: 'relay_silent' },
  ])
  await user.stop({ session_id: session.session_id, immediate: true })
})
