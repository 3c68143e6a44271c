/**
 * The bundle of `relay-node/`: one file that `node` runs without packages, which the api serves and instances in a cloud download.
 * It is built ahead of time (`npm run build`) or at its first use, and reused while its sources are the same.
 */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { relayVersion } from '../../domain/relay/version.ts'
import { relayProgram } from './local-relays.ts'

export interface RelayBundle {
  /** Contains the version and the beginning of the digest, so another content has another name. */
  readonly fileName: string
  /** Of the content, in hexadecimal. */
  readonly sha256: string
  readonly code: Buffer
}

const root = new URL('../../', import.meta.url)
const bundles = new URL('dist/', root)
/** The folders with the sources, whose subfolders contain none. */
const sourceFolders = ['relay-node/', 'platform/'] as const

let bundle: Promise<RelayBundle> | undefined

/** The bundle of the current sources. Calls of one process share it. */
export function relayBundle(): Promise<RelayBundle> {
  bundle ??= findOrBuild().catch((error: unknown) => {
    bundle = undefined
    throw error
  })
  return bundle
}

/** A file names the bundle of a fingerprint, since the name of a bundle contains its digest. */
async function findOrBuild(): Promise<RelayBundle> {
  const nameFile = new URL(`relay-node-${await relayFingerprint(root)}.name`, bundles)
  return (await findBundle(nameFile)) ?? (await buildBundle(nameFile))
}

async function findBundle(nameFile: URL): Promise<RelayBundle | undefined> {
  try {
    const fileName = await readFile(nameFile, 'utf8')
    const found = describeBundle(await readFile(new URL(fileName, bundles)))
    return found.fileName === fileName ? found : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function buildBundle(nameFile: URL): Promise<RelayBundle> {
  const { build, stop } = await import('esbuild')
  const { outputFiles } = await build({
    absWorkingDir: fileURLToPath(root),
    entryPoints: [relayProgram],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    // The same code on each machine: no path and no setting of this one.
    tsconfigRaw: {},
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'silent',
  })
  await stop()
  const [output] = outputFiles
  if (!output) throw new Error('esbuild wrote no bundle')
  const built = describeBundle(Buffer.from(output.contents))
  await mkdir(bundles, { recursive: true })
  await writeWhole(new URL(built.fileName, bundles), built.code)
  await writeWhole(nameFile, built.fileName)
  return built
}

function describeBundle(code: Buffer): RelayBundle {
  const sha256 = createHash('sha256').update(code).digest('hex')
  return { fileName: `relay-node-${relayVersion}-${sha256.slice(0, 12)}.mjs`, sha256, code }
}

/** Renamed when it is complete, so that a process never reads a partial file that another one is writing. */
async function writeWhole(file: URL, content: Buffer | string): Promise<void> {
  const draft = new URL(`${file.href}.${process.pid}.draft`)
  await writeFile(draft, content)
  await rename(draft, file)
}

/** @param projectRoot the URL of the folder that contains the source folders, with a slash at its end. */
export async function relayFingerprint(projectRoot: URL): Promise<string> {
  const { version } = createRequire(import.meta.url)('esbuild/package.json') as { version: string }
  const hash = createHash('sha256').update(version)
  for (const folder of sourceFolders) {
    const names = await readdir(new URL(folder, projectRoot))
    for (const name of names.filter((one) => one.endsWith('.ts')).sort())
      hash.update(name).update(await readFile(new URL(folder + name, projectRoot)))
  }
  return hash.digest('hex').slice(0, 16)
}
