/** Relays as processes of this machine. */
import { execFileSync, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { createLog } from '../../../platform/log.ts'
import { isRunning } from '../../../platform/processes.ts'
import { hashStreamToken } from '../../../platform/stream-token-hashes.ts'
import { createInstanceId } from '../../../providers/relay/instance-secrets.ts'
import { createLocalRelayProvider, type LocalRelayOptions } from '../../../providers/relay/local.ts'
import {
  endLocalRelays,
  listLocalRelays,
  relayArguments,
  relayFolderOf,
} from '../../../providers/relay/local-relays.ts'
import { RelayProviderError, type RelaySpec } from '../../../providers/relay/provider.ts'
import { refusal } from '../../relay-node/control-plane.ts'
import { eventually, givenControlPlane, givenFolder, secret, statsOf, streamToken } from '../../relay-node/running.ts'
import { givenSls, slsKey } from '../../support/sls-server.ts'

const log = createLog('test', 'silent')
const never = () => new AbortController().signal
const processesIn = async (dataDir: string) =>
  (await listLocalRelays(relayFolderOf(dataDir))).map(({ startedAt: _, ...relay }) => relay)

type BoundSpec = RelaySpec & { readonly sessionId: string }

const specOf = (plane: { url: string }, more: Partial<BoundSpec> = {}): BoundSpec => ({
  instanceId: createInstanceId('local'),
  sessionId: randomUUID(),
  region: 'local',
  zone: 0,
  streamTokenHash: hashStreamToken(streamToken, 'k'.repeat(43)),
  apiUrl: plane.url,
  relayAuthSecret: secret,
  healthIntervalSeconds: 1,
  capMbps: 48,
  engine: 'none',
  ...more,
})

async function givenProvider(options: Partial<LocalRelayOptions> = {}) {
  const plane = await givenControlPlane()
  const dataDir = givenFolder()
  onTestFinished(async () => {
    await endLocalRelays(dataDir)
  })
  return { plane, dataDir, relays: createLocalRelayProvider({ dataDir, log, ...options }) }
}

type Provider = Awaited<ReturnType<typeof givenProvider>>

const stateFileOf = (dataDir: string, instanceId: string) => join(dataDir, 'relay-nodes', `${instanceId}.json`)

/** Begins to create a relay, and suspends its process before it is ready, so that the call waits for it. */
async function givenWaitingCreate({ plane, relays, dataDir }: Provider) {
  for (;;) {
    const spec = specOf(plane)
    const aborting = new AbortController()
    const created = relays.create(spec, aborting.signal)
    created.catch(() => {})
    const [relay] = await eventually(
      () => processesIn(dataDir),
      (all) => all.length === 1,
    )
    if (relay) process.kill(relay.pid, 'SIGSTOP')
    if (relay && !existsSync(stateFileOf(dataDir, spec.instanceId))) return { spec, aborting, created }
    // It was ready before it could be suspended.
    if (relay) process.kill(relay.pid, 'SIGCONT')
    await created
    await relays.destroy(spec.instanceId)
  }
}

/** A process with the command line of a relay that never becomes ready. */
async function givenStuckRelay(dataDir: string, relay: Parameters<typeof relayArguments>[0]) {
  mkdirSync(join(dataDir, 'relay-nodes'), { recursive: true })
  const code = 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); console.log("ready")'
  const child = spawn(process.execPath, ['-e', code, '--', 'relay-node/main.ts', ...relayArguments(relay)])
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}

test('a created relay is listed and described, serves its statistics and reports its health', async () => {
  const { plane, relays } = await givenProvider()
  const spec = specOf(plane)
  const calledAt = Date.now()

  const instance = await relays.create(spec, never())

  expect(instance).toMatchObject({ sessionId: spec.sessionId, region: 'local', endpoint: { host: '127.0.0.1' } })
  expect(instance.createdAt.getTime()).toBeGreaterThanOrEqual(calledAt)
  expect(instance.createdAt.getTime()).toBeLessThanOrEqual(Date.now())
  expect(await relays.list()).toEqual([instance])
  expect(await relays.list({ sessionId: spec.sessionId })).toEqual([instance])
  expect(await relays.list({ sessionId: randomUUID() })).toEqual([])
  expect(await relays.describe(instance.instanceId)).toEqual(instance)
  expect(await statsOf(instance.endpoint)).toMatchObject({ groups: [] })
  const [report] = await eventually(
    () => plane.reports,
    (all) => all.length > 0,
  )
  expect(report).toMatchObject({
    secret,
    body: { session_id: spec.sessionId, instance_id: instance.instanceId },
  })
})

test('a relay with the engine `sls` registers its stream ids at the server, until it is destroyed', async () => {
  const { plane, relays } = await givenProvider()
  const server = await givenSls('OpenIRL')
  const sls = { apiUrl: server.apiUrl, apiKey: slsKey, publishPort: 4001, playPort: 4000 }
  const { instanceId } = await relays.create(specOf(plane, { engine: 'sls', sls }), never())
  const player = `play/live/${instanceId}`
  await eventually(
    () => [...server.registered.keys()],
    (players) => players.includes(player),
  )
  await relays.destroy(instanceId)
  expect(server.registered.size).toBe(0)
})

test('a second create for a session adopts the existing relay', async () => {
  const { plane, relays, dataDir } = await givenProvider()
  const spec = specOf(plane)
  const first = await relays.create(spec, never())

  expect(await relays.create(spec, never())).toEqual(first)
  expect(await processesIn(dataDir)).toHaveLength(1)
})

test('concurrent creates for a session return the same process', async () => {
  const { plane, relays, dataDir } = await givenProvider()
  const other = createLocalRelayProvider({ dataDir, log })
  const spec = specOf(plane)

  const instances = await Promise.all([relays, other, relays].map((provider) => provider.create(spec, never())))

  expect(instances[1]).toEqual(instances[0])
  expect(instances[2]).toEqual(instances[0])
  expect(await processesIn(dataDir)).toHaveLength(1)
})

test('a relay survives the process that created it, and another process adopts and destroys it', async () => {
  const { plane, relays, dataDir } = await givenProvider()
  const spec = specOf(plane)
  const module = (path: string) => JSON.stringify(pathToFileURL(resolve(path)).href)
  const code = `
    const { createLocalRelayProvider } = await import(${module('providers/relay/local.ts')})
    const { createLog } = await import(${module('platform/log.ts')})
    const provider = createLocalRelayProvider({ dataDir: ${JSON.stringify(dataDir)}, log: createLog('creator', 'silent') })
    const made = await provider.create(${JSON.stringify(spec)}, new AbortController().signal)
    console.log(made.instanceId)
    setInterval(() => {}, 1000)`
  const creator = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code])
  const [printed] = await once(creator.stdout, 'data')
  const [before] = await processesIn(dataDir)

  creator.kill('SIGKILL')
  await once(creator, 'exit')

  const [found] = await relays.list()
  expect(found?.instanceId).toBe(String(printed).trim())
  expect(await relays.create(spec, never())).toEqual(found)
  const reported = plane.reports.length
  await eventually(
    () => plane.reports.length,
    (count) => count > reported + 1,
  )
  expect(await processesIn(dataDir)).toEqual([before])
  await relays.destroy(found?.instanceId ?? '')
  expect(await processesIn(dataDir)).toEqual([])
})

test('an instance has ended when its process was killed, and not while it hangs', async () => {
  const { plane, relays, dataDir } = await givenProvider()
  const { instanceId } = await relays.create(specOf(plane), never())
  const [relay] = await processesIn(dataDir)
  process.kill(relay?.pid ?? 0, 'SIGSTOP')
  expect(await relays.hasEnded(instanceId, null)).toBe(false)
  process.kill(relay?.pid ?? 0, 'SIGKILL')
  await eventually(
    () => relays.hasEnded(instanceId, null),
    (hasEnded) => hasEnded,
  )
})

test('destroy ends the process and removes all files except the log, and can be repeated', async () => {
  const { plane, relays, dataDir } = await givenProvider()
  const { instanceId, endpoint } = await relays.create(specOf(plane), never())

  await relays.destroy(instanceId)

  expect(await processesIn(dataDir)).toEqual([])
  expect(await relays.list()).toEqual([])
  expect(await relays.describe(instanceId)).toBeNull()
  await expect(statsOf(endpoint)).rejects.toThrow()
  expect(readdirSync(join(dataDir, 'relay-nodes'))).toEqual([`${instanceId}.log`])
  await relays.destroy(instanceId)
})

test('an unknown instance counts as destroyed', async () => {
  const { relays } = await givenProvider()
  await relays.destroy('local-0123456789abcdef')
  await relays.destroy('../../elsewhere')
  expect(await relays.describe('local-0123456789abcdef')).toBeNull()
  expect(await relays.list()).toEqual([])
})

test('a killed relay is not listed, and can be created again', async () => {
  const { plane, relays, dataDir } = await givenProvider()
  const spec = specOf(plane)
  const { instanceId } = await relays.create(spec, never())
  const [killed] = await processesIn(dataDir)
  if (!killed) throw new Error('no process')

  process.kill(killed.pid, 'SIGKILL')
  await eventually(
    () => isRunning(killed),
    (running) => !running,
  )

  expect(await relays.list()).toEqual([])
  expect((await relays.create(spec, never())).instanceId).toBe(instanceId)
  expect(await processesIn(dataDir)).toHaveLength(1)
})

test('a relay that ended by itself is not described', async () => {
  const { plane, relays } = await givenProvider()
  const { instanceId } = await relays.create(specOf(plane), never())
  plane.answers(refusal(409, 'invalid_transition'))
  await eventually(
    () => relays.describe(instanceId),
    (instance) => instance === null,
  )
})

const filesIn = (dataDir: string) => readdirSync(join(dataDir, 'relay-nodes')).filter((name) => !name.endsWith('.log'))

test('a create that is aborted at once, or before its relay is ready, leaves no process', async () => {
  const provider = await givenProvider()
  const { plane, relays, dataDir } = provider
  const reason = new Error('the activity was cancelled')
  const atOnce = new AbortController()
  const created = relays.create(specOf(plane), atOnce.signal)
  atOnce.abort(reason)
  await expect(created).rejects.toBe(reason)
  expect(await processesIn(dataDir)).toEqual([])

  const waiting = await givenWaitingCreate(provider)
  waiting.aborting.abort(reason)
  await expect(waiting.created).rejects.toBe(reason)
  expect(await processesIn(dataDir)).toEqual([])
  expect(filesIn(dataDir)).toEqual([])
})

test('a create that is aborted as its relay becomes ready resolves with the relay, or leaves no process', async () => {
  const { plane, relays, dataDir } = await givenProvider()
  const spec = specOf(plane)
  const reason = new Error('the activity was cancelled')
  const aborting = new AbortController()
  const created = relays.create(spec, aborting.signal).catch((error: unknown) => error)
  await eventually(() => existsSync(stateFileOf(dataDir, spec.instanceId)), Boolean)
  aborting.abort(reason)
  const outcome = await created
  const listed = await relays.list()
  if (outcome === reason) expect([listed, filesIn(dataDir)]).toEqual([[], []])
  else expect(listed).toEqual([outcome])
})

test('a create succeeds when another create for the same session is aborted', async () => {
  const provider = await givenProvider()
  const { relays, dataDir } = provider
  const { spec, aborting, created: aborted } = await givenWaitingCreate(provider)
  const created = relays.create(spec, never())
  aborting.abort()

  await expect(aborted).rejects.toThrow()
  const { instanceId } = await created

  expect(await processesIn(dataDir)).toMatchObject([{ instanceId }])
})

test('a relay that ends at once is reported with the last lines of its log and without secrets', async () => {
  const { plane, relays } = await givenProvider()
  const failure = await relays.create(specOf(plane, { capMbps: -1 }), never()).catch((error: unknown) => error)

  expect(failure).toBeInstanceOf(RelayProviderError)
  expect(failure).toMatchObject({ failure: 'give_up', detail: 'configuration' })
  expect((failure as Error).message).toContain('SVC_RELAY_CAP_MBPS is not between')
  expect((failure as Error).message).not.toContain(secret)
})

test('relays of another data folder are not listed', async () => {
  const [ours, theirs] = [await givenProvider(), await givenProvider()]
  const { instanceId } = await theirs.relays.create(specOf(theirs.plane), never())

  expect(await ours.relays.list()).toEqual([])
  expect(await ours.relays.describe(instanceId)).toBeNull()
  await ours.relays.destroy(instanceId)
  expect(await endLocalRelays(ours.dataDir)).toBe(0)
  expect(await theirs.relays.list()).toHaveLength(1)
})

test('neither the command line nor a file of a relay contains a secret', async () => {
  const { plane, relays, dataDir } = await givenProvider()
  await relays.create(specOf(plane), never())
  const [relay] = await processesIn(dataDir)
  const folder = join(dataDir, 'relay-nodes')
  const files = readdirSync(folder, { withFileTypes: true }).map((entry) =>
    entry.isSymbolicLink() ? readlinkSync(join(folder, entry.name)) : readFileSync(join(folder, entry.name), 'utf8'),
  )
  const commandLine = execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(relay?.pid)], { encoding: 'utf8' })
  expect(commandLine).toContain('relay-node/main.ts')

  for (const text of [...files, commandLine]) {
    expect(text).not.toContain(secret)
    expect(text).not.toContain(streamToken)
  }
})

test('a relay that never becomes ready is listed without ports, and can be destroyed', async () => {
  const { relays, dataDir } = await givenProvider({ describeMillisMax: 50 })
  const sessionId = randomUUID()
  const instanceId = 'local-0123456789abcdef'
  const calledAt = Date.now()
  const stateFile = stateFileOf(dataDir, instanceId)
  const child = await givenStuckRelay(dataDir, { instanceId, sessionId, region: 'local', stateFile })

  const [listed] = await relays.list()

  expect(listed).toMatchObject({ instanceId, sessionId, endpoint: { srtlaPort: 0, statsPort: 0 } })
  // The time of a process in the process table is less exact.
  expect(listed?.createdAt.getTime()).toBeGreaterThan(calledAt - 2_000)
  expect(listed?.createdAt.getTime()).toBeLessThan(Date.now() + 2_000)
  const ended = once(child, 'exit')
  await relays.destroy(instanceId)
  expect(await ended).toEqual([null, 'SIGKILL'])
  expect(await relays.list()).toEqual([])
})

/** No JSON, and JSON that is no state. */
const [incompleteText, otherText] = ['{"instanceId":"local-', '{"pid":1,"host":null}']
const invalidTexts = ['', incompleteText, 'not JSON', 'null', '7', '[]', '{"pid":"1"}', otherText]

test('a state file with an invalid text counts as none', async () => {
  const { plane, relays, dataDir } = await givenProvider({ describeMillisMax: 50 })
  const spec = specOf(plane)
  const { instanceId } = await relays.create(spec, never())
  const absentId = createInstanceId('local')
  for (const text of invalidTexts) {
    writeFileSync(stateFileOf(dataDir, instanceId), text)
    writeFileSync(stateFileOf(dataDir, absentId), text)
    expect([text, await relays.list()]).toMatchObject([
      text,
      [{ instanceId, sessionId: spec.sessionId, endpoint: { statsPort: 0 } }],
    ])
    expect([text, await relays.describe(absentId)]).toEqual([text, null])
  }
  for (const id of [instanceId, absentId]) await relays.destroy(id)
  expect(await relays.list()).toEqual([])
  expect(filesIn(dataDir)).toEqual([])
})

test.each([incompleteText, otherText])('a state file with the text %j is replaced', async (text) => {
  const { plane, relays, dataDir } = await givenProvider()
  const spec = specOf(plane)
  const { instanceId } = spec
  const stateFile = stateFileOf(dataDir, instanceId)
  mkdirSync(join(dataDir, 'relay-nodes'))
  // With invalid locks, as a power failure may leave them.
  for (const file of [stateFile, `${stateFile}.lock.1`, `${stateFile}.lock.x`]) writeFileSync(file, text)

  const instance = await relays.create(spec, never())

  expect(await statsOf(instance.endpoint)).toMatchObject({ groups: [] })
  expect(await relays.list()).toEqual([instance])
  await relays.destroy(instanceId)
  expect(readdirSync(join(dataDir, 'relay-nodes'))).toEqual([`${instanceId}.log`])
})

test('a running relay whose state file is invalid is replaced by a create', async () => {
  const { plane, relays, dataDir } = await givenProvider({ readyMillisMax: 500 })
  const spec = specOf(plane)
  const { instanceId } = await relays.create(spec, never())
  const [before] = await processesIn(dataDir)
  writeFileSync(stateFileOf(dataDir, instanceId), '{')

  const instance = await relays.create(spec, never())

  expect(await relays.list()).toEqual([instance])
  const [after, ...more] = await processesIn(dataDir)
  expect(more).toEqual([])
  expect(after?.pid).not.toBe(before?.pid)
})

test('all relays of a data folder can be ended together', async () => {
  const { plane, relays, dataDir } = await givenProvider()
  await Promise.all([1, 2, 3].map(() => relays.create(specOf(plane), never())))

  expect(await endLocalRelays(dataDir)).toBe(3)
  expect(await processesIn(dataDir)).toEqual([])
})
