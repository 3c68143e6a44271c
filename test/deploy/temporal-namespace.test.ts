/** The script that creates the namespace and its search attributes. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { delimiter, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Connection } from '@temporalio/client'
import { expect, inject, test } from 'vitest'
import { readStackConfig } from '../../platform/config/stack.ts'
import { findTemporalCli } from '../../platform/embedded/temporal-cli.ts'
import { searchAttributes } from '../../platform/temporal.ts'
import { temporaryFolder } from '../support/folders.ts'

const script = fileURLToPath(new URL('../../deploy/temporal-namespace.sh', import.meta.url))
const daySeconds = 86_400

/** Runs the script as the container does, where the CLI finds no configuration in the home folder. */
async function createNamespace(namespace: string): Promise<void> {
  const { embedded, searchPath, dataDir, cacheDir } = readStackConfig()
  const sources = { explicit: embedded.temporalCli, searchPath, dataDir, cacheDir, progress: () => {} }
  const folders = [dirname(await findTemporalCli(sources)), ...searchPath]
  await promisify(execFile)('/bin/sh', [script], {
    env: {
      HOME: await temporaryFolder(),
      PATH: folders.join(delimiter),
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      TEMPORAL_NAMESPACE: namespace,
    },
  })
}

test('the script gives an empty server the namespace with all search attributes, and may be repeated', async () => {
  const namespace = `test-${randomUUID()}`
  await createNamespace(namespace)
  await createNamespace(namespace)
  const connection = await Connection.connect({ address: inject('temporalAddress') })
  try {
    const { config } = await connection.workflowService.describeNamespace({ namespace })
    expect(Number(config?.workflowExecutionRetentionTtl?.seconds)).toBe(7 * daySeconds)
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
    expect(Object.keys(customAttributes ?? {})).toEqual(expect.arrayContaining([...searchAttributes]))
  } finally {
    await connection.close()
  }
})
