/**
 * The bundle of a program: its modules as one file of JavaScript, without the packages. Node loads it in half of the time that it
 * takes to transform and load the modules themselves. A bundle is used only if each file that it was built from has the same
 * content as then; otherwise it is built again, which takes a fraction of a second.
 */
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { extname, join, posix, relative, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))

/**
 * Not imported by any program, but decide what is built. Another version of esbuild comes with a change of package.json.
 */
const buildFiles = ['package.json', 'tsconfig.json', 'platform/program-bundle.mjs']

/** @type {Readonly<Record<string, 'ts' | 'tsx' | 'js' | 'json'>>} */
const loaders = { '.ts': 'ts', '.tsx': 'tsx', '.mjs': 'js', '.js': 'js', '.json': 'json' }

/**
 * Imports a program from its bundle.
 * @param {string} program its path.
 * @returns {Promise<unknown>}
 */
export async function importProgram(program) {
  const entry = await findBundle(program)
  // Stack traces refer to the sources.
  process.setSourceMapsEnabled(true)
  return import(pathToFileURL(entry).href)
}

/**
 * The path of the bundle of the current sources, which is built if there is none.
 * @param {string} program its path.
 * @returns {Promise<string>}
 */
export async function findBundle(program) {
  const source = relative(root, program).replaceAll(sep, '/')
  if (source.startsWith('../')) throw new Error(`${program} is outside of the project`)
  const name = source.slice(0, -extname(source).length).replaceAll('/', '-')
  const bundles = bundlesFolder(source)
  const listFile = join(bundles, `${name}.json`)
  const built = readList(listFile)
  if (built && isCurrent(built.inputs)) return join(bundles, built.entry)
  const current = await build(source, name, bundles)
  writeWhole(listFile, JSON.stringify(current))
  return join(bundles, current.entry)
}

/**
 * Below the package that the program belongs to, whose dependencies Node then finds.
 * @param {string} source
 */
function bundlesFolder(source) {
  let folder = posix.dirname(source)
  while (folder !== '.' && !existsSync(join(root, folder, 'package.json'))) folder = posix.dirname(folder)
  return join(root, folder, 'dist', 'programs')
}

/**
 * @typedef {object} Bundle
 * @property {string} entry the file to import, below the folder of bundles.
 * @property {Readonly<Record<string, string>>} inputs the digest of each file that it was built from, by its path.
 */

/**
 * @param {string} listFile
 * @returns {Bundle | undefined}
 */
function readList(listFile) {
  try {
    return JSON.parse(readFileSync(listFile, 'utf8'))
  } catch (error) {
    // A machine that loses power may leave an incomplete file.
    if (error instanceof SyntaxError || /** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return undefined
    throw error
  }
}

/** @param {Bundle['inputs']} inputs */
function isCurrent(inputs) {
  try {
    return Object.entries(inputs).every(([path, digest]) => digestOf(readFileSync(join(root, path))) === digest)
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return false
    throw error
  }
}

/**
 * @param {string} source its path below the project's folder.
 * @param {string} name
 * @param {string} bundles the folder of its bundles.
 * @returns {Promise<Bundle>}
 */
async function build(source, name, bundles) {
  /** From the folder of the bundle, whose name is not known yet, to the project's folder. */
  const toRoot = `${relative(join(bundles, 'new'), root).replaceAll(sep, '/')}/`
  const { build: bundle, stop } = await import('esbuild')
  /** @type {Record<string, string>} Digests of what esbuild read, not of what the files contain later. */
  const inputs = {}
  const read = (/** @type {string} */ path) => {
    const content = readFileSync(path)
    inputs[relative(root, path).replaceAll(sep, '/')] = digestOf(content)
    return content.toString('utf8')
  }
  for (const file of buildFiles) read(join(root, file))
  const { outputFiles, metafile } = await bundle({
    absWorkingDir: root,
    entryPoints: { [name]: source },
    bundle: true,
    write: false,
    metafile: true,
    packages: 'external',
    // What a program imports later, such as the client of a billing provider, it loads later.
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    keepNames: true,
    tsconfig: join(root, 'tsconfig.json'),
    sourcemap: 'linked',
    sourcesContent: false,
    outdir: join(bundles, 'new'),
    outExtension: { '.js': '.mjs' },
    logLevel: 'silent',
    plugins: [{ name: 'sources', setup: ({ onLoad }) => onLoad({ filter: /.*/, namespace: 'file' }, load) }],
  })
  await stop()
  /** @param {{ path: string }} file */
  function load({ path }) {
    const loader = loaders[extname(path)]
    if (!loader) throw new Error(`${path} cannot be part of a bundle`)
    return { contents: withSourceUrl(read(path), toRoot + relative(root, path).replaceAll(sep, '/')), loader }
  }
  const unread = Object.keys(metafile.inputs).filter((path) => !(path in inputs))
  if (unread.length > 0) throw new Error(`the bundle of ${source} has other inputs: ${unread.join(', ')}`)
  // Never written twice: processes that run the same bundle may load parts of it later.
  const folder = `${name}-${digestOf(Buffer.from(JSON.stringify(inputs))).slice(0, 16)}`
  mkdirSync(join(bundles, folder), { recursive: true })
  for (const { path, contents } of outputFiles) writeWhole(join(bundles, folder, posix.basename(path)), contents)
  return { entry: `${folder}/${name}.mjs`, inputs }
}

/**
 * A module finds files by its own path, which is not the path of the bundle.
 * @param {string} code
 * @param {string} url relative to the bundle, so that the project's folder can be moved.
 */
function withSourceUrl(code, url) {
  return code.replaceAll('import.meta.url', `new URL(${JSON.stringify(url)}, import.meta.url).href`)
}

/** @param {Buffer} content */
const digestOf = (content) => createHash('sha256').update(content).digest('hex')

/**
 * Renamed when it is complete, so that a process never reads a partial file that another one is writing.
 * @param {string} file
 * @param {string | Uint8Array} content
 */
function writeWhole(file, content) {
  const draft = `${file}.${randomUUID()}.draft`
  writeFileSync(draft, content)
  renameSync(draft, file)
}
