/** The relay time of a cycle by day and by connection. */

/** The relay time of one connection on one day, in microseconds, which is the precision of the database. */
export interface UsagePart {
  /** `2026-11-22`, in UTC. */
  readonly day: string
  /** Null for all connections that are not listed by name. */
  readonly connectionId: string | null
  readonly micros: number
}

export interface ConnectionSeconds {
  readonly connectionId: string | null
  readonly seconds: number
}

export interface UsageDay {
  readonly day: string
  readonly seconds: number
  readonly connections: readonly ConnectionSeconds[]
}

/**
 * Rounds the parts to whole seconds, so that they add up to the whole seconds of their sum: each part gets the seconds
 * that complete with it when all are added up in this order.
 */
export function toUsageDays(parts: readonly UsagePart[]): UsageDay[] {
  const days = new Map<string, ConnectionSeconds[]>()
  let micros = 0
  for (const part of parts) {
    const seconds = wholeSeconds(micros + part.micros) - wholeSeconds(micros)
    micros += part.micros
    const connections = days.get(part.day) ?? []
    connections.push({ connectionId: part.connectionId, seconds })
    days.set(part.day, connections)
  }
  return [...days].map(([day, connections]) => ({ day, seconds: sumSeconds(connections), connections }))
}

/** The sum of each connection over all days, the largest first and the unnamed ones last. */
export function sumByConnection(days: readonly UsageDay[]): ConnectionSeconds[] {
  const sums = new Map<string | null, number>()
  for (const { connectionId, seconds } of days.flatMap(({ connections }) => connections))
    sums.set(connectionId, (sums.get(connectionId) ?? 0) + seconds)
  return [...sums]
    .map(([connectionId, seconds]) => ({ connectionId, seconds }))
    .sort((a, b) => Number(a.connectionId === null) - Number(b.connectionId === null) || b.seconds - a.seconds)
}

const wholeSeconds = (micros: number): number => Math.floor(micros / 1_000_000)

const sumSeconds = (all: readonly ConnectionSeconds[]): number => all.reduce((sum, { seconds }) => sum + seconds, 0)
