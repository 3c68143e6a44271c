/** Rules of sessions: starts, connections, transitions, instances, and work that is left. */
import type { Evidence, SessionRow } from './evidence.ts'

export function findStartViolations({ journal, sessions }: Evidence): string[] {
  const byId = new Map(sessions.map((row) => [row.id, row]))
  const byKey = new Map<string, string>()
  return journal.starts.flatMap(({ sessionId, key, userId, connectionId }) => {
    const row = byId.get(sessionId)
    const first = byKey.get(key) ?? sessionId
    byKey.set(key, first)
    if (!row) return [`session ${sessionId} was accepted and has no row`]
    if (first !== sessionId) return [`the key ${key} gave the sessions ${first} and ${sessionId}`]
    if (row.userId !== userId || row.connectionId !== connectionId)
      return [`session ${sessionId} was accepted for ${connectionId} of ${userId}, and belongs to another`]
    if (row.state === 'stopped' && row.reason !== 'start_requested') return []
    return [`session ${sessionId} is ${row.state} (${row.reason}), expected stopped with the reason of its end`]
  })
}

/** A session that was ordered to disconnect makes room for the next one at once. */
export const occupiedUntil = ({ command, commandedAt, stoppedAt }: SessionRow): number =>
  Math.min(command === 'disconnect' ? commandedAt : Number.POSITIVE_INFINITY, stoppedAt ?? Number.POSITIVE_INFINITY)

export function findConnectionViolations({ sessions }: Evidence): string[] {
  const last = new Map<string, SessionRow>()
  return sessions
    .toSorted((a, b) => a.createdAt - b.createdAt)
    .flatMap((row) => {
      const name = `${row.userId}/${row.connectionId}`
      const before = last.get(name)
      last.set(name, row)
      if (!before || occupiedUntil(before) <= row.createdAt) return []
      const millis = Math.round(occupiedUntil(before) - row.createdAt)
      return [`connection ${name} has the sessions ${before.id} and ${row.id} at once for ${millis} ms`]
    })
}

/** The five transitions of the specification, written down again. */
const legal = ['provisioning>active', 'provisioning>stopped', 'active>grace', 'grace>active', 'grace>stopped'] as const

export function findTransitionViolations({ sessions, transitions }: Evidence): string[] {
  return sessions.flatMap(({ id, state, version, reason }) => {
    const rows = transitions.filter(({ sessionId }) => sessionId === id)
    const broken = rows.flatMap((row, index) => {
      const text = `session ${id}, version ${row.version}: ${row.fromState} to ${row.toState} (${row.reason})`
      const before = rows[index - 1]
      return [
        ...(legal.some((transition) => transition === `${row.fromState}>${row.toState}`)
          ? []
          : [`${text} is not legal`]),
        ...(row.version === index + 1 ? [] : [`${text}, expected version ${index + 1}`]),
        ...(row.fromState === (before?.toState ?? 'provisioning') ? [] : [`${text} follows ${before?.toState}`]),
        ...(before && row.at < before.at ? [`${text} is earlier than the transition before it`] : []),
      ]
    })
    const last = rows.at(-1)
    const isLast = last ? last.toState === state && last.reason === reason : state === 'provisioning'
    if (version !== rows.length || !isLast)
      broken.push(
        `session ${id} is ${state} with version ${version} after ${rows.length} transitions to ${last?.toState}`,
      )
    return broken
  })
}

/** Timestamps of Postgres are those of the begin of the transaction, and the cloud's are rounded. */
const toleranceMillis = 50

export function findInstanceViolations({ instances, cloudInstances, processes }: Evidence): string[] {
  const rows = new Set(instances.map(({ instanceId }) => instanceId))
  const inCloud = new Map(cloudInstances.map((instance) => [instance.instanceId, instance]))
  const left = [
    ...cloudInstances.filter(({ endedAt }) => endedAt === null),
    ...processes.filter(({ instanceId }) => !cloudInstances.some((instance) => instance.instanceId === instanceId)),
  ].map(({ instanceId, sessionId }) => `instance ${instanceId} of session ${sessionId} is left`)
  const stored = instances
    .filter(({ goneAt }) => goneAt === null)
    .map(({ instanceId, sessionId }) => `the row of instance ${instanceId} of session ${sessionId} says that it exists`)
  const unknown = cloudInstances
    .filter(({ instanceId }) => !rows.has(instanceId))
    .map(({ instanceId }) => `instance ${instanceId} was created without a row`)
  const lives = instances.map(({ instanceId, sessionId, ownedFrom, retiredAt, goneAt }) => {
    const { createdAt = ownedFrom, endedAt = null } = inCloud.get(instanceId) ?? {}
    const ends = [retiredAt, goneAt, endedAt].map((at) => at ?? Number.POSITIVE_INFINITY)
    return { instanceId, sessionId, from: Math.max(createdAt, ownedFrom), until: Math.min(...ends) }
  })
  const doubles = lives.flatMap((life, index) =>
    lives
      .slice(index + 1)
      .filter((other) => life.sessionId !== null && other.sessionId === life.sessionId)
      .filter((other) => Math.min(life.until, other.until) - Math.max(life.from, other.from) > toleranceMillis)
      .map((other) => `session ${life.sessionId} has the instances ${life.instanceId} and ${other.instanceId} at once`),
  )
  return [...left, ...stored, ...unknown, ...doubles]
}

export function findStuckWork({ sessions, events, openWorkflows }: Evidence): string[] {
  const stopped = new Set(sessions.filter(({ state }) => state === 'stopped').map(({ id }) => `relay-session/${id}`))
  return [
    ...openWorkflows.filter((id) => stopped.has(id)).map((id) => `workflow ${id} runs, and its session is stopped`),
    ...openWorkflows
      .filter((id) => !sessions.some((row) => id === `relay-session/${row.id}`))
      .map((id) => `workflow ${id} has no session`),
    ...sessions
      .filter(({ commandSeq, commandDeliveredSeq }) => commandSeq !== commandDeliveredSeq)
      .map(({ id, command, commandSeq }) => `command ${commandSeq} (${command}) of session ${id} is not delivered`),
    ...events
      .filter(({ status, error }) => ['pending', 'unresolved'].includes(status) || (status === 'parked' && !error))
      .map(({ eventKey, status }) => `billing event ${eventKey} is ${status}`),
  ]
}
