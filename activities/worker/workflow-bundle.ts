/**
 * The workflows' bundle, built ahead of time (`npm run build`) or at the first start, and kept until `workflows/`, `domain/` or
 * the SDK change. A bundle made by another version of the SDK is refused by the worker, so the version is part of its name.
 */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode } from '@temporalio/worker'
import type { Logger } from '../../platform/log.ts'

const workflows = new URL('../../workflows/', import.meta.url)
const domain = new URL('../../domain/', import.meta.url)
const kept = new URL('../../dist/', import.meta.url)

/** The path of a bundle of the workflows as they are now. Building one takes some seconds. */
export async function workflowBundlePath(log: Logger): Promise<string> {
  const path = new URL(`workflow-bundle-${await fingerprint()}.js`, kept)
  const exists = await readFile(path).then(
    () => true,
    () => false,
  )
  if (!exists) {
    log.info('building the workflow bundle, which takes some seconds')
    const { code } = await bundleWorkflowCode({
      workflowsPath: fileURLToPath(new URL('registry.ts', workflows)),
      logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
    })
    await mkdir(kept, { recursive: true })
    // Renamed into place, so that two processes that build at once never read half of it.
    const draft = new URL(`workflow-bundle-${process.pid}.draft`, kept)
    await writeFile(draft, code)
    await rename(draft, path)
  }
  return fileURLToPath(path)
}

async function fingerprint(): Promise<string> {
  const { version } = createRequire(import.meta.url)('@temporalio/worker/package.json') as { version: string }
  const hash = createHash('sha256').update(version)
  for (const folder of [workflows, domain]) {
    const names = (await readdir(folder)).filter((name) => name.endsWith('.ts')).sort()
    for (const name of names) hash.update(name).update(await readFile(new URL(name, folder)))
  }
  return hash.digest('hex').slice(0, 16)
}
