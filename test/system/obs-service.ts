/** The whole service with local relays and an OBS that plays their streams, for the tests in `obs*.test.ts`. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SessionView } from '../../api/views/relay-session.ts'
import { connectPostgres, type Database } from '../../db/connection.ts'
import { startEmbeddedPostgres } from '../../platform/embedded/postgres.ts'
import { createLog } from '../../platform/log.ts'
import { relayFolderOf } from '../../providers/relay/local-relays.ts'
import { atEnd } from '../support/at-end.ts'
import { makeFolder, removeFolder } from '../support/folders.ts'
import { startObs } from '../support/obs.ts'
import { addMediaSource, removeInput } from '../support/obs-inputs.ts'
import { type PictureWatch, watchPicture } from '../support/obs-picture.ts'
import { type PictureStream, type PictureStreamOptions, startPictureStream } from '../support/picture-stream.ts'
import { findFreePort } from '../support/ports.ts'
import { relayProcesses } from '../support/relays.ts'
import { endAll, Stack } from '../support/stack.ts'
import { signInToDemo } from './demo-account.ts'

const pollMillis = 100
const settings = {
  SVC_REGIONS: JSON.stringify([{ region: 'local', display_name: 'Local', provider: 'local', capacity: 20 }]),
  SVC_RATE_LIMITS: 'relay_start=1000,relay_active=10000,relay_stop=1000,relay_history=1000',
}

/** Of the servers that otherwise try the same port first: two services may start at the same moment. */
const portVariables = ['PORT', 'SVC_SITE_PORT', 'SVC_EMBEDDED_TEMPORAL_PORT', 'SVC_EMBEDDED_TEMPORAL_UI_PORT']

async function choosePorts(): Promise<Record<string, string>> {
  const ports: Record<string, string> = {}
  for (const name of portVariables) ports[name] = `${await findFreePort()}`
  return ports
}

export type ObsService = Awaited<ReturnType<typeof startObsService>>

/** An input of OBS that plays the session's stream. */
export interface Playing {
  readonly stream: PictureStream
  readonly watch: PictureWatch
}

/** What a case has begun. */
export interface Begun {
  readonly stream?: PictureStream | undefined
  readonly watch?: PictureWatch | undefined
}

/** Starts everything, and ends it after the tests of the file. */
export async function startObsService() {
  const dataDir = await makeFolder('obs-service-')
  atEnd(async () => {
    await endAll(dataDir)
    await removeFolder(dataDir)
  })
  const variables = { ...settings, ...(await choosePorts()) }
  const startStack = () => new Stack(dataDir, { variables }).ready()
  const [obs, firstStack] = await Promise.all([startObs(), startStack()])
  let stack = firstStack
  let user = await signInToDemo(stack, dataDir)
  const isActive = (session: SessionView | null) => session?.state === 'active'
  const active = () => user.untilSession(isActive, pollMillis)
  const start = async () => {
    await user.start()
    return active()
  }
  const stop = async () => {
    await user.stop()
    await user.untilSession((session) => session === null, pollMillis)
  }
  const publish = async (options?: PictureStreamOptions) =>
    startPictureStream((await active()).connect?.srt_url ?? '', options)
  let inputs = 0
  const play = async (url?: string) => {
    // OBS goes on with a removed input for some seconds, and its name stays taken.
    inputs += 1
    const name = `stream ${inputs}`
    await addMediaSource(obs, { name, url: url ?? (await active()).connect?.player_url ?? '' })
    return watchPicture(obs, name)
  }
  await start()
  return {
    obs,
    dataDir,
    /** The address of the site, which users type. */
    siteUrl: () => stack.site,
    active,
    start,
    stop,
    publish,
    play,
    /** Resolves when OBS shows the stream, for long enough to know the normal age of its pictures. */
    async playing(): Promise<Playing> {
      const [watch, stream] = [await play(), await publish()]
      await watch.untilFresh(Date.now(), 30)
      await watch.untilFresh(Date.now() + 2_500, 30)
      watch.setNormalAge()
      return { stream, watch }
    },
    async clear({ stream, watch }: Begun): Promise<void> {
      await stream?.stop()
      await watch?.end()
      if (watch) await removeInput(obs, watch.inputName)
    },
    /** @returns the session's id and that of its relay, which is gone. */
    async killRelay() {
      const { session_id, instance_id } = await active()
      const relay = relayProcesses(dataDir).find(({ instanceId }) => instanceId === instance_id)
      if (!relay) throw new Error(`${instance_id} has no process`)
      process.kill(relay.pid, 'SIGKILL')
      return { session_id, instance_id }
    },
    untilSession: (isExpected: (session: SessionView | null) => boolean) => user.untilSession(isExpected, pollMillis),
    history: (sessionId: string) => user.history(sessionId),
    relayLog: async () => readFile(join(relayFolderOf(dataDir), `${(await active()).instance_id}.log`), 'utf8'),
    /** Ends the service, moves all times in its database back, and starts it again, so that its clock is ahead. */
    async passDays(days: number): Promise<void> {
      await stack.end('SIGINT')
      await moveTimesBack(join(dataDir, 'postgres'), days)
      stack = await startStack()
      user = await signInToDemo(stack, dataDir)
    },
  }
}

/** Moves each time and date of the database back, as if the days had passed while the service did not run. */
async function moveTimesBack(dir: string, days: number): Promise<void> {
  const server = await startEmbeddedPostgres({ dir, log: createLog('postgres', 'silent') })
  try {
    const sql = connectPostgres(server.url, 1)
    const columns = await listTimeColumns(sql)
    await sql.begin(async (transaction) => {
      // Without triggers and foreign keys: everything moves together.
      await transaction`set local session_replication_role = replica`
      for (const { table, changes } of columns) await transaction.unsafe(`update ${table} set ${changes}`, [days])
    })
    await sql.end()
  } finally {
    await server.stop()
  }
}

/** The tables with times, and the assignments that move them by `$1` days. */
const listTimeColumns = (sql: Database) => sql<{ table: string; changes: string }[]>`
  select quote_ident(table_name) as table,
    string_agg(format('%I = %I - $1::int * interval ''1 day''', column_name, column_name), ', ') as changes
  from information_schema.columns join information_schema.tables using (table_schema, table_name)
  where table_schema = 'public' and table_type = 'BASE TABLE' and is_generated = 'NEVER'
    and data_type in ('timestamp with time zone', 'date')
  group by table_name`
