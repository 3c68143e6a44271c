/** Recorded workflow histories, `test/histories/**.json.gz`: each is gzipped JSON in the format of the Temporal CLI. */
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gunzipSync, gzipSync } from 'node:zlib'
import { Worker } from '@temporalio/worker'
import { inject } from 'vitest'
import { workflowBundlePath } from '../../activities/worker/workflow-bundle.ts'
import { readStackConfig } from '../../platform/config/stack.ts'
import { findTemporalCli } from '../../platform/embedded/temporal-cli.ts'
import { createLog } from '../../platform/log.ts'
import { installRuntimeOnce } from './relays.ts'

const directory = new URL('../histories/', import.meta.url)
const extension = '.json.gz'

/** Records a run of the workflow, by default the latest one. @param name of the file, without its extension. */
export async function recordHistory(workflowId: string, name: string, runId?: string): Promise<void> {
  const { embedded, searchPath, dataDir, cacheDir } = readStackConfig()
  const sources = { explicit: embedded.temporalCli, searchPath, dataDir, cacheDir, progress: () => {} }
  const options = ['--address', inject('temporalAddress'), '--workflow-id', workflowId, '--output', 'json']
  if (runId !== undefined) options.push('--run-id', runId)
  const { stdout } = await promisify(execFile)(await findTemporalCli(sources), ['workflow', 'show', ...options], {
    maxBuffer: 10 ** 8,
  })
  const file = fileURLToPath(new URL(name + extension, directory))
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, gzipSync(stdout, { level: 9 }))
}

/** The recorded histories of a folder, as JSON text by name, in the order of their names. */
export async function readHistories(
  folder: './' | 'subscriptions/' | 'warm-instances/',
): Promise<ReadonlyMap<string, string>> {
  const files = (await readdir(new URL(folder, directory))).filter((file) => file.endsWith(extension)).sort()
  const texts = await Promise.all(files.map((file) => readFile(new URL(folder + file, directory))))
  return new Map(
    files.map((file, index) => [file.slice(0, -extension.length), gunzipSync(texts[index] ?? '').toString()]),
  )
}

/**
 * Replays histories against the current workflow code and returns the names of those that fail.
 * @param workflowIdOf the id that a history's workflow has in the replay.
 * @param isTraced whether the workflows run with the interceptors of OpenTelemetry.
 */
export async function findReplayFailures(
  histories: ReadonlyMap<string, string>,
  workflowIdOf: (name: string) => string,
  isTraced = false,
): Promise<string[]> {
  installRuntimeOnce()
  const workflowBundle = { codePath: await workflowBundlePath(createLog('test', 'fatal'), { isTraced }) }
  const names = new Map([...histories.keys()].map((name) => [workflowIdOf(name), name]))
  const replayed = [...histories].map(([name, text]) => ({ workflowId: workflowIdOf(name), history: JSON.parse(text) }))
  const failed: string[] = []
  for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle }, replayed))
    if (error) failed.push(names.get(workflowId) ?? workflowId)
  return failed
}
