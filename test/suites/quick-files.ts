/**
 * The test files of `npm run test:quick`: those that start no process and need no server. What a file imports decides,
 * so no list has to be kept.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Suites with commands of their own. */
const otherSuites = /^test\/(system|attacks)\//
/** What starts servers and programs, or asks for those of the test run. */
const needsServers = /\binject\(|'node:child_process'|platform\/(launcher|embedded\/(postgres|temporal))\.ts'/
const importedFile = /^(?:import|export)\s(?!type\b)[^;]*?from '(\.[^']+)'/gms

interface Module {
  readonly imports: readonly string[]
  readonly needsServers: boolean
}

const modules = new Map<string, Module>()

function read(path: string): Module {
  const known = modules.get(path)
  if (known) return known
  const text = readFileSync(path, 'utf8')
  const imports = [...text.matchAll(importedFile)].map(([, specifier = '']) => resolve(dirname(path), specifier))
  const read = { imports: imports.filter(isTestModule), needsServers: needsServers.test(text) }
  modules.set(path, read)
  return read
}

/** The product's own modules decide nothing: many of them can start a process, and few tests make them do so. */
const isTestModule = (path: string): boolean => path.startsWith(join(root, 'test/')) && existsSync(path)

/** Whether the module, or one that it imports from `test/`, needs servers. */
function reachesServers(path: string, seen = new Set<string>()): boolean {
  if (seen.has(path)) return false
  seen.add(path)
  const { imports, needsServers } = read(path)
  return needsServers || imports.some((imported) => reachesServers(imported, seen))
}

/** All test files of `npm test`, below the project's folder. */
export const listTestFiles = (): string[] =>
  readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .map((path) => join('test', path))
    .filter((path) => path.endsWith('.test.ts') && !otherSuites.test(relative('.', path)))
    .toSorted()

export const listQuickFiles = (): string[] => listTestFiles().filter((path) => !reachesServers(join(root, path)))
