/**
 * The behaviour of NOALBS 2.11, the usual scene switcher: it polls the statistics of a relay each second, and switches
 * the scenes of OBS. It is strict: with one field missing or mistyped a stream counts as offline.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from './at-end.ts'
import type { scenes } from './obs-files.ts'

type Kind = 'i32' | 'u16' | 'u32' | 'u64' | 'number'
type Scene = (typeof scenes)[number]
type Publisher = Readonly<Record<string, unknown>>

export interface PublisherReply {
  readonly publishers: Readonly<Record<string, Publisher>>
  readonly publisher?: Publisher
}

const isOfKind: Readonly<Record<Kind, (value: unknown) => boolean>> = {
  i32: (value) => Number.isInteger(value) && Math.abs(value as number) < 2 ** 31,
  u16: (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 16,
  u32: (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 32,
  u64: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  number: (value) => Number.isFinite(value),
}

interface SwitcherType {
  /** Where it looks for the publisher in the reply. @param key that the user has typed in. */
  readonly find: (reply: PublisherReply, key: string) => Publisher | undefined
  readonly fields: Readonly<Record<string, Kind>>
}

const findByKey: SwitcherType['find'] = ({ publishers }, key) => publishers[key]

/** The types of stream server, with the fields that NOALBS requires and their types. */
export const switcherTypes = {
  SrtLiveServer: {
    find: findByKey,
    fields: {
      bitrate: 'u32',
      uptime: 'u32',
      bytesRcvDrop: 'u64',
      bytesRcvLoss: 'u64',
      mbpsBandwidth: 'number',
      mbpsRecvRate: 'number',
      rtt: 'number',
      msRcvBuf: 'i32',
      pktRcvDrop: 'i32',
      pktRcvLoss: 'i32',
    },
  },
  Belabox: {
    find: findByKey,
    fields: { bitrate: 'u32', rtt: 'number', dropped_pkts: 'u64' },
  },
  OpenIRL: {
    find: ({ publisher }) => publisher,
    fields: { bitrate: 'u32', buffer: 'u32', dropped_pkts: 'u64', latency: 'u16', rtt: 'number', uptime: 'u64' },
  },
} as const satisfies Readonly<Record<string, SwitcherType>>

export type SwitcherTypeName = keyof typeof switcherTypes

/** The required fields of a publisher that are missing or mistyped. */
export const wrongFields = (type: SwitcherTypeName, publisher: Publisher | undefined): string[] =>
  Object.entries(switcherTypes[type].fields)
    .filter(([field, kind]) => !isOfKind[kind as Kind](publisher?.[field]))
    .map(([field]) => field)

export interface SwitcherOptions {
  readonly type: SwitcherTypeName
  /** What it polls. */
  readonly statsUrl: string
  /** The key of the publisher in the reply, which a user types in with the address. */
  readonly publisher: string
  /** At this bitrate and below the scene is `LOW`. */
  readonly lowKbps: number
  readonly switchTo: (scene: Scene) => Promise<unknown>
}

const pollMillis = 1_000
const equalVerdicts = 5

/** Polls to the end of the tests of the file, and switches after five equal verdicts, back from offline at once. */
export function startSceneSwitcher(options: SwitcherOptions) {
  let isOver = false
  let current: Scene | undefined
  let verdict: Scene | undefined
  let times = 0
  const judgements: Scene[] = []
  const poll = async () => {
    const next = await judge(options)
    judgements.push(next)
    times = next === verdict ? times + 1 : 1
    verdict = next
    const isBack = current === 'BRB' && next !== 'BRB'
    if (next === current || (times < equalVerdicts && !isBack)) return
    current = next
    await options.switchTo(next)
  }
  const run = async () => {
    while (!isOver) {
      await poll()
      await sleep(pollMillis)
    }
  }
  const running = run()
  // Reported by its end.
  running.catch(() => {})
  const end = async () => {
    isOver = true
    await running
  }
  atEnd(end)
  return { end, judgements: judgements as readonly Scene[] }
}

async function judge({ type, statsUrl, publisher: key, lowKbps }: SwitcherOptions): Promise<Scene> {
  const reply = await fetch(statsUrl, { signal: AbortSignal.timeout(pollMillis) })
    .then((response) => response.json() as Promise<PublisherReply>)
    .catch(() => undefined)
  const publisher = reply && switcherTypes[type].find(reply, key)
  if (wrongFields(type, publisher).length > 0) return 'BRB'
  return Number(publisher?.bitrate) <= lowKbps ? 'LOW' : 'LIVE'
}
