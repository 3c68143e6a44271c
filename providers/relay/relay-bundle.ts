/**
 * The bundle of `relay-node/`: one file that `node` runs without packages, which the api serves and instances in a
 * cloud download. It is built ahead of time (`npm run build`) or at its first use, and reused while its sources are the
 * same.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { relayVersion } from '../../domain/relay/version.ts'
import { findBundle, root } from '../../platform/bundle.mjs'
import { relayProgram } from './local-relays.ts'

export interface RelayBundle {
  /** Contains the version and the beginning of the digest, so another content has another name. */
  readonly fileName: string
  /** Of the content, in hexadecimal. */
  readonly sha256: string
  readonly code: Buffer
}

let bundle: Promise<RelayBundle> | undefined

/** The bundle of the current sources. Calls of one process share it. */
export function relayBundle(): Promise<RelayBundle> {
  bundle ??= findOrBuild().catch((error: unknown) => {
    bundle = undefined
    throw error
  })
  return bundle
}

async function findOrBuild(): Promise<RelayBundle> {
  const file = await findBundle({
    name: 'relay-node',
    folder: join(root, 'dist'),
    options: {
      entryPoints: [relayProgram],
      platform: 'node',
      format: 'esm',
      target: 'node20',
      // The same code on each machine: no path and no setting of this one.
      tsconfigRaw: {},
      charset: 'utf8',
      legalComments: 'none',
    },
    finish: ({ outputFiles: [output] }) => {
      if (!output) throw new Error('esbuild wrote no bundle')
      const { fileName, code } = describeBundle(Buffer.from(output.contents))
      return { main: fileName, files: { [fileName]: code } }
    },
  })
  return describeBundle(await readFile(file))
}

function describeBundle(code: Buffer): RelayBundle {
  const sha256 = createHash('sha256').update(code).digest('hex')
  return { fileName: `relay-node-${relayVersion}-${sha256.slice(0, 12)}.mjs`, sha256, code }
}
