/**
 * The bundle of a program: its modules as one file of JavaScript, without the packages. Node loads it in half of the
 * time that it takes to transform and load the modules themselves.
 */
import { existsSync } from 'node:fs'
import { basename, extname, join, posix, relative, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { findBundle, root } from './bundle.mjs'

/**
 * Imports a program from its bundle.
 * @param {string} program its path.
 * @returns {Promise<unknown>}
 */
export async function importProgram(program) {
  const entry = await findProgramBundle(program)
  // Stack traces refer to the sources.
  process.setSourceMapsEnabled(true)
  return import(pathToFileURL(entry).href)
}

/**
 * The path of the bundle of the current sources, which is built if there is none.
 * @param {string} program its path.
 * @returns {Promise<string>}
 */
export function findProgramBundle(program) {
  const source = pathFromRoot(program)
  if (source.startsWith('../')) throw new Error(`${program} is outside of the project`)
  const name = source.slice(0, -extname(source).length).replaceAll('/', '-')
  const bundles = bundlesFolder(source)
  /** Of the folder of the bundle, whose name is not known yet. */
  const outdir = `${bundles}/new`
  /** From there to the project's folder. */
  const toRoot = `${posix.relative(outdir, '')}/`
  return findBundle({
    name,
    folder: join(root, bundles),
    options: {
      entryPoints: { [name]: source },
      packages: 'external',
      // What a program imports later, such as the client of a billing provider, it loads later.
      splitting: true,
      platform: 'node',
      format: 'esm',
      target: 'node20.19',
      keepNames: true,
      tsconfig: 'tsconfig.json',
      sourcemap: 'linked',
      sourcesContent: false,
      outdir,
      outExtension: { '.js': '.mjs' },
    },
    otherInputs: ['tsconfig.json', 'platform/program-bundle.mjs'],
    transform: (code, path) => withSourceUrl(code, toRoot + pathFromRoot(path)),
    // Processes that run the same bundle may load parts of it later, so each one has a folder.
    finish: ({ outputFiles, inputsDigest }) => {
      const folder = `${name}-${inputsDigest}`
      const files = outputFiles.map(({ path, contents }) => [`${folder}/${basename(path)}`, contents])
      return { main: `${folder}/${name}.mjs`, files: Object.fromEntries(files) }
    },
  })
}

const pathFromRoot = (/** @type {string} */ path) => relative(root, path).replaceAll(sep, '/')

/**
 * Below the package that the program belongs to, whose dependencies Node then finds.
 * @param {string} source
 */
function bundlesFolder(source) {
  let folder = posix.dirname(source)
  while (folder !== '.' && !existsSync(join(root, folder, 'package.json'))) folder = posix.dirname(folder)
  return posix.join(folder, 'dist/programs')
}

/**
 * A module finds files by its own path, which is not the path of the bundle.
 * @param {string} code
 * @param {string} url relative to the bundle, so that the project's folder can be moved.
 */
function withSourceUrl(code, url) {
  return code.replaceAll('import.meta.url', `new URL(${JSON.stringify(url)}, import.meta.url).href`)
}
