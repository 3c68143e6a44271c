/**
 * Reports of relays without a session. The report of one that has nothing to do yet waits for its assignment, so that a
 * start on a warm instance needs no polling. Postgres sends the assignment (NOTIFY), after which the row of its
 * instance is read. As it can be lost together with the connection, the rows of all waiting instances are also read
 * periodically.
 */
import type { Socket } from 'node:net'
import type { Database } from '../../db/connection.ts'
import {
  listenForAssignments,
  readUnboundInstances,
  recordUnboundReports,
  type UnboundInstance,
} from '../../db/fleet/unbound-instances.ts'
import { assignmentStatus } from '../../domain/fleet/instance-assignment.ts'
import { batch } from '../../platform/batch.ts'
import type { Logger } from '../../platform/log.ts'
import { startPeriodicTask } from '../../platform/periodic-task.ts'

/** The most reports that wait at a time. Further ones are answered at once. */
const defaultWaitingMax = 4096
const defaultRereadSeconds = 2
const batchLimits = { sizeMax: 1000, concurrencyMax: 1 }
const readFailure = 'the assignments of waiting relays were not read'

/**
 * - `answered`: the instance has an assignment, should stop, or is unknown
 * - `waited`: nothing happened within the time that the relay wanted to wait
 * - `interrupted`: the process stops, so the relay should report to another one, or the connection was closed
 * - `not_waited`: the report did not wait, or a newer one of its instance replaced it
 */
type ReportEnd = 'answered' | 'waited' | 'interrupted' | 'not_waited'

export interface ReportOutcome {
  readonly end: ReportEnd
  /** As it was read last; undefined if it is unknown. */
  readonly instance: UnboundInstance | undefined
  readonly waitedSeconds: number
}

export interface UnboundReport {
  readonly instanceId: string
  readonly waitSeconds: number
  /** The connection of the report, which stops waiting when it closes. */
  readonly socket: Socket
}

export interface Assignments {
  /** Stores the report, and waits if the instance has nothing to do yet. */
  report(report: UnboundReport): Promise<ReportOutcome>
  countWaiting(): number
  /** Answers all waiting reports. Later ones do not wait. */
  stop(): Promise<void>
}

interface Deps {
  readonly sql: Database
  readonly log: Logger
  readonly waitingMax?: number
  /** How often the rows of all waiting instances are read. */
  readonly rereadSeconds?: number
}

export function createAssignments({
  sql,
  log,
  waitingMax = defaultWaitingMax,
  rereadSeconds = defaultRereadSeconds,
}: Deps): Assignments {
  const waits = new Map<string, Wait>()
  let isStopped = false
  const record = batch((ids: string[]) => recordUnboundReports(sql, ids), batchLimits)
  const read = batch((ids: string[]) => readUnboundInstances(sql, ids), batchLimits)

  const reread = async (instanceId: string) => {
    const instance = await read(instanceId)
    if (!isUnassigned(instance)) waits.get(instanceId)?.end('answered', instance)
  }
  const rereadAll = () => Promise.all([...waits.keys()].map(reread))
  const logFailure = (error: unknown) => log.warn({ err: error }, readFailure)

  listenForAssignments(sql, {
    onAssigned: (instanceId) => {
      if (waits.has(instanceId)) reread(instanceId).catch(logFailure)
    },
    onListening: () => rereadAll().catch(logFailure),
  }).catch((error: unknown) =>
    log.warn({ err: error }, 'assignments of instances are read periodically only, until Postgres can be reached'),
  )
  const periodic = startPeriodicTask({
    everySeconds: rereadSeconds,
    log,
    failure: { message: readFailure },
    run: rereadAll,
  })

  /** The wait begins before the row is read: an assignment that the read does not contain notifies after it. */
  const recordAndWait = async ({ instanceId, waitSeconds, socket }: UnboundReport): Promise<ReportOutcome> => {
    const wait = startWait({ waitSeconds, socket })
    waits.set(instanceId, wait)
    try {
      const instance = await record(instanceId)
      if (!isUnassigned(instance)) return { end: 'answered', instance, waitedSeconds: 0 }
      const startedAt = performance.now()
      const ended = await wait.ended
      const found = ended.end === 'answered' ? ended.instance : instance
      return { end: ended.end, instance: found, waitedSeconds: (performance.now() - startedAt) / 1000 }
    } finally {
      wait.end('not_waited')
      if (waits.get(instanceId) === wait) waits.delete(instanceId)
    }
  }

  const recordOnly = async (instanceId: string): Promise<ReportOutcome> => {
    const instance = await record(instanceId)
    const end = isUnassigned(instance) ? (isStopped ? 'interrupted' : 'not_waited') : 'answered'
    return { end, instance, waitedSeconds: 0 }
  }

  return {
    report: (report) => {
      // The relay has connected again.
      waits.get(report.instanceId)?.end('not_waited')
      const canWait = !isStopped && report.waitSeconds > 0 && waits.size < waitingMax
      return canWait ? recordAndWait(report) : recordOnly(report.instanceId)
    },
    countWaiting: () => waits.size,
    stop: async () => {
      isStopped = true
      for (const wait of waits.values()) wait.end('interrupted')
      await periodic.stop()
    },
  }
}

interface Ended {
  readonly end: ReportEnd
  /** Stated by `answered` only. */
  readonly instance: UnboundInstance | undefined
}

interface Wait {
  readonly ended: Promise<Ended>
  /** The first call counts. */
  end(end: ReportEnd, instance?: UnboundInstance): void
}

function startWait({ waitSeconds, socket }: Pick<UnboundReport, 'waitSeconds' | 'socket'>): Wait {
  let resolve: (ended: Ended) => void
  const ended = new Promise<Ended>((resolveEnded) => {
    resolve = resolveEnded
  })
  const end: Wait['end'] = (how, instance) => {
    clearTimeout(timeout)
    socket.off('close', onClose)
    resolve({ end: how, instance })
  }
  const onClose = () => end('interrupted')
  const timeout = setTimeout(() => end('waited'), waitSeconds * 1000)
  socket.once('close', onClose)
  return { ended, end }
}

const isUnassigned = (instance: UnboundInstance | undefined): boolean =>
  instance !== undefined && assignmentStatus(instance) === 'unassigned'
