/**
 * Counts received datagrams per remote address, and returns them in the format of srtla's statistics. The caller passes the time,
 * in milliseconds of a clock that never goes back.
 */

/** One network path of an encoder. */
export interface LinkStats {
  readonly addr: string
  readonly bytes: number
  readonly pkts: number
  /** The share of the bytes of all present links, in percent with one decimal. */
  readonly share_pct: number
  readonly last_ms_ago: number
  readonly uptime_s: number
}

export interface GroupStats {
  readonly id: string
  readonly conn_count: number
  /** Including removed links, so that it never decreases while a stream runs. */
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
  /** A link without data for longer is removed. */
  readonly idleMillisMax: number
  /** Sender addresses can be forged. Above this number of links in a group, the one without data for the longest time is removed. */
  readonly linksMax: number
}

export class Stats {
  readonly #groups = new Map<string, Group>()
  readonly #limits: StatsLimits

  constructor(limits: StatsLimits = { idleMillisMax: 60_000, linksMax: 64 }) {
    this.#limits = limits
  }

  /** @param group the port that received the datagram. */
  count(group: string, addr: string, bytes: number, now: number): void {
    let counted = this.#groups.get(group)
    if (!counted) {
      counted = { totalBytes: 0, links: new Map() }
      this.#groups.set(group, counted)
    }
    let link = counted.links.get(addr)
    if (!link) {
      if (counted.links.size >= this.#limits.linksMax) counted.links.delete(findLongestIdle(counted.links))
      link = { bytes: 0, pkts: 0, firstAt: now, lastAt: now }
      counted.links.set(addr, link)
    }
    link.bytes += bytes
    link.pkts += 1
    link.lastAt = now
    counted.totalBytes += bytes
  }

  /** The present groups and links. Removes links that have been idle for too long. */
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

function findLongestIdle(links: ReadonlyMap<string, Link>): string {
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
