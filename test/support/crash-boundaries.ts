/**
 * Kills a worker at the boundaries of its work: at each stage of a request to its provider, and at each change of a row
 * that matters. No list of them is needed: each run kills the worker at the first boundary that no run before it has.
 */
import type { Database } from '../../db/connection.ts'
import type { HetznerServer, ReceivedRequest } from './hetzner-server.ts'
import type { Program } from './programs.ts'

export interface CrashBoundaries {
  /** Repeats the scenario until it passes without a kill. @returns the boundaries of the kills. */
  walk(scenario: () => Promise<void>): Promise<string[]>
}

const channel = 'crash_boundary'

/** Changes of rows. They are notified at the commit, so the worker is killed right after it. */
const createTriggers = `
  create function report_boundary() returns trigger language plpgsql as $$
    begin perform pg_notify('${channel}', tg_argv[0] || coalesce(to_jsonb(new) ->> 'to_state', '')); return null; end $$;
  create trigger boundary after insert on relay_sessions for each row
    execute function report_boundary('session stored');
  create trigger boundary_bound after update on relay_sessions for each row
    when (new.instance_id is not null and old.instance_id is distinct from new.instance_id)
    execute function report_boundary('instance bound');
  create trigger boundary after insert on relay_transitions for each row
    execute function report_boundary('transition to ');
  create trigger boundary after insert on instances for each row
    execute function report_boundary('instance reserved');
  create trigger boundary_launched after update on instances for each row
    when (old.launched_at is null and new.launched_at is not null)
    execute function report_boundary('launch recorded');
  create trigger boundary_gone after update on instances for each row
    when (old.gone_at is null and new.gone_at is not null)
    execute function report_boundary('instance gone')`

/** @param sql a pool of the worker's database. */
export async function watchBoundaries(
  worker: Program,
  cloud: HetznerServer,
  sql: Database,
  /** Called for requests that are not dropped. */
  onStage: NonNullable<HetznerServer['onStage']> = async () => undefined,
): Promise<CrashBoundaries> {
  const walked = new Set<string>()
  let killedAt: string | undefined
  let isRunning = false

  const reach = async (boundary: string): Promise<boolean> => {
    if (!isRunning || killedAt !== undefined || walked.has(boundary)) return false
    killedAt = boundary
    await worker.kill()
    worker.start()
    return true
  }

  await sql.unsafe(createTriggers)
  await sql.listen(channel, (boundary) => void reach(boundary))
  cloud.onStage = async (stage, request) => {
    if (isOfJob(request)) return undefined
    // What is done with the reply to a read-only request is one of the next boundaries.
    const isBoundary = stage === 'received' || request.method !== 'GET'
    const isKilled = isBoundary && (await reach(`${nameOf(request, cloud)} ${stage}`))
    if (isKilled && stage === 'received') return 'drop'
    return onStage(stage, request)
  }

  return {
    walk: async (scenario) => {
      isRunning = true
      for (;;) {
        killedAt = undefined
        try {
          await scenario()
        } catch (error) {
          throw new Error(`the run with a kill at "${killedAt}" failed\n${worker.output()}`, { cause: error })
        }
        if (killedAt === undefined) break
        walked.add(killedAt)
      }
      isRunning = false
      return [...walked]
    },
  }
}

/** The sweep of orphans reads the list of all servers, at any time. */
const isOfJob = ({ query }: ReceivedRequest): boolean => query.get('label_selector')?.includes('svc-session') === false

function nameOf({ method, path, query }: ReceivedRequest, { project }: HetznerServer): string {
  const id = /\d+/.exec(path)?.[0]
  if (id === undefined) return `${method} ${path}${query.has('label_selector') ? ' of the session' : ''}`
  return `${method} ${path.replace(id, ':id')}${project.find(Number(id)) || method !== 'GET' ? '' : ' after the deletion'}`
}
