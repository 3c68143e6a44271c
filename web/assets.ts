/** Static files, read at start and served under a path with their content hash, so that browsers can cache them for ever. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('./assets/', import.meta.url))

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

export interface Asset {
  readonly type: string
  readonly bytes: Buffer
}

export interface Assets {
  /** The file at this path of the site, if there is one. */
  at(path: string): Asset | undefined
  /** The path of a file by its name in `web/assets`. */
  pathOf(name: string): string
}

export async function readAssets(): Promise<Assets> {
  const assets = new Map<string, Asset>()
  const paths = new Map<string, string>()
  for (const name of await readdir(folder)) {
    const bytes = await readFile(folder + name)
    const [type, hash] = [contentTypes[extname(name)], createHash('sha256').update(bytes).digest('hex').slice(0, 12)]
    if (!type) throw new Error(`web/assets/${name}: no content type is defined for this extension`)
    const path = `/assets/${hash}/${name}`
    assets.set(path, { type, bytes })
    paths.set(name, path)
  }
  return {
    at: (path) => assets.get(path),
    pathOf: (name) => {
      const path = paths.get(name)
      if (!path) throw new Error(`web/assets/${name} does not exist`)
      return path
    },
  }
}
