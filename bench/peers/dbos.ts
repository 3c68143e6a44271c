/**
 * The life of a relay session on DBOS, behind plain HTTP: start, first report, stop, grace, end. One process, as its
 * documentation recommends: DBOS runs workflows in the application. A queue refuses a second live session of a
 * connection (`deduplicationID`), the workflow's id makes a repeated start the same start, and every transition is a
 * durable event.
 */
import { createServer, type IncomingMessage } from 'node:http'
import { DBOS } from '@dbos-inc/dbos-sdk'
import { Pool } from 'pg'
import { readVariable } from './variables.ts'

const queueName = 'relays'
/** The default is a second, which would dominate the time until a relay is active. */
const minPollingIntervalMs = 100
/** As the service under measurement: longer than the run. */
const graceSeconds = 3600
const provisioningSecondsMax = 300
const sessionSecondsMax = 48 * 3600

type Message = 'ready' | 'stop' | 'stop-immediately'

const recordTransition = (state: string): Promise<void> => DBOS.setEvent(state, { at: new Date().toISOString() })

/** Instances exist in memory only, as those of the service under measurement. */
const instances = new Set<string>()
const createInstance = (sessionId: string) =>
  DBOS.runStep(async () => void instances.add(sessionId), { name: 'createInstance', retriesAllowed: true })
const destroyInstance = (sessionId: string) =>
  DBOS.runStep(async () => void instances.delete(sessionId), { name: 'destroyInstance', retriesAllowed: true })

async function liveAsRelay(): Promise<void> {
  const sessionId = DBOS.workflowID
  if (sessionId === undefined) throw new Error('not in a workflow')
  await createInstance(sessionId)
  await recordTransition('provisioning')
  let message = await DBOS.recv<Message>(undefined, { timeoutSeconds: provisioningSecondsMax })
  if (message === 'ready') {
    await recordTransition('active')
    message = await DBOS.recv<Message>(undefined, { timeoutSeconds: sessionSecondsMax })
    if (message === 'stop') {
      await recordTransition('grace')
      await DBOS.recv<Message>(undefined, { timeoutSeconds: graceSeconds })
    }
  }
  await destroyInstance(sessionId)
  await recordTransition('stopped')
}

const relayLife = DBOS.registerWorkflow(liveAsRelay, { name: 'relayLife' })

/** Answers once the workflow is stored. A live session of the connection is returned instead of a second one. */
async function start({ user_id, connection_id, idempotency_key }: Record<string, string>): Promise<object> {
  const handle = await DBOS.startWorkflow(relayLife, {
    workflowID: `${user_id}/${idempotency_key}`,
    queueName,
    enqueueOptions: { deduplicationID: `${user_id}/${connection_id}` },
    duplicationPolicy: 'return-existing',
  })()
  return { session_id: handle.workflowID }
}

const applicationName = 'relay-peer'
const relaysMax = 4
const pool = new Pool({
  connectionString: readVariable('PEER_DATABASE_URL'),
  max: Number(readVariable('PEER_DATABASE_POOL')),
})

/**
 * As `start`, and never more sessions of a user than the plan allows: the function that DBOS has for enqueueing in a
 * transaction of the application, after the account's row is locked and its live sessions are counted.
 */
async function startWithinPlan({ user_id, connection_id, idempotency_key }: Record<string, string>): Promise<object> {
  const connection = await pool.connect()
  try {
    await connection.query('begin')
    await connection.query('select from accounts where user_id = $1 for update', [user_id])
    const { rows } = await connection.query(
      `select count(*)::int as live from dbos.workflow_status
       where authenticated_user = $1 and status in ('ENQUEUED', 'PENDING', 'DELAYED')`,
      [user_id],
    )
    if (rows[0].live >= relaysMax) throw new Error('all relays of the plan are in use')
    await connection.query(
      `select dbos.enqueue_workflow(workflow_name => 'relayLife', queue_name => $1, workflow_id => $2,
         deduplication_id => $3, authenticated_user => $4, application_name => $5)`,
      [queueName, `${user_id}/${idempotency_key}`, `${user_id}/${connection_id}`, user_id, applicationName],
    )
    await connection.query('commit')
    return { session_id: `${user_id}/${idempotency_key}` }
  } catch (error) {
    await connection.query('rollback')
    throw error
  } finally {
    connection.release()
  }
}

/** The accounts of the application, for `/start-within-plan`. */
async function createAccounts({ user_ids = '' }: Record<string, string>): Promise<object> {
  await pool.query('create table accounts (user_id text primary key)')
  await pool.query('insert into accounts select unnest($1::text[])', [user_ids.split(',')])
  // The tables of DBOS have no index for the count of a user's sessions.
  await pool.query('create index on dbos.workflow_status (authenticated_user) where authenticated_user is not null')
  return {}
}

/** Starts in this process at once. Nothing refuses a second live session of a connection. */
async function startWithoutQueue({ user_id, idempotency_key }: Record<string, string>): Promise<object> {
  const handle = await DBOS.startWorkflow(relayLife, { workflowID: `${user_id}/${idempotency_key}` })()
  return { session_id: handle.workflowID }
}

const send = async (sessionId: string, message: Message): Promise<object> => {
  await DBOS.send(sessionId, message, undefined, `${sessionId}/${message}`)
  return {}
}

/** Answers once the workflow has made the transition. */
async function waitForState(sessionId: string, state: string): Promise<object> {
  const event = await DBOS.getEvent(sessionId, state, { timeoutSeconds: 60 })
  if (event === null) throw new Error(`${sessionId} did not become ${state}`)
  return { state }
}

async function stop({ session_id = '' }: Record<string, string>): Promise<object> {
  await send(session_id, 'stop')
  return waitForState(session_id, 'grace')
}

const routes: Readonly<Record<string, (body: Record<string, string>) => Promise<object>>> = {
  '/start': start,
  '/start-within-plan': startWithinPlan,
  '/start-without-queue': startWithoutQueue,
  '/accounts': createAccounts,
  '/ready': ({ session_id = '' }) => send(session_id, 'ready'),
  '/wait': ({ session_id = '', state = '' }) => waitForState(session_id, state),
  '/stop': stop,
  '/end': ({ session_id = '' }) => send(session_id, 'stop-immediately'),
  '/livez': async () => ({}),
}

async function readBody(request: IncomingMessage): Promise<Record<string, string>> {
  let text = ''
  for await (const part of request.setEncoding('utf8')) text += part
  return text === '' ? {} : JSON.parse(text)
}

DBOS.setConfig({
  name: applicationName,
  systemDatabaseUrl: readVariable('PEER_DATABASE_URL'),
  systemDatabasePoolSize: Number(readVariable('PEER_DATABASE_POOL')),
  logLevel: 'warn',
})
await DBOS.launch()
await DBOS.registerQueue(queueName, { minPollingIntervalMs })

const server = createServer((request, response) => {
  const answer = routes[request.url ?? '']
  if (!answer) return void response.writeHead(404).end()
  readBody(request)
    .then(answer)
    .then(
      (body) => response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body)),
      (error: Error) => response.writeHead(500).end(error.stack),
    )
})
server.listen(Number(readVariable('PORT')), '127.0.0.1')
process.once('disconnect', () => process.exit(0))
process.once('SIGTERM', () => process.exit(0))
