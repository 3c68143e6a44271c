/**
 * Counts what arrives, per remote address, and shows it in srtla's shape. Knows no sockets and no clock: each call is told
 * the time, in milliseconds, from a clock that never goes back.
 */

/** One network path of an encoder. */
export interface LinkStats {
  readonly addr: string
  readonly bytes: number
  readonly pkts: number
  /** Of the group's bytes that its present links brought, with one decimal. */
  readonly share_pct: number
  readonly last_ms_ago: number
  readonly uptime_s: number
}

export interface GroupStats {
  readonly id: string
  readonly conn_count: number
  /** Since the group's first link came, gone links included, so that it never falls while a stream runs. */
  readonly total_bytes: number
  readonly connections: readonly LinkStats[]
}

export interface StatsReply {
  /** Milliseconds since 1970. */
  readonly ts: number
  readonly groups: readonly GroupStats[]
}

interface Link {
  bytes: number
  pkts: number
  readonly firstAt: number
  lastAt: number
}

interface Group {
  totalBytes: number
  readonly links: Map<string, Link>
}

export interface StatsLimits {
  /** A link that was silent for longer is forgotten. */
  readonly idleMillisMax: number
  /** Anybody can send from any number of forged addresses; beyond this many in a group the longest silent gives way. */
  readonly linksMax: number
}

export class Stats {
  readonly #groups = new Map<string, Group>()
  readonly #limits: StatsLimits

  constructor(limits: StatsLimits = { idleMillisMax: 60_000, linksMax: 64 }) {
    this.#limits = limits
  }

  /** @param group the links that belong together: those that reach the same port. */
  count(group: string, addr: string, bytes: number, now: number): void {
    let known = this.#groups.get(group)
    if (!known) {
      known = { totalBytes: 0, links: new Map() }
      this.#groups.set(group, known)
    }
    let link = known.links.get(addr)
    if (!link) {
      if (known.links.size >= this.#limits.linksMax) known.links.delete(longestSilent(known.links))
      link = { bytes: 0, pkts: 0, firstAt: now, lastAt: now }
      known.links.set(addr, link)
    }
    link.bytes += bytes
    link.pkts += 1
    link.lastAt = now
    known.totalBytes += bytes
  }

  /** What is present now; forgets what has been idle for too long. */
  show(now: number): StatsReply {
    const groups: GroupStats[] = []
    for (const [id, group] of this.#groups) {
      for (const [addr, link] of group.links) {
        if (now - link.lastAt > this.#limits.idleMillisMax) group.links.delete(addr)
      }
      if (group.links.size === 0) this.#groups.delete(id)
      else groups.push(showGroup(id, group, now))
    }
    return { ts: Math.round(now), groups }
  }
}

function showGroup(id: string, group: Group, now: number): GroupStats {
  const links = [...group.links]
  const present = links.reduce((sum, [, link]) => sum + link.bytes, 0)
  return {
    id,
    conn_count: links.length,
    total_bytes: group.totalBytes,
    connections: links.map(([addr, link]) => ({
      addr,
      bytes: link.bytes,
      pkts: link.pkts,
      share_pct: present === 0 ? 0 : Math.round((link.bytes / present) * 1000) / 10,
      last_ms_ago: Math.round(now - link.lastAt),
      uptime_s: Math.floor((now - link.firstAt) / 1000),
    })),
  }
}

function longestSilent(links: ReadonlyMap<string, Link>): string {
  let found = ''
  let lastAt = Number.POSITIVE_INFINITY
  for (const [addr, link] of links) {
    if (link.lastAt < lastAt) {
      found = addr
      lastAt = link.lastAt
    }
  }
  return found
}
