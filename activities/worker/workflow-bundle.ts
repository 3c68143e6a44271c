/**
 * The bundle of workflow code, built ahead of time (`npm run build`) or at the first start. Its file name contains a fingerprint
 * of its sources and of the SDK's version, since a worker refuses a bundle that another version of the SDK built.
 */
import { createHash } from 'node:crypto'
import { access, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode } from '@temporalio/worker'
import type { Logger } from '../../platform/log.ts'

const require = createRequire(import.meta.url)
const interceptors = '@temporalio/interceptors-opentelemetry/lib/workflow-interceptors'
const root = new URL('../../', import.meta.url)
const bundles = new URL('dist/', root)
/** The folders that workflow code may import (docs/architecture.md). */
const sourceFolders = ['workflows/', 'domain/'] as const

/** The entry of the bundle for unversioned workers, and of that for versioned ones (`deployment-version.ts`). */
export const workflowRegistries = ['registry', 'versioned-registry'] as const

interface BundleKind {
  readonly registry?: (typeof workflowRegistries)[number]
  /**
   * Whether workflows run with the interceptors of OpenTelemetry. They send no commands: the bundles with and without them replay
   * the same histories.
   */
  readonly isTraced?: boolean
}

const paths = new Map<string, Promise<string>>()

/** The path of a bundle of the current workflow code. Building it takes some seconds. Calls of one process share it. */
export function workflowBundlePath(
  log: Logger,
  { registry = 'registry', isTraced = false }: BundleKind = {},
): Promise<string> {
  const kind = isTraced ? `${registry}-traced` : registry
  const shared = paths.get(kind)
  if (shared) return shared
  const path = findOrBuild(log, kind, { registry, isTraced })
  paths.set(kind, path)
  path.catch(() => paths.delete(kind))
  return path
}

async function findOrBuild(log: Logger, kind: string, { registry, isTraced }: Required<BundleKind>): Promise<string> {
  const bundle = new URL(`workflow-bundle-${kind}-${await workflowFingerprint(root)}.js`, bundles)
  const exists = await access(bundle).then(
    () => true,
    () => false,
  )
  if (!exists) {
    log.info('building the workflow bundle, which takes some seconds')
    const { code } = await bundleWorkflowCode({
      workflowsPath: fileURLToPath(new URL(`workflows/${registry}.ts`, root)),
      workflowInterceptorModules: isTraced ? [require.resolve(interceptors)] : [],
      logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
    })
    await mkdir(bundles, { recursive: true })
    // Renamed when it is complete, so that a process never reads a partial bundle that another one is writing.
    const draft = new URL(`workflow-bundle-${kind}-${process.pid}.draft`, bundles)
    await writeFile(draft, code)
    await rename(draft, bundle)
  }
  return fileURLToPath(bundle)
}

/** @param projectRoot the URL of the folder that contains the source folders, with a slash at its end. */
export async function workflowFingerprint(projectRoot: URL): Promise<string> {
  const { version } = require('@temporalio/worker/package.json') as { version: string }
  const hash = createHash('sha256').update(version)
  for (const folder of sourceFolders) {
    const names = await readdir(new URL(folder, projectRoot), { recursive: true })
    for (const name of names.filter((one) => one.endsWith('.ts')).sort())
      hash.update(name).update(await readFile(new URL(folder + name, projectRoot)))
  }
  return hash.digest('hex').slice(0, 16)
}
