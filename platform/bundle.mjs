/**
 * Bundles that are built from sources by esbuild, once. Beside a bundle is a list of the files that it was built from,
 * with the digest of each, and of the options. A bundle is used only while all of them are the same; otherwise it is
 * built again, which takes a fraction of a second. esbuild reports which files it read, so no rule names folders. Plain
 * JavaScript, since `launch.mjs` uses it before anything can run TypeScript.
 */
import { createHash, randomUUID } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The project's folder. */
export const root = fileURLToPath(new URL('../', import.meta.url))

/** Decide what each bundle contains, and are no sources of it. The second one has the version of esbuild. */
const commonInputs = ['package.json', 'node_modules/esbuild/package.json', 'platform/bundle.mjs']

/** @type {Readonly<Record<string, 'ts' | 'tsx' | 'js' | 'json'>>} */
const loaders = { '.ts': 'ts', '.tsx': 'tsx', '.mjs': 'js', '.js': 'js', '.json': 'json' }

/**
 * @typedef {object} Recipe
 * @property {string} name of the list of inputs.
 * @property {string} folder the path of the folder for the list and the bundle.
 * @property {import('esbuild').BuildOptions} options the same on each machine: paths in them are relative to the
 * project's folder.
 * @property {readonly string[]} [otherInputs] paths of files that decide what is built and that esbuild does not read.
 * @property {(code: string, path: string) => string} [transform] changes a source before esbuild reads it.
 * @property {(built: Built) => Bundle | Promise<Bundle>} finish makes the bundle from the output of esbuild.
 *
 * @typedef {object} Built
 * @property {import('esbuild').OutputFile[]} outputFiles
 * @property {string} inputsDigest the start of the digest of all inputs.
 *
 * @typedef {object} Bundle paths are relative to the folder of the recipe.
 * @property {string} main
 * @property {Readonly<Record<string, string | Uint8Array>>} files the content of each file, by its path.
 *
 * @typedef {object} List
 * @property {string} main
 * @property {string} settings
 * @property {Readonly<Record<string, string>>} inputs the digest of each file, by its path.
 */

/**
 * The path of the main file of a bundle of the current sources, which is built if there is none.
 * @param {Recipe} recipe
 * @returns {Promise<string>}
 */
export async function findBundle(recipe) {
  const { name, folder, options, otherInputs = [] } = recipe
  const listFile = join(folder, `${name}.json`)
  const settings = JSON.stringify([options, otherInputs])
  const list = readList(listFile)
  if (list?.settings === settings && existsSync(join(folder, list.main)) && isCurrent(list.inputs))
    return join(folder, list.main)
  const { outputFiles, inputs } = await build(recipe)
  const inputsDigest = digestOf(JSON.stringify(inputs)).slice(0, 16)
  const { main, files } = await recipe.finish({ outputFiles, inputsDigest })
  for (const [path, content] of Object.entries(files)) writeWhole(join(folder, path), content)
  writeWhole(listFile, JSON.stringify({ main, settings, inputs }))
  return join(folder, main)
}

/**
 * @param {string} listFile
 * @returns {List | undefined}
 */
function readList(listFile) {
  try {
    return JSON.parse(readFileSync(listFile, 'utf8'))
  } catch (error) {
    if (error instanceof SyntaxError || /** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return undefined
    throw error
  }
}

/** @param {List['inputs']} inputs */
function isCurrent(inputs) {
  try {
    return Object.entries(inputs).every(([path, digest]) => digestOf(readFileSync(join(root, path))) === digest)
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return false
    throw error
  }
}

/** Builds in progress, which share one process of esbuild. */
let builds = 0

/** @param {Recipe} recipe */
async function build({ name, options, otherInputs = [], transform = (code) => code }) {
  const esbuild = await import('esbuild')
  /** @type {Record<string, string>} Digests of what esbuild read, not of what the files contain later. */
  const inputs = {}
  const read = (/** @type {string} */ path) => {
    const content = readFileSync(path)
    inputs[relative(root, path).replaceAll(sep, '/')] = digestOf(content)
    return content.toString('utf8')
  }
  for (const file of [...commonInputs, ...otherInputs]) read(join(root, file))
  builds += 1
  try {
    const { outputFiles, metafile } = await esbuild.build({
      ...options,
      absWorkingDir: root,
      bundle: true,
      write: false,
      metafile: true,
      logLevel: 'silent',
      plugins: [{ name: 'sources', setup: ({ onLoad }) => onLoad({ filter: /.*/, namespace: 'file' }, load) }],
    })
    const unread = Object.keys(metafile.inputs).filter((path) => !(path in inputs))
    if (unread.length > 0) throw new Error(`the bundle ${name} has other inputs: ${unread.join(', ')}`)
    return { outputFiles, inputs }
  } finally {
    builds -= 1
    if (builds === 0) await esbuild.stop()
  }
  /** @param {{ path: string }} file */
  function load({ path }) {
    const loader = loaders[extname(path)]
    if (!loader) throw new Error(`${path} cannot be part of a bundle`)
    return { contents: transform(read(path), path), loader }
  }
}

/** @param {Buffer | string} content */
const digestOf = (content) => createHash('sha256').update(content).digest('hex')

/**
 * Renamed when it is complete and on the disk, so that a process never reads a partial file that another one is
 * writing, and a machine that loses power leaves none.
 * @param {string} file
 * @param {string | Uint8Array} content
 */
function writeWhole(file, content) {
  mkdirSync(dirname(file), { recursive: true })
  const draft = `${file}.${randomUUID()}.draft`
  const descriptor = openSync(draft, 'wx')
  try {
    writeFileSync(descriptor, content)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  renameSync(draft, file)
}
