/**
 * Rules of the repository that neither the compiler nor Biome checks: dependencies, file names, and what the docs list.
 */
import { readdir, readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { slowFiles } from './support/slow-files.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFile(posix.join(root, path), 'utf8')

const files = (await readdir(root, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
  .map((entry) => posix.relative(root, posix.join(entry.parentPath, entry.name)))
  .filter((path) => path.includes('/') && !/(^|\/)(node_modules|dist|coverage|\.[^/]+)\//.test(path))
  .sort()
const texts = new Map(await Promise.all(files.map(async (file) => [file, await read(file)] as const)))
const folderOf = (path: string) => path.slice(0, path.indexOf('/'))

describe('imports between folders', async () => {
  const map = (await import(posix.join(root, '.dependency-cruiser.mjs'))) as {
    folders: string[]
    nodeOf: (path: string) => string | undefined
    isTypesOnly: (from: string, to: string) => boolean
  }
  /**
   * Imports of files by others, from their texts: npm run check:imports takes seconds to read them all with the
   * compiler.
   */
  const imports = [...texts].flatMap(([source, text]) =>
    [...text.matchAll(/^(?:import|export)\b[^;'`]*?'(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm)].map(
      ([, fixed, dynamic]) => ({
        source,
        resolved: posix.join(posix.dirname(source), fixed ?? dynamic ?? ''),
      }),
    ),
  )

  test('every folder with TypeScript files has import rules', () => {
    expect([...new Set(files.map(folderOf))].filter((folder) => !map.folders.includes(folder))).toEqual([])
  })

  test('the map in docs/architecture.md shows exactly the imports that exist', async () => {
    const arrows = new Set<string>()
    for (const { source, resolved } of imports) {
      const [from, to] = [map.nodeOf(source), map.nodeOf(resolved)]
      if (!from || !to || folderOf(source) === folderOf(resolved) || from === 'bench' || from === 'test') continue
      arrows.add(`${from} → ${to}${map.isTypesOnly(from, to) ? ', types only' : ''}`)
    }
    expect([...arrows].toSorted()).toEqual((await arrowsOfMap()).toSorted())
  })

  async function arrowsOfMap(): Promise<string[]> {
    const [, map = ''] = /```mermaid\n(flowchart TD\n[^`]*)```/.exec(await read('docs/architecture.md')) ?? []
    const arrows = map.matchAll(/^ *([\w& -]+?) (-->|-\.->\|types only\|) ([\w& -]+)$/gm)
    return [...arrows].flatMap(([, from = '', kind, to = '']) =>
      from
        .split(' & ')
        .flatMap((importer) =>
          to.split(' & ').map((imported) => `${importer} → ${imported}${kind === '-->' ? '' : ', types only'}`),
        ),
    )
  }
})

test('transactions are opened by the api and by db/transactions/', () => {
  const opening = /\.begin\(|\bpipelinedTransaction\(/
  const allowed: readonly RegExp[] = [
    /^(api|db\/transactions|bench|test)\//,
    /^db\/(connection|migrations|pipelined-transaction)\.ts$/,
    // Locks a row during a call to the row's provider, which db/ cannot make.
    /^activities\/identity\/provider-token-jobs\.ts$/,
  ]
  const found = files.filter((file) => opening.test(texts.get(file) ?? ''))
  expect(found.filter((file) => !allowed.some((path) => path.test(file)))).toEqual([])
})

/** Exports without a user in the product, each with the reason. */
const exportsForTests: Readonly<Record<string, string>> = {
  'client/api-types.ts webhooks': 'generated',
  'db/identity/account-export.ts unexportedTables':
    'the tables that an export leaves out, each with the reason; a test compares them with the schema',
  'db/operations/retention.ts boundedTables':
    'the tables that need no retention, each with the reason; a test compares them with the schema',
}

test('every export of the product has a user besides tests', () => {
  const isProduct = (path: string) => !/^(test|bench)\//.test(path)
  const users = [...texts].filter(([path]) => isProduct(path))
  /** Names that product files import from each other; `*` for a whole file. */
  const imported = new Set(
    users.flatMap(([source, text]) =>
      [...text.matchAll(/^(?:import|export)\b([^;'`]*?)from '(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm)].flatMap(
        ([, clause = '*', fixed, dynamic]) => {
          const file = posix.join(posix.dirname(source), fixed ?? dynamic ?? '')
          const names = clause.includes('*')
            ? ['*']
            : [...clause.matchAll(/(\w+)(?: as \w+)?\s*[,}]/g)].map(([, name]) => name)
          return names.map((name) => `${file} ${name}`)
        },
      ),
    ),
  )
  const unused = users.flatMap(([file, text]) => {
    const code = text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
    return [...code.matchAll(/^export (?:async |abstract )?(?:const|function\*?|class|interface|type) (\w+)/gm)]
      .map(([, name = '']) => name)
      .filter((name) => code.match(new RegExp(`\\b${name}\\b`, 'g'))?.length === 1)
      .map((name) => `${file} ${name}`)
      .filter((name) => !imported.has(name) && !imported.has(`${file} *`))
  })
  expect(unused.filter((name) => !(name in exportsForTests))).toEqual([])
  expect(Object.keys(exportsForTests).filter((name) => !unused.includes(name))).toEqual([])
})

test('no file is a collection of unrelated code, and none only re-exports others', () => {
  const collection = /(^|\/)(utils?|helpers?|common|misc|shared|types)(\/|\.tsx?$)|(^|\/)index\.tsx?$/
  expect(files.filter((file) => collection.test(file))).toEqual([])
})

test('every file of tests begins with a comment that says what it tests', () => {
  const isSilent = (file: string) => file.endsWith('.test.ts') && !/^\/\*\*\s+(\* )?\S/.test(texts.get(file) ?? '')
  expect(files.filter(isSilent)).toEqual([])
})

test('nothing waits for a signal of AbortSignal.any, which Node 20 collects as garbage', () => {
  expect(files.filter((file) => /AbortSignal\.any\(/.test(texts.get(file) ?? ''))).toEqual([])
})

test('no literal is spread into another one, where its parts could stand', () => {
  const spread = /\.\.\.(?:\{|\[[^\][]*\]\s*[,)\]])/
  expect(files.filter((file) => spread.test(texts.get(file) ?? ''))).toEqual([])
})

test('no variable, parameter or property is named `one`: a name is the noun of the thing', () => {
  const stringsAndComments = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|\/\*[\s\S]*?\*\/|\/\/.*/g
  const name = /\b(?:const|let|function|readonly) one\b|\bone =>|[.]one\b|[([{,]\s*one\s*[:,)\]}=?]|: one [},]/
  const codeOf = (file: string) => (texts.get(file) ?? '').replaceAll(stringsAndComments, '')
  expect(files.filter((file) => name.test(codeOf(file)))).toEqual([])
})

test('comments end at column 120', () => {
  const longComment = /^(?=.{121})\s*(?:\/\/|\/?\*).*/gm
  const isGenerated = (file: string) => file === 'client/api-types.ts'
  const longOf = (file: string) =>
    [...(texts.get(file) ?? '').matchAll(longComment)].map(([line]) => `${file}: ${line}`)
  expect(files.filter((file) => !isGenerated(file)).flatMap(longOf)).toEqual([])
})

/** Dependencies that no file imports, and what uses them instead. */
const tools: Readonly<Record<string, string>> = {
  '@biomejs/biome': 'npm run check:code',
  '@typescript/native': 'npm run check:types',
  'dependency-cruiser': 'npm run check:imports',
  typescript: 'dependency-cruiser',
  tsx: 'runs the scripts of package.json',
  esbuild: 'platform/bundle.mjs',
  'patch-package': 'npm install, for patches/',
  protobufjs: 'keeps a single version for all Temporal packages',
  autocannon: 'bench/',
  '@stryker-mutator/vitest-runner': 'stryker.config.mjs',
}

const manifest = JSON.parse(await read('package.json')) as Record<
  'dependencies' | 'devDependencies',
  Record<string, string>
>
const dependencies = { ...manifest.dependencies, ...manifest.devDependencies }

test('the list of slow test files names files that exist', () => {
  expect(slowFiles.filter((file) => !files.includes(file))).toEqual([])
})

test('every dependency has an exact version, and all Temporal packages have the same', () => {
  const ranges = Object.entries(dependencies).filter(
    ([, version]) => !/^(npm:(@[\w-]+\/)?[\w-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version),
  )
  expect(ranges).toEqual([])
  const temporal = Object.entries(dependencies).filter(([name]) => name.startsWith('@temporalio/'))
  expect(new Set(temporal.map(([, version]) => version)).size, JSON.stringify(temporal)).toBe(1)
})

test('every dependency is imported, or is a tool, or has the types of one that is', () => {
  const specifiers = new Set(
    [...texts.values()].flatMap((text) => [...text.matchAll(/'([^'\n]+)'/g)].map(([, s]) => s)),
  )
  const isImported = (name: string) =>
    [...specifiers].some((specifier) => specifier === name || specifier?.startsWith(`${name}/`))
  const isTypes = (name: string) =>
    name === '@types/node' || (name.startsWith('@types/') && name.slice(7) in dependencies)
  expect(Object.keys(dependencies).filter((name) => !isImported(name) && !(name in tools) && !isTypes(name))).toEqual(
    [],
  )
})

test('docs/dependencies.md gives a reason for each dependency, and lists no other', async () => {
  const listed = [...(await read('docs/dependencies.md')).matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name)
  expect(listed.toSorted()).toEqual(Object.keys(dependencies).toSorted())
})

test('docs/operating.md lists every metric and job', async () => {
  const page = await read('docs/operating.md')
  const namesIn = (paths: RegExp, name: RegExp) =>
    files
      .filter((file) => paths.test(file))
      .flatMap((file) => [...(texts.get(file) ?? '').matchAll(name)].map(([, found = '']) => found))
  const kinds = [
    namesIn(/^(api|activities)\/.*metrics.*\.ts$/, /'(svc_[a-z_]+)'/g),
    namesIn(/^activities\/.*-jobs\.ts$/, /\bname: '(\w+)',\s+everySeconds/g),
  ]
  expect(kinds.map((names) => names.length > 5)).toEqual([true, true])
  expect([...new Set(kinds.flat())].filter((name) => !page.includes(`\`${name}\``))).toEqual([])
})

test('docs/security.md names tests that exist', async () => {
  const rows = (await read('docs/security.md')).split('\n').filter((line) => line.startsWith('| '))
  const named = rows.flatMap((row) => [...(row.split('|').at(-2) ?? '').matchAll(/`([a-z-]+\/[a-z*/-]+)`/g)])
  expect(named.length).toBeGreaterThan(20)
  const exists = (name: string) => files.some((file) => file.startsWith(`test/${name.replace('*', '')}`))
  expect(named.map(([, name = '']) => name).filter((name) => !exists(name))).toEqual([])
})

test('CONTRIBUTING.md names paths that exist', async () => {
  const page = (await read('CONTRIBUTING.md')).replaceAll('<noun>', 'relay')
  const named = [...page.matchAll(/`([\w.-]+\/[\w./*-]*)`/g)].map(([, path = '']) => path)
  expect(named.length).toBeGreaterThan(40)
  const exists = async (path: string) => {
    const names = await readdir(posix.join(root, posix.dirname(path))).catch(() => [])
    const name = new RegExp(`^${posix.basename(path).replaceAll('.', '\\.').replaceAll('*', '.*')}$`)
    return names.some((file) => name.test(file))
  }
  const missing = await Promise.all(named.map(async (path) => ((await exists(path)) ? [] : [path])))
  expect(missing.flat()).toEqual([])
})

test('patches/README.md explains each hunk of each patch, and no other', async () => {
  const page = await read('patches/README.md')
  const patches = (await readdir(posix.join(root, 'patches'))).filter((name) => name.endsWith('.patch'))
  const texts = await Promise.all(patches.map((name) => read(`patches/${name}`)))
  const hunks = texts.flatMap((text) =>
    text.split(/^diff --git /m).flatMap((part) => {
      // The folder of the types has an index too.
      const name = part.includes('/types/') ? 'types' : /\/([\w-]+)\.js /.exec(part)?.[1]
      return [...part.matchAll(/^@@ -(\d+),/gm)].map(([, line]) => `${name}:${line}`)
    }),
  )
  const explained = [...page.matchAll(/`([a-z]+:\d+)`/g)].map(([, hunk]) => hunk)
  expect([...new Set(explained)].toSorted()).toEqual([...new Set(hunks)].toSorted())
})

test('links between pages lead to files and headings that exist', async () => {
  const folders = ['docs', 'deploy', 'patches', 'test/histories']
  const inFolders = await Promise.all(
    folders.map(async (folder) =>
      (await readdir(posix.join(root, folder), { recursive: true })).map((name) => `${folder}/${name}`),
    ),
  )
  const pages = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...inFolders.flat()].filter((page) =>
    page.endsWith('.md'),
  )
  const pageTexts = new Map(await Promise.all(pages.map(async (page) => [page, await read(page)] as const)))
  const anchorsOf = (text: string) =>
    [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    )
  const isBroken = async (page: string, link: string) => {
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? page : posix.join(posix.dirname(page), path)
    const text = pageTexts.get(target)
    if (anchor !== undefined && text !== undefined) return !anchorsOf(text).includes(anchor)
    const names: string[] = await readdir(posix.join(root, posix.dirname(target))).catch(() => [])
    return !names.includes(posix.basename(target))
  }
  const links = [...pageTexts].flatMap(([page, text]) =>
    [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => [page, link] as const),
  )
  const inside = links.filter(([, link]) => !/^[a-z]+:/.test(link))
  expect(inside.length).toBeGreaterThan(300)
  const broken = await Promise.all(
    inside.map(async ([page, link]) => ((await isBroken(page, link)) ? [[page, link]] : [])),
  )
  expect(broken.flat()).toEqual([])
})

describe('docs/decisions', async () => {
  const names = (await readdir(posix.join(root, 'docs/decisions'))).toSorted()
  const decisions = new Map(
    await Promise.all(names.map(async (name) => [name, await read(`docs/decisions/${name}`)] as const)),
  )
  const relation = /^(Replaces|Replaced by|Changes|Changed in part by) \[(\d{4})\]\((\2-[a-z\d-]+\.md)\)( in part)?\.$/
  const counterparts: Readonly<Record<string, (link: string) => string>> = {
    Replaces: (link) => `Replaced by ${link}.`,
    'Replaced by': (link) => `Replaces ${link}.`,
    Changes: (link) => `Changed in part by ${link}.`,
    'Changed in part by': (link) => `Changes ${link} in part.`,
  }
  /** The lines between the heading and the first paragraph, which starts after an empty line. */
  const relationsOf = (text = '') =>
    (text.split('\n\n')[1] ?? '').split('\n').filter((line) => /^(Replace|Change)[sd]/.test(line))

  test('each is headed by the number of its file name and a title', () => {
    const isHeaded = ([name, text]: readonly [string, string]) =>
      new RegExp(`^# ${name.slice(0, 4)} \\S[^\\n]*\\n\\n`).test(text)
    expect([...decisions].filter((decision) => !isHeaded(decision)).map(([name]) => name)).toEqual([])
  })

  test('one that replaces or changes another is named by it in turn', () => {
    const faults = [...decisions].flatMap(([name, text]) =>
      relationsOf(text).filter((line) => {
        const [, kind = '', , other = ''] = relation.exec(line) ?? []
        const counterpart = counterparts[kind]?.(`[${name.slice(0, 4)}](${name})`)
        return !counterpart || !relationsOf(decisions.get(other)).includes(counterpart)
      }),
    )
    expect(faults).toEqual([])
  })
})
