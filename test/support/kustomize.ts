/** The objects of deploy/kubernetes, as kustomize or kubectl renders them. */
import { execFile } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { readStackConfig } from '../../platform/config/stack.ts'
import { findProgram } from '../../platform/find-program.ts'

const folder = fileURLToPath(new URL('../../deploy/kubernetes', import.meta.url))

/** An object of Kubernetes. Its parts are checked by the schemas of Kubernetes. */
export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own schema, which the validation applies.
  readonly [part: string]: any
}

/** Copies deploy/kubernetes into a folder, for a test that changes it. */
export const copyManifests = (target: string): Promise<void> => cp(folder, target, { recursive: true })

/** The program and arguments that render a folder; undefined without such a program. */
export function findKustomize(): readonly [string, ...string[]] | undefined {
  const { searchPath } = readStackConfig()
  const kustomize = findProgram('kustomize', searchPath)
  if (kustomize !== undefined) return [kustomize, 'build']
  const kubectl = findProgram('kubectl', searchPath)
  return kubectl === undefined ? undefined : [kubectl, 'kustomize']
}

/** @returns the YAML of an overlay. @param root deploy/kubernetes, or a copy of it. */
export async function renderOverlay(name: string, root = folder): Promise<string> {
  const [program, ...args] = findKustomize() ?? ['kustomize', 'build']
  const { stdout } = await promisify(execFile)(program, [...args, join(root, 'overlays', name)])
  return stdout
}

export const parseObjects = (text: string): readonly KubernetesObject[] =>
  parseAllDocuments(text).map((document) => document.toJS() as KubernetesObject)
