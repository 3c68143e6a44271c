/** The health of the service as tiles: one figure each, marked when it needs attention. */
import type { ComponentChildren } from 'preact'
import type { Reply } from '../../client/reply.ts'
import { formatDuration } from '../time-text.tsx'

export type Overview = Reply<'get', '/admin/overview'>

type Health = 'good' | 'warn' | 'bad'

/** From when on a wait needs attention, in seconds: the jobs that end it run every few seconds. */
const commandSecondsMax = 30
const billingSecondsMax = 60
const messageSecondsMax = 600
const orphanSecondsMax = 900

const words: Readonly<Record<Health, string>> = { good: 'OK', warn: 'Attention', bad: 'Failing' }

interface TileProps {
  readonly name: string
  readonly label: string
  readonly value: ComponentChildren
  readonly note: string
  readonly health?: Health
  readonly href?: string
}

const Tile = ({ name, label, value, note, health = 'good', href }: TileProps) => (
  <li class="tile" data-tile={name} data-health={health}>
    <span class="row apart">
      <span class="tile-label">{href ? <a href={href}>{label}</a> : label}</span>
      {/* Only what needs attention stands out. */}
      <span class={health === 'good' ? 'unseen' : `badge ${health}`}>{words[health]}</span>
    </span>
    <span class="tile-value">{value}</span>
    <span class="tile-note">{note}</span>
  </li>
)

const healthOf = (isBad: boolean, isWarn: boolean): Health => (isBad ? 'bad' : isWarn ? 'warn' : 'good')

export const OverviewTiles = ({ overview }: { readonly overview: Overview }) => (
  <ul class="tiles">
    <RelayTiles overview={overview} />
    <WaitingTiles overview={overview} />
    <InfrastructureTiles overview={overview} />
  </ul>
)

const RelayTiles = ({ overview: { sessions, provisioning } }: { readonly overview: Overview }) => (
  <>
    <Tile
      name="live"
      label="Live relays"
      href="/operator/sessions"
      value={sessions.provisioning + sessions.active + sessions.grace}
      note={`${sessions.active} active, ${sessions.provisioning} starting, ${sessions.grace} in grace`}
    />
    <Tile
      name="provisioning"
      label="Start of a relay, p95"
      value={provisioning.p95_seconds === null ? '–' : formatSeconds(provisioning.p95_seconds)}
      note={
        provisioning.p50_seconds === null
          ? 'No start in the last hour'
          : `p50 ${formatSeconds(provisioning.p50_seconds)}; in the last hour: ${provisioning.sessions}`
      }
    />
  </>
)

const WaitingTiles = ({ overview: { commands, billing_events, outbox } }: { readonly overview: Overview }) => (
  <>
    <Tile
      name="commands"
      label="Undelivered commands"
      value={commands.undelivered}
      note={waitingNote(commands.undelivered, commands.oldest_seconds)}
      health={healthOf(commands.oldest_seconds > commandSecondsMax, false)}
    />
    <Tile
      name="billing"
      label="Billing events to check"
      href="/operator/billing"
      value={billing_events.parked + billing_events.dead}
      note={`${billing_events.parked} parked, ${billing_events.dead} dead, ${billing_events.pending + billing_events.unresolved} pending`}
      health={healthOf(
        billing_events.oldest_pending_seconds > billingSecondsMax,
        billing_events.parked + billing_events.dead > 0,
      )}
    />
    <Tile
      name="outbox"
      label="Messages to send"
      value={outbox.pending}
      note={`${waitingNote(outbox.pending, outbox.oldest_seconds)}, ${outbox.failed} given up in 24 hours`}
      health={healthOf(false, outbox.failed > 0 || outbox.oldest_seconds > messageSecondsMax)}
    />
  </>
)

const InfrastructureTiles = ({ overview: { workers, jobs, orphans } }: { readonly overview: Overview }) => (
  <>
    <Tile
      name="workers"
      label="Workers"
      value={workers.alive}
      note={workers.alive === 0 ? 'No worker runs: no relay starts or ends' : 'with a recent heartbeat'}
      health={healthOf(workers.alive === 0, false)}
    />
    <Tile
      name="jobs"
      label="Jobs to check"
      href="/operator/jobs"
      value={new Set([...jobs.overdue, ...jobs.failing]).size}
      note={`${jobs.overdue.length} overdue, ${jobs.failing.length} failing, ${jobs.total} in all`}
      health={healthOf(jobs.overdue.length > 0, jobs.failing.length > 0)}
    />
    <Tile
      name="orphans"
      label="Orphans"
      href="/operator/instances?orphans=true"
      value={orphans.instances}
      note={waitingNote(orphans.instances, orphans.oldest_seconds)}
      health={healthOf(orphans.oldest_seconds > orphanSecondsMax, orphans.instances > 0)}
    />
  </>
)

const waitingNote = (count: number, oldestSeconds: number): string =>
  count === 0 ? 'none' : `oldest for ${formatDuration(oldestSeconds)}`

/** `0.4 s`, `12 s`, `2 min`. */
const formatSeconds = (seconds: number): string =>
  seconds < 10 ? `${seconds.toFixed(1)} s` : formatDuration(Math.round(seconds))
