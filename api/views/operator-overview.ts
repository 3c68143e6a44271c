/** The health of the service for operators, in one object. */
import { readInboxFigures } from '../../db/billing/events.ts'
import type { Sql } from '../../db/connection.ts'
import { countOrphans } from '../../db/fleet/orphans.ts'
import { listRegionRows } from '../../db/fleet/regions.ts'
import { readOutboxFigures } from '../../db/notifications/outbox.ts'
import { type JobRow, listJobs } from '../../db/operations/jobs.ts'
import { readMinutes, readProvisioningTimes } from '../../db/operations/last-hour.ts'
import { countAliveWorkers } from '../../db/operations/workers.ts'
import { countUndeliveredCommands } from '../../db/relay/commands.ts'
import { countLiveRelaySessions } from '../../db/relay/sessions.ts'
import { capacityStatusOf } from '../../domain/fleet/regions.ts'
import type { RegionConfig } from '../../platform/config/regions.ts'
import { memoizeWithTtl } from '../../platform/memoize-with-ttl.ts'

export type OperatorOverview = Awaited<ReturnType<typeof readOverview>>
export type FindOperatorOverview = () => Promise<OperatorOverview>

/** Consoles in several windows refresh themselves, and share the work for it. */
const ageMillisMax = 1000

export const createFindOperatorOverview = (sql: Sql, regions: readonly RegionConfig[]): FindOperatorOverview =>
  memoizeWithTtl(ageMillisMax, () => readOverview(sql, regions))

async function readOverview(sql: Sql, regions: readonly RegionConfig[]) {
  const asOf = new Date()
  const names = regions.map(({ region }) => region)
  const [live, minutes, provisioning, commands, inbox, jobs, workersAlive, outbox, orphans, regionRows] =
    await Promise.all([
      countLiveRelaySessions(sql),
      readMinutes(sql),
      readProvisioningTimes(sql),
      countUndeliveredCommands(sql),
      readInboxFigures(sql),
      listJobs(sql),
      countAliveWorkers(sql),
      readOutboxFigures(sql),
      countOrphans(sql),
      listRegionRows(sql, names),
    ])
  return {
    asOf,
    minutes,
    provisioning,
    commands,
    inbox,
    workersAlive,
    sessionsByState: (state: string) =>
      sum(live.filter((figure) => figure.state === state).map((figure) => figure.sessions)),
    jobs: { total: jobs.length, overdue: namesOf(jobs, isOverdue(asOf)), failing: namesOf(jobs, isFailing) },
    outbox: {
      pending: sum(outbox.map(({ pending }) => pending)),
      failed: sum(outbox.map(({ failed }) => failed)),
      oldestSeconds: Math.max(0, ...outbox.map(({ oldestSeconds }) => oldestSeconds)),
    },
    orphans: {
      instances: sum(orphans.map((figure) => figure.orphans)),
      oldestSeconds: Math.max(0, ...orphans.map(({ oldestSeconds }) => oldestSeconds)),
    },
    regions: regions.flatMap((region) =>
      regionRows
        .filter((row) => row.region === region.region)
        .map((row) => ({ region, row, status: capacityStatusOf(region, row) })),
    ),
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

const namesOf = (jobs: readonly JobRow[], has: (job: JobRow) => boolean): string[] =>
  jobs.filter(has).map(({ name }) => name)

/** A due job is started within seconds while a worker is alive. */
const startSecondsMax = 30

const isOverdue = (now: Date) => (job: JobRow) =>
  job.leasedUntil === null && now.getTime() - job.dueAt.getTime() > startSecondsMax * 1000

const isFailing = (job: JobRow): boolean => job.lastError !== null
