/** Which folder may know of which: the arrows of docs/architecture.md, held here so that they stay true. */
import { readdir, readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const protocol = ['workflows/messages.ts', /^workflows\/[\w-]+-client\.ts$/] as const

/** The files of other folders that a folder may import, besides `domain/`, which every folder may. A text ending in `/` is a whole folder. */
const mayImport: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  api: [...protocol, 'db/', 'platform/', 'providers/'],
  workflows: [],
  activities: [...protocol, 'db/', 'platform/', 'providers/'],
  db: ['platform/'],
  providers: ['platform/'],
  platform: [],
  domain: [],
  'relay-node': ['platform/'],
  cli: ['platform/', 'db/'],
  web: ['platform/'],
  bench: [/./],
  test: [/./],
}

/** Packages that nobody imports, with what they are for instead. */
const tools: Readonly<Record<string, string>> = {
  '@biomejs/biome': 'npm run check:code',
  typescript: 'npm run check:types',
  tsx: 'runs the programs',
  vitest: 'runs the tests',
  'patch-package': 'npm install, for patches/',
  protobufjs: 'one version of it for all of Temporal, or replays mix the messages of two',
  autocannon: 'measurements',
}

interface Import {
  /** From the project's folder. */
  readonly file: string
  /** As it is written. */
  readonly specifier: string
  /** Where it leads, from the project's folder; a package's name as it is. */
  readonly target: string
  readonly typesOnly: boolean
}

const files = (await readdir(root, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
  .map((entry) => posix.relative(root, posix.join(entry.parentPath, entry.name)))
  .filter((path) => path.includes('/') && !/(^|\/)(node_modules|dist|coverage|\.[^/]+)\//.test(path))
  .sort()
const texts = new Map(
  await Promise.all(files.map(async (file) => [file, await readFile(posix.join(root, file), 'utf8')] as const)),
)
const folderOf = (path: string) => path.slice(0, path.indexOf('/'))
const sources = files.filter((file) => folderOf(file) !== 'test')
const imports = files.flatMap(importsOf)

function importsOf(file: string): Import[] {
  const text = texts.get(file) ?? ''
  const found = [
    ...text.matchAll(/^(?:import|export)\s+(type\s)?[^'";]*?\bfrom\s+['"]([^'"]+)['"]/gm),
    ...text.matchAll(/^import\s+()['"]([^'"]+)['"]/gm),
    ...text.matchAll(/\bimport(?:\.meta\.resolve)?()\(\s*['"]([^'"]+)['"]/g),
    ...text.matchAll(/\bcreateRequire\([^()]*\)(?:\.resolve)?()\(\s*['"]([^'"]+)['"]/g),
  ]
  return found.map(([, type, specifier = '']) => ({
    file,
    specifier,
    target: specifier.startsWith('.') ? posix.join(posix.dirname(file), specifier) : specifier,
    typesOnly: type !== undefined && type !== '',
  }))
}

const isOurs = ({ specifier }: Import) => specifier.startsWith('.')
const isPackage = ({ specifier }: Import) => !specifier.startsWith('.') && !specifier.startsWith('node:')
const packageOf = (specifier: string) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
const said = ({ file, specifier, typesOnly }: Import) => `${file} imports ${typesOnly ? 'types of ' : ''}${specifier}`
const matches = (path: string, patterns: readonly (string | RegExp)[]) =>
  patterns.some((one) =>
    one instanceof RegExp ? one.test(path) : one.endsWith('/') ? path.startsWith(one) : path === one,
  )

test('every folder with code in it has its place in the layout', () => {
  expect([...new Set(files.map(folderOf))].filter((folder) => !(folder in mayImport))).toEqual([])
})

test('a folder imports only of the folders that it may know', () => {
  const strays = imports.filter((one) => {
    const [from, to] = [folderOf(one.file), folderOf(one.target)]
    if (!isOurs(one) || from === to) return false
    if (to === 'domain') return false
    // Types leave nothing behind in the workflow bundle.
    if (from === 'workflows' && to === 'activities' && one.typesOnly) return false
    return !matches(one.target, mayImport[from] ?? [])
  })
  expect(strays.map(said)).toEqual([])
})

test('the workflow bundle holds only workflows, domain and the two packages that are safe there', () => {
  const bundled = new Set(['workflows/registry.ts'])
  // A set that grows while it is walked is walked to its end.
  for (const file of bundled)
    for (const one of importsOf(file)) if (isOurs(one) && !one.typesOnly) bundled.add(one.target)
  expect(
    [...bundled].filter((file) => !['workflows', 'domain'].includes(folderOf(file)) || file.endsWith('-client.ts')),
  ).toEqual([])
  const safe = ['@temporalio/workflow', '@temporalio/common']
  const strays = imports.filter((one) => bundled.has(one.file) && !isOurs(one) && !one.typesOnly)
  expect(strays.filter((one) => !safe.includes(one.specifier)).map(said)).toEqual([])
})

test('workflows that are not bundled know of the Temporal client, and of no other package', () => {
  const allowed = ['@temporalio/workflow', '@temporalio/common', '@temporalio/client']
  const strays = imports.filter((one) => folderOf(one.file) === 'workflows' && !isOurs(one))
  expect(
    strays
      .filter(
        (one) =>
          !allowed.includes(one.specifier) ||
          (one.specifier === '@temporalio/client' && !one.file.endsWith('-client.ts')),
      )
      .map(said),
  ).toEqual([])
})

test('no file is a drawer for odds and ends, and none only passes others on', () => {
  const drawer = /(^|\/)(utils?|helpers?|common|misc|shared|types)(\/|\.tsx?$)|(^|\/)index\.tsx?$/
  expect(files.filter((file) => drawer.test(file))).toEqual([])
})

test('the environment is read in one place of the service, and in one of the program that runs on relays', () => {
  const readers = sources.filter((file) => /\bprocess\.env\b/.test(texts.get(file) ?? ''))
  expect(
    readers.filter((file) => !['platform/config.ts', 'relay-node/main.ts', 'relay-node/settings.ts'].includes(file)),
  ).toEqual([])
})

test('only what a person runs in a terminal writes to the console', () => {
  const writers = sources.filter((file) => /\bconsole\.\w+\(/.test(texts.get(file) ?? ''))
  expect(writers.filter((file) => !['cli', 'bench'].includes(folderOf(file)))).toEqual([])
})

const manifest = JSON.parse(await readFile(posix.join(root, 'package.json'), 'utf8')) as Record<
  'dependencies' | 'devDependencies',
  Record<string, string>
>
const dependencies = { ...manifest.dependencies, ...manifest.devDependencies }

test('every dependency has an exact version, and all of Temporal has the same', () => {
  const ranges = Object.entries(dependencies).filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
  expect(ranges).toEqual([])
  const temporal = Object.entries(dependencies).filter(([name]) => name.startsWith('@temporalio/'))
  expect(new Set(temporal.map(([, version]) => version)).size, JSON.stringify(temporal)).toBe(1)
})

test('every dependency is imported, or is a tool, or holds the types of one that is', () => {
  const used = new Set(imports.filter(isPackage).map((one) => packageOf(one.specifier)))
  const isTypes = (name: string) =>
    name === '@types/node' || (name.startsWith('@types/') && name.slice(7) in dependencies)
  const idle = Object.keys(dependencies).filter((name) => !used.has(name) && !(name in tools) && !isTypes(name))
  expect(idle).toEqual([])
})

test('every package that is imported is a dependency, and one of the image when the service needs it', () => {
  const strays = imports.filter((one) => isPackage(one) && !(packageOf(one.specifier) in dependencies))
  expect(strays.map(said)).toEqual([])
  const programs = imports.filter(
    (one) => isPackage(one) && !one.typesOnly && !['test', 'bench'].includes(folderOf(one.file)),
  )
  expect(programs.filter((one) => !(packageOf(one.specifier) in manifest.dependencies)).map(said)).toEqual([])
})

test('docs/dependencies.md says of each dependency why it is there, and of nothing else', async () => {
  const page = await readFile(posix.join(root, 'docs/dependencies.md'), 'utf8')
  const named = [...page.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name)
  expect(named.toSorted()).toEqual(Object.keys(dependencies).toSorted())
})

test('docs/operating.md names every variable, metric and job', async () => {
  const page = await readFile(posix.join(root, 'docs/operating.md'), 'utf8')
  const namesIn = (paths: RegExp, name: RegExp) =>
    sources
      .filter((file) => paths.test(file))
      .flatMap((file) => [...(texts.get(file) ?? '').matchAll(name)].map(([, found = '']) => found))
  const names = [
    ...namesIn(/^platform\/config\.ts$/, /^ {2,4}([A-Z][A-Z_]+): /gm),
    ...namesIn(/^(api|activities)\/.*metrics.*\.ts$/, /'(svc_[a-z_]+)'/g),
    ...namesIn(/^activities\/.*-jobs\.ts$/, /\bname: '(\w+)',\s+everySeconds/g),
  ]
  expect(names.length).toBeGreaterThan(50)
  expect([...new Set(names)].filter((name) => !page.includes(`\`${name}\``))).toEqual([])
})

test('docs/security.md names tests that are there', async () => {
  const page = await readFile(posix.join(root, 'docs/security.md'), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| '))
  const named = rows.flatMap((row) => [...(row.split('|').at(-2) ?? '').matchAll(/`([a-z-]+\/[a-z*/-]+)`/g)])
  expect(named.length).toBeGreaterThan(20)
  const isThere = (name: string) => files.some((file) => file.startsWith(`test/${name.replace('*', '')}`))
  expect(named.map(([, name = '']) => name).filter((name) => !isThere(name))).toEqual([])
})
