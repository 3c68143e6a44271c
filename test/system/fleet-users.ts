/** The users and the operator of the simulation. */
import { randomUUID } from 'node:crypto'
import type { Answer, ErrorBody } from '../support/api.ts'
import { type OneSession, operator, type RelayUser, type TestService } from '../support/relays.ts'
import { connectionsCount, type Slot, usersCount } from './fleet-steps.ts'

export interface SimulatedUsers {
  /** The session of each start that was accepted. */
  readonly accepted: ReadonlySet<string>
  /** The number of replies by status and error code. */
  readonly replies: ReadonlyMap<string, number>
  start(slot: Slot, region: string | undefined): Promise<void>
  /** Sends the same request twice at once. */
  startTwice(slot: Slot, region: string | undefined): Promise<void>
  stop(slot: Slot, isImmediate: boolean): Promise<void>
  /** Starts one of the relays again that were stopped last. */
  startAgain(position: number): Promise<void>
  disconnect(position: number): Promise<void>
  setDrained(region: string, isDrained: boolean): Promise<void>
  /** Stops all live sessions, one half at once and the other half after the stop grace. */
  stopAll(): Promise<void>
  /** The relay time that the service shows for each user, in seconds. */
  listUsage(): Promise<{ userId: string; seconds: number; activeSessions: number }[]>
}

const keyOf = ({ user, connection }: Slot) => user * connectionsCount + connection

export async function createSimulatedUsers(
  service: TestService,
  onUnexpected: (text: string) => void,
): Promise<SimulatedUsers> {
  const { api } = service
  const users = await Promise.all(Array.from({ length: usersCount }, () => service.user()))
  const accepted = new Set<string>()
  const replies = new Map<string, number>()
  /** The last session of each connection. */
  const sessions = new Map<number, string>()
  /** Connections whose last request was to stop. */
  const stopping = new Map<number, Slot>()

  const userOf = ({ user }: Slot): RelayUser => {
    const found = users[user]
    if (!found) throw new Error(`there is no user ${user}`)
    return found
  }
  const connectionOf = ({ connection }: Slot) => `connection-${connection}`

  /** @returns whether the request succeeded. */
  const check = (name: string, { status, body }: Answer<object>, expected: readonly string[]): boolean => {
    const code = (body as Partial<ErrorBody>).error?.code
    const key = `${name}: ${status}${code ? ` ${code}` : ''}`
    replies.set(key, (replies.get(key) ?? 0) + 1)
    // A busy machine: a lock or an answer of Postgres took longer than a client waits.
    const isExpected = code === 'temporarily_unavailable' || expected.includes(code ?? '')
    if (status >= 300 && !isExpected) onUnexpected(`${name} got ${status} ${JSON.stringify(body)}`)
    return status < 300
  }
  const refusals = ['capacity_exhausted', 'relay_limit_reached']
  const takeStart = (slot: Slot, answer: Answer<OneSession>): void => {
    if (!check('start', answer, refusals)) return
    const { session_id: sessionId } = answer.body.session
    accepted.add(sessionId)
    sessions.set(keyOf(slot), sessionId)
  }
  const start = async (slot: Slot, region?: string, key: string = randomUUID()) => {
    stopping.delete(keyOf(slot))
    const body = { connection_id: connectionOf(slot), ...(region ? { region } : {}) }
    takeStart(slot, await userOf(slot).start(body, key))
  }

  return {
    accepted,
    replies,
    start: (slot, region) => start(slot, region),
    startTwice: async (slot, region) => {
      const key = randomUUID()
      await Promise.all([start(slot, region, key), start(slot, region, key)])
    },
    stop: async (slot, isImmediate) => {
      const body = { connection_id: connectionOf(slot), immediate: isImmediate }
      stopping.set(keyOf(slot), slot)
      check('stop', await userOf(slot).stop(body), ['not_found'])
    },
    startAgain: async (position) => {
      const slots = [...stopping.values()].slice(-20)
      const slot = slots[Math.floor(position * slots.length)]
      if (slot) await start(slot)
    },
    disconnect: async (position) => {
      const ids = [...sessions.values()]
      const sessionId = ids[Math.floor(position * ids.length)]
      if (!sessionId) return
      const path = `/admin/sessions/${sessionId}/disconnect`
      check('disconnect', await api.post(path, { reason: 'simulation' }, { headers: operator }), [])
    },
    setDrained: async (region, isDrained) => {
      const path = `/admin/regions/${region}/${isDrained ? 'drain' : 'resume'}`
      check(isDrained ? 'drain' : 'resume', await api.post(path, {}, { headers: operator }), [])
    },
    stopAll: async () => {
      await Promise.all(
        users.map(async (user, index) => {
          for (const { session_id } of (await user.active()).sessions)
            check('stop', await user.stop({ session_id, immediate: index % 2 === 0 }), [])
        }),
      )
    },
    listUsage: () =>
      Promise.all(
        users.map(async ({ userId, bearer }) => {
          const { body } = await api.get<{ consumed_seconds: number; active_sessions: number }>('/usage/current', {
            bearer,
          })
          return { userId, seconds: body.consumed_seconds, activeSessions: body.active_sessions }
        }),
      ),
  }
}
