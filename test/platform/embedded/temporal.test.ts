/** The embedded Temporal: its start, and a server that answers with errors only. */
import { join } from 'node:path'
import { Client, Connection } from '@temporalio/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readStackConfig } from '../../../platform/config/stack.ts'
import { type EmbeddedTemporalOptions, startEmbeddedTemporal } from '../../../platform/embedded/temporal.ts'
import { findTemporalCli } from '../../../platform/embedded/temporal-cli.ts'
import { createLog } from '../../../platform/log.ts'
import { findProcess, sendSignal } from '../../../platform/processes.ts'
import { temporaryFolder } from '../../support/folders.ts'
import { eventually } from '../../support/relays.ts'

const log = createLog('test', 'silent')

async function start(dir: string | null, more: Partial<EmbeddedTemporalOptions> = {}) {
  const { searchPath, dataDir, cacheDir, embedded } = readStackConfig()
  const search = { explicit: embedded.temporalCli, searchPath, dataDir, cacheDir, progress: () => {} }
  const server = await startEmbeddedTemporal({ executable: await findTemporalCli(search), dir, log, ...more })
  onTestFinished(() => server.stop())
  return server
}

async function withClient<T>(address: string, work: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address })
  try {
    return await work(new Client({ connection }))
  } finally {
    await connection.close()
  }
}

const startWorkflow = (address: string, attributes: Record<string, string[]> = {}) =>
  withClient(address, (client) =>
    client.workflow.start('withoutWorker', { taskQueue: 'none', workflowId: 'stored', searchAttributes: attributes }),
  )

const statusOfWorkflow = (address: string) =>
  withClient(address, async (client) => (await client.workflow.getHandle('stored').describe()).status.name)

test('workflows have the search attributes of operators as soon as the server has started, and survive killed servers', async () => {
  const dir = await temporaryFolder()
  const killed = await start(dir)
  expect(killed.uiUrl).toBeNull()
  await startWorkflow(killed.address, {
    RelayState: ['active'],
    Region: ['local'],
    PlanTier: ['paid'],
    UserId: ['someone'],
  })
  expect(await statusOfWorkflow(killed.address)).toBe('RUNNING')
  sendSignal(killed.pid, 'SIGKILL')
  await killed.exited
  const orphan = await start(dir)
  expect(await statusOfWorkflow(orphan.address)).toBe('RUNNING')

  // A server that was left running on the same store is ended before the next one starts.
  const next = await start(dir)
  expect(await findProcess(orphan.pid)).toBeUndefined()
  expect(await statusOfWorkflow(next.address)).toBe('RUNNING')
})

test('a program that is not a Temporal server is reported with its last lines', async () => {
  const dir = await temporaryFolder()
  const executable = process.execPath
  await expect(startEmbeddedTemporal({ executable, dir: join(dir, 'store'), log })).rejects.toThrow(
    /Temporal ended with code 1:[\s\S]*MODULE_NOT_FOUND/,
  )
})

describe('a server that runs', () => {
  const watch = { everyMillis: 100, replyMillisMax: 300, failingMillisMax: 1_000 }

  test('but answers with errors only is killed, and starts well again on its store', async () => {
    const dir = await temporaryFolder()
    const failing = await start(dir, { namespace: 'doomed', watch })
    await startWorkflow(failing.address)
    await withClient(failing.address, ({ connection }) =>
      connection.operatorService.deleteNamespace({ namespace: 'doomed' }),
    )
    expect(await failing.exited).toBe('ended by SIGKILL')
    const next = await start(dir, { namespace: 'doomed', watch })
    expect(await statusOfWorkflow(next.address)).toBe('RUNNING')
  })

  test('but is paused is left alone', async () => {
    let checks = 0
    const watch = {
      replyMillisMax: 100,
      failingMillisMax: 200,
      /** Read after each check. */
      get everyMillis() {
        checks += 1
        return 50
      },
    }
    const paused = await start(null, { watch })
    await startWorkflow(paused.address)
    sendSignal(paused.pid, 'SIGSTOP')
    const before = checks
    await eventually(
      () => checks,
      (count) => count > before + 8,
    )
    sendSignal(paused.pid, 'SIGCONT')
    expect(await statusOfWorkflow(paused.address)).toBe('RUNNING')
  })
})
