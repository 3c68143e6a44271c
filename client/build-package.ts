/**
 * `npm run build:client`: builds what `npm pack ./client` packs into `client/dist`. One module and its declarations,
 * which contain openapi-fetch: the package has no dependencies, so it installs without a network.
 */
import { execFile } from 'node:child_process'
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'

const run = promisify(execFile)
const folder = fileURLToPath(new URL('.', import.meta.url))
const output = join(folder, 'dist')
/** Packages that become part of this one, with the declarations to copy. */
const contained = ['openapi-fetch', 'openapi-typescript-helpers']

async function buildModule(): Promise<void> {
  await build({
    entryPoints: [join(folder, 'exports.ts')],
    outdir: output,
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format: 'esm',
    logLevel: 'error',
  })
}

async function buildDeclarations(): Promise<void> {
  await run(join(folder, '..', 'node_modules', '.bin', 'tsc'), ['--project', join(folder, 'tsconfig.package.json')])
  for (const name of contained) {
    const from = dirname(fileURLToPath(import.meta.resolve(name)))
    await cp(join(from, 'index.d.mts'), join(output, `${name}.d.ts`))
    await cp(join(from, '..', 'LICENSE'), join(output, `${name}.LICENSE`))
  }
  const declarations = (await readdir(output)).filter((name) => name.endsWith('.d.ts'))
  await Promise.all(declarations.map((name) => referToFiles(join(output, name))))
}

/** Lets a declaration import the files beside it, by the names that every setting of a compiler resolves. */
async function referToFiles(path: string): Promise<void> {
  const text = await readFile(path, 'utf8')
  const referring = text
    .replaceAll(/ from '(\.\/[\w-]+)\.ts'/g, " from '$1.js'")
    .replaceAll(/ from '([\w-]+)'/g, (all, name: string) => (contained.includes(name) ? ` from './${name}.js'` : all))
  await writeFile(path, referring)
}

await rm(output, { recursive: true, force: true })
await buildModule()
await buildDeclarations()
