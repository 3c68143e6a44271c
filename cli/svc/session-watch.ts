/** `svc sessions watch`: a line for each change of a session. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, ApiUnreachableError, expectSuccess } from '../../client/api-error.ts'
import type { ApiClient } from '../../client/client.ts'
import { listLiveSessions, type Session } from '../live-sessions.ts'
import { readAccountId } from './accounts.ts'
import { byId, defined } from './commands.ts'
import { connect } from './connection.ts'
import type { GlobalOptions } from './options.ts'
import { formatCell, formatTime, printLine, printRemark } from './output.ts'

export interface WatchOptions extends GlobalOptions {
  readonly region?: string
  readonly user?: string
  /** Seconds. */
  readonly interval: number
}

/** Ends after Ctrl-C, or when the session with the id has stopped. Rejects when the first request fails. */
export async function watchSessions(id: string | undefined, options: WatchOptions): Promise<void> {
  const api = await connect(options)
  const readSessions = id === undefined ? await liveSessionsReader(api, options) : sessionReader(api, id)
  const print = options.json ? printSessionJson : printSession
  const interrupted = new AbortController()
  const { signal } = interrupted
  void Promise.race([once(process, 'SIGINT', { signal }), once(process, 'SIGTERM', { signal })]).then(
    () => interrupted.abort(),
    () => {},
  )
  const shown = new Map<string, string>()
  let sessions: readonly Session[] | undefined = await readSessions([])
  while (!signal.aborted) {
    for (const session of sessions ?? []) {
      const text = describe(session)
      if (shown.get(session.session_id) !== text) print(session)
      if (session.state === 'stopped') shown.delete(session.session_id)
      else shown.set(session.session_id, text)
    }
    if (id !== undefined && sessions?.some(({ state }) => state === 'stopped')) return interrupted.abort()
    await sleep(options.interval * 1000, undefined, { signal }).catch(() => {})
    if (!signal.aborted) sessions = await readSessions([...shown.keys()]).catch(remarkOutage)
  }
}

/** Reads the sessions, and those with the ids that were live before. */
type SessionsReader = (liveBefore: readonly string[]) => Promise<readonly Session[]>

const sessionReader =
  (api: ApiClient, id: string): SessionsReader =>
  async () => [(await inspectSession(api, id)).session]

async function liveSessionsReader(api: ApiClient, { region, user }: WatchOptions): Promise<SessionsReader> {
  const filter = defined({ region, user_id: user && (await readAccountId(api, user)) })
  return async (liveBefore) => {
    const live = await listLiveSessions(api, { filter })
    const gone = liveBefore.filter((id) => live.every(({ session_id }) => session_id !== id))
    const ended: Session[] = []
    for (const id of gone) ended.push((await inspectSession(api, id)).session)
    return [...live, ...ended]
  }
}

const inspectSession = async (api: ApiClient, id: string) =>
  expectSuccess(await api.GET('/api/v1/admin/sessions/{id}', byId(id)), describeInspection(id))

/** The start of an error. */
export const describeInspection = (id: string): string => `The request for ${id}`

/** An outage of the API does not end the command, and neither does a refusal for a time. */
function remarkOutage(error: unknown): undefined {
  const isOutage = error instanceof ApiUnreachableError || (error instanceof ApiError && error.status >= 429)
  if (!isOutage) throw error
  printRemark(`${(error as Error).message}; trying again`)
}

const streamOf = ({ ingest }: Session): string => (ingest?.publishing ? 'receives a stream' : 'receives nothing')

/** What a line depends on. */
const describe = (session: Session): string => [session.state, session.reason, streamOf(session)].join(' ')

function printSession(session: Session): void {
  const { session_id: id, state, reason, region } = session
  const at = formatTime(new Date().toISOString())
  printLine([at, id, state.padEnd(12), region, reason, streamOf(session)].map(formatCell).join('  '))
}

const printSessionJson = (session: Session): void => printLine(JSON.stringify(session))
