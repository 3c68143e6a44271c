/** Saves workflow histories in the format of the Temporal CLI. */
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { readStackConfig } from '../../platform/config/stack.ts'
import { findTemporalCli } from '../../platform/embedded/temporal-cli.ts'

/** Saves a run of the workflow, by default the latest one, as `test/histories/<name>.json`. */
export async function keepHistory(workflowId: string, name: string, runId?: string): Promise<void> {
  const { embedded, searchPath, dataDir, cacheDir } = readStackConfig()
  const sources = { explicit: embedded.temporalCli, searchPath, dataDir, cacheDir, progress: () => {} }
  const options = ['--address', inject('temporalAddress'), '--workflow-id', workflowId, '--output', 'json']
  if (runId !== undefined) options.push('--run-id', runId)
  const { stdout } = await promisify(execFile)(await findTemporalCli(sources), ['workflow', 'show', ...options], {
    maxBuffer: 10 ** 8,
  })
  const file = fileURLToPath(new URL(`../histories/${name}.json`, import.meta.url))
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, stdout)
}
